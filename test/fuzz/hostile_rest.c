/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of a server that answers in JSON, through libcurl and json-c.
 *
 * A reply whose length is not that of its body goes no further than libcurl. So the lengths of
 * replies, and of the chunks in which a stream comes, are set right here; all else is the input's.
 */
#include "hostile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 15

/* Writes `number` over digits that stand there, if it is not longer than they are. */
static void write_over(uint8_t *digits, size_t width, const char *format, size_t number)
{
    char text[32];
    int length = snprintf(text, sizeof text, format, (int)width, number);
    if (length == (int)width)
        memcpy(digits, text, width);
}

static size_t count_digits(const uint8_t *at, const uint8_t *end, int (*is_digit)(int))
{
    size_t width = 0;
    while (at + width < end && width < DIGITS_MAX && is_digit(at[width]))
        width++;
    return width;
}

static uint8_t *find(uint8_t *begin, const uint8_t *end, const char *text)
{
    return memmem(begin, (size_t)(end - begin), text, strlen(text));
}

/* "SIZE CR LF data CR LF", as one chunk. */
static void set_chunk(uint8_t *begin, const uint8_t *end)
{
    size_t width = count_digits(begin, end, isxdigit);
    if (width > 0 && (size_t)(end - begin) >= width + 4 && begin[width] == '\r')
        write_over(begin, width, "%0*zx", (size_t)(end - begin) - width - 4);
}

size_t fuzz_sound(size_t connection, uint8_t *bytes, size_t size)
{
    (void)connection;
    static const char length[] = "Content-Length: ";
    const uint8_t *end = bytes + size;
    uint8_t *head = find(bytes, end, "\r\n\r\n");
    if (!head || size < 5 || memcmp(bytes, "HTTP/", 5) != 0) {
        set_chunk(bytes, end);
        return size;
    }
    uint8_t *body = head + 4, *digits = find(bytes, head, length);
    if (digits) {
        digits += sizeof length - 1;
        write_over(digits, count_digits(digits, head, isdigit), "%0*zu", (size_t)(end - body));
    } else {
        set_chunk(body, end);
    }
    return size;
}
