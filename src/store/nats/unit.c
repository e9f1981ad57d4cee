/* SPDX-License-Identifier: Apache-2.0 */
/* See unit.h. A line that a server would write otherwise than this is not known here. */
#include "store/nats/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 5
#define DIGITS_MAX 9
#define LINE_END 2 /* CR LF */

struct word {
    const char *at;
    size_t length;
};

static bool begins(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

/* The words of a line, parted by spaces; WORDS_MAX + 1: there are more. */
static size_t split(const char *line, size_t length, struct word words[WORDS_MAX])
{
    const char *end = line + length;
    for (size_t count = 0;; count++) {
        while (line < end && *line == ' ')
            line++;
        if (line == end || count == WORDS_MAX)
            return count + (line < end);
        const char *space = memchr(line, ' ', (size_t)(end - line));
        words[count] = (struct word){line, (size_t)((space ? space : end) - line)};
        line += words[count].length;
    }
}

static bool read_number(struct word word, size_t *number)
{
    *number = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.at[i] < '0' || word.at[i] > '9')
            return false;
        *number = 10 * *number + (size_t)(word.at[i] - '0');
    }
    return word.length > 0 && word.length <= DIGITS_MAX;
}

/* SUBJECT SUBSCRIPTION [REPLY] [HEADERS] SIZE */
static bool read_message(const char *line, size_t length, bool has_headers, size_t *size)
{
    struct word words[WORDS_MAX];
    size_t count = split(line, length, words), least = has_headers ? 4 : 3;
    size_t subscription, headers = 0;
    if (count != least && count != least + 1)
        return false;
    return read_number(words[1], &subscription) && read_number(words[count - 1], size) &&
           (!has_headers || read_number(words[count - 2], &headers)) && headers <= *size;
}

static bool is_plain(const char *line, size_t length)
{
    static const char *const whole[] = {"PING", "PONG", "+OK"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (length == strlen(whole[i]) && begins(line, length, whole[i]))
            return true;
    return begins(line, length, "-ERR ") || begins(line, length, "INFO ");
}

/* How long the unit is whose line this is; 0: it is none. */
static size_t measure(const char *line, size_t length)
{
    size_t size;
    bool has_headers = begins(line, length, "HMSG ");
    if (!has_headers && !begins(line, length, "MSG "))
        return is_plain(line, length) ? length + LINE_END : 0;
    size_t word = has_headers ? 5 : 4;
    return read_message(line + word, length - word, has_headers, &size)
               ? length + LINE_END + size + LINE_END
               : 0;
}

ptrdiff_t mrt_nats_unit(const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    size_t length = end ? (size_t)(end - bytes) - 1 : 0;
    if (!end)
        return size < MRT_NATS_UNIT_MAX ? 0 : -1;
    if (end == bytes || end[-1] != '\r' || memchr(bytes, '\r', length) ||
        memchr(bytes, '\0', length))
        return -1;
    size_t whole = measure(bytes, length);
    if (whole == 0 || whole > MRT_NATS_UNIT_MAX)
        return -1;
    if (size < whole)
        return 0;
    return memcmp(bytes + whole - LINE_END, "\r\n", LINE_END) == 0 ? (ptrdiff_t)whole : -1;
}
