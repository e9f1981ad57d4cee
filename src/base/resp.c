/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading frames: see resp.h. A command is read from its beginning each time more bytes have come:
 * it is at most 8 kB, and mostly arrives whole.
 *
 * Invariant: no byte behind input + size is read, and no announced length is believed before it was
 * compared with the limits.
 */
#include "base/resp.h"

#include <string.h>

/* Where reading is. */
struct cursor {
    const char *at, *end;
    const char *wrong;
};

/* The line that begins here, without its end, "\r\n" or "\n"; false: it is not whole. */
static bool take_line(struct cursor *cursor, struct mrt_resp_word *line)
{
    const char *end = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
    if (!end)
        return false;
    line->text = cursor->at;
    line->size = (size_t)(end - cursor->at);
    if (line->size > 0 && line->text[line->size - 1] == '\r')
        line->size--;
    cursor->at = end + 1;
    return true;
}

bool mrt_resp_number(const struct mrt_resp_word *word, int64_t least, int64_t most, int64_t *number)
{
    bool is_negative = word->size > 0 && word->text[0] == '-';
    int64_t value = 0;
    size_t i = is_negative;
    if (word->size == i)
        return false;
    for (; i < word->size; i++) {
        int digit = word->text[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *number = is_negative ? -value : value;
    return *number >= least && *number <= most;
}

/* The number of a header line, as "$12"; -1: the line is not whole, or there is no such number. */
static int64_t take_length(struct cursor *cursor, char kind, int64_t most, const char *wrong)
{
    struct mrt_resp_word line;
    int64_t number;
    if (!take_line(cursor, &line)) {
        if (cursor->end - cursor->at > 32)
            cursor->wrong = wrong;
        return -1;
    }
    struct mrt_resp_word digits = {line.text + 1, line.size - 1};
    if (line.size < 2 || line.text[0] != kind || !mrt_resp_number(&digits, 0, most, &number)) {
        cursor->wrong = wrong;
        return -1;
    }
    return number;
}

static bool take_bulk(struct cursor *cursor, struct mrt_resp_word *word)
{
    int64_t size =
        take_length(cursor, '$', MRT_RESP_SIZE_MAX, "a word's length is missing or above 8192");
    if (size < 0 || cursor->end - cursor->at < size + 2)
        return false;
    *word = (struct mrt_resp_word){cursor->at, (size_t)size};
    cursor->at += size;
    if (memcmp(cursor->at, "\r\n", 2) != 0) {
        cursor->wrong = "no line end behind a word";
        return false;
    }
    cursor->at += 2;
    return true;
}

static bool take_array(struct cursor *cursor, struct mrt_resp_command *command)
{
    int64_t count =
        take_length(cursor, '*', MRT_RESP_WORDS_MAX, "a command has from 0 to 16 words");
    if (count < 0)
        return false;
    command->count = (size_t)count;
    for (size_t i = 0; i < command->count; i++)
        if (!take_bulk(cursor, &command->words[i]))
            return false;
    return true;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static bool take_inline(struct cursor *cursor, struct mrt_resp_command *command)
{
    struct mrt_resp_word line;
    if (!take_line(cursor, &line))
        return false;
    const char *at = line.text, *end = line.text + line.size;
    while (at < end) {
        const char *begin;
        while (at < end && is_blank(*at))
            at++;
        for (begin = at; at < end && !is_blank(*at); at++)
            continue;
        if (at == begin)
            break;
        if (command->count == MRT_RESP_WORDS_MAX) {
            cursor->wrong = "a command has from 0 to 16 words";
            return false;
        }
        command->words[command->count++] = (struct mrt_resp_word){begin, (size_t)(at - begin)};
    }
    return true;
}

enum mrt_resp_result mrt_resp_read(const char *input, size_t size, struct mrt_resp_command *command,
                                   size_t *used, const char **wrong)
{
    size_t visible = size < MRT_RESP_SIZE_MAX ? size : MRT_RESP_SIZE_MAX;
    struct cursor cursor = {input, input + visible, NULL};
    command->count = 0;
    if (visible == 0)
        return MRT_RESP_PART;
    bool is_whole = *input == '*' ? take_array(&cursor, command) : take_inline(&cursor, command);
    if (is_whole) {
        *used = (size_t)(cursor.at - input);
        return MRT_RESP_COMMAND;
    }
    if (!cursor.wrong && visible < MRT_RESP_SIZE_MAX)
        return MRT_RESP_PART;
    *wrong = cursor.wrong ? cursor.wrong : "a command has at most 8192 bytes";
    return MRT_RESP_NOT_FRAMED;
}

bool mrt_resp_is(const struct mrt_resp_word *word, const char *upper)
{
    if (strlen(upper) != word->size)
        return false;
    for (size_t i = 0; i < word->size; i++) {
        char letter = word->text[i];
        if (letter >= 'a' && letter <= 'z')
            letter = (char)(letter - 'a' + 'A');
        if (letter != upper[i])
            return false;
    }
    return true;
}
