/* SPDX-License-Identifier: Apache-2.0 */
/* See line.h. A text that is not exactly of its form is not ours. */
#include "store/kit/line.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void mrt_line_escape(const char *text, size_t length, char mark, bool (*is_plain)(char byte),
                     char *to, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length && at + 4 < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (is_plain(text[i])) {
            to[at++] = text[i];
            continue;
        }
        to[at++] = mark;
        to[at++] = digits[byte >> 4];
        to[at++] = digits[byte & 15];
    }
    to[at] = '\0';
}

static int digit(char character)
{
    const char *found = character ? strchr(digits, character) : NULL;
    return found ? (int)(found - digits) : -1;
}

bool mrt_line_unescape(const char *from, size_t length, char mark, char *to, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (at + 1 >= size)
            return false;
        if (from[i] != mark) {
            to[at++] = from[i];
            continue;
        }
        int high = i + 2 < length ? digit(from[i + 1]) : -1;
        int low = i + 2 < length ? digit(from[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return false;
        to[at++] = (char)(high << 4 | low);
        i += 2;
    }
    to[at] = '\0';
    return true;
}

const char *mrt_line_word(const char **line, size_t *length)
{
    const char *word = *line;
    *length = strcspn(word, " ");
    *line = word + *length + (word[*length] == ' ');
    return *length > 0 ? word : NULL;
}

bool mrt_line_number(const char **line, uint64_t *number)
{
    size_t length;
    char *end;
    const char *word = mrt_line_word(line, &length);
    if (!word || *word < '0' || *word > '9' || length > 20)
        return false;
    *number = strtoull(word, &end, 10);
    return end == word + length;
}

bool mrt_line_id(const char **line, struct mrt_id *id, bool or_none)
{
    size_t length;
    char text[MRT_ID_TEXT_SIZE];
    const char *word = mrt_line_word(line, &length);
    *id = (struct mrt_id){0, 0};
    if (word && length == 1 && *word == '-' && or_none)
        return true;
    if (!word || length != sizeof text - 1)
        return false;
    memcpy(text, word, length);
    text[length] = '\0';
    return mrt_id_parse(text, id);
}

const char *mrt_line_first(const char *bytes, size_t size, const char *begin, char *line,
                           size_t room, size_t *offset)
{
    const char *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    size_t length = end ? (size_t)(end - bytes) : room;
    if (length >= room)
        return NULL;
    memcpy(line, bytes, length);
    line[length] = '\0';
    *offset = length + 1;
    bool fits = strlen(line) == length && strncmp(line, begin, strlen(begin)) == 0;
    return fits ? line + strlen(begin) : NULL;
}
