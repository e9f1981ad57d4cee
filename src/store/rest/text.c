/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. A text that could not grow says so in the end, and is not sent. */
#include "store/rest/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void wipe(struct mrt_rest_text *text)
{
    if (text->bytes)
        explicit_bzero(text->bytes, text->room);
    free(text->bytes);
}

/* Room for so many more bytes and a NUL; NULL: no memory. */
static char *reserve(struct mrt_rest_text *text, size_t more)
{
    if (text->failed)
        return NULL;
    if (text->length + more + 1 > text->room) {
        size_t room = 2 * (text->length + more + 128);
        char *bytes = malloc(room);
        text->failed = !bytes;
        if (!bytes)
            return NULL;
        if (text->bytes)
            memcpy(bytes, text->bytes, text->length);
        wipe(text);
        text->bytes = bytes;
        text->room = room;
    }
    return text->bytes + text->length;
}

void mrt_rest_add(struct mrt_rest_text *text, const char *format, ...)
{
    va_list arguments;
    char *end = reserve(text, 0);
    if (!end)
        return;
    size_t room = text->room - text->length;
    va_start(arguments, format);
    int length = vsnprintf(end, room, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length >= room) {
        end = reserve(text, (size_t)length);
        if (!end)
            return;
        va_start(arguments, format);
        vsnprintf(end, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    text->length += length > 0 ? (size_t)length : 0;
}

bool mrt_rest_add_data(struct mrt_rest_text *text, const char *bytes, size_t size)
{
    char *end = reserve(text, size);
    if (!end)
        return false;
    memcpy(end, bytes, size);
    end[size] = '\0';
    text->length += size;
    return true;
}

void mrt_rest_text_free(struct mrt_rest_text *text)
{
    wipe(text);
    *text = (struct mrt_rest_text){0};
}

void mrt_rest_add_base64(struct mrt_rest_text *text, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    char *end = reserve(text, (size + 2) / 3 * 4);
    if (!end)
        return;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t word = (uint32_t)from[i] << 16 | (i + 1 < size ? (uint32_t)from[i + 1] << 8 : 0) |
                        (i + 2 < size ? from[i + 2] : 0);
        *end++ = digits[word >> 18];
        *end++ = digits[word >> 12 & 63];
        *end++ = i + 1 < size ? digits[word >> 6 & 63] : '=';
        *end++ = i + 2 < size ? digits[word & 63] : '=';
    }
    *end = '\0';
    text->length = (size_t)(end - text->bytes);
}

void mrt_rest_add_bytes(struct mrt_rest_text *text, const char *name, const void *bytes,
                        size_t size)
{
    mrt_rest_add(text, "\"%s\":\"", name);
    mrt_rest_add_base64(text, bytes, size);
    mrt_rest_add(text, "\"");
}

void mrt_rest_add_string(struct mrt_rest_text *text, const char *name, const char *value)
{
    struct json_object *string = json_object_new_string(value);
    const char *escaped = string ? json_object_to_json_string(string) : NULL;
    text->failed |= !escaped;
    if (escaped)
        mrt_rest_add(text, "\"%s\":%s", name, escaped);
    json_object_put(string);
}

/* ----------------------------------------------------------------- replies */

struct json_object *mrt_rest_member(struct json_object *object, const char *name)
{
    struct json_object *member = NULL;
    if (!json_object_is_type(object, json_type_object))
        return NULL;
    json_object_object_get_ex(object, name, &member);
    return member;
}

int64_t mrt_rest_number(struct json_object *object, const char *name)
{
    return json_object_get_int64(mrt_rest_member(object, name));
}

const char *mrt_rest_string(struct json_object *object, const char *name)
{
    struct json_object *member = mrt_rest_member(object, name);
    return json_object_is_type(member, json_type_string) ? json_object_get_string(member) : "";
}

/* Of a digit in base64; -1: it is none. */
static int digit_value(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *mrt_rest_bytes(struct json_object *object, const char *name, size_t *size)
{
    const char *from = mrt_rest_string(object, name);
    char *bytes = malloc(strlen(from) / 4 * 3 + 4), *end = bytes;
    uint32_t word = 0;
    unsigned bits = 0;
    for (; bytes && *from && *from != '='; from++) {
        int value = digit_value(*from);
        if (value < 0) {
            free(bytes);
            return NULL;
        }
        word = word << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *end++ = (char)(word >> bits);
        }
    }
    if (bytes) {
        *end = '\0';
        *size = (size_t)(end - bytes);
    }
    return bytes;
}
