/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. A text that could not grow says so in the end, and is not sent. */
#include "store/etcd/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Room for so many more bytes and a NUL; NULL: no memory. */
static char *reserve(struct mrt_etcd_text *text, size_t more)
{
    if (text->failed)
        return NULL;
    if (text->length + more + 1 > text->room) {
        size_t room = 2 * (text->length + more + 128);
        char *bytes = realloc(text->bytes, room);
        text->failed = !bytes;
        if (!bytes)
            return NULL;
        text->bytes = bytes;
        text->room = room;
    }
    return text->bytes + text->length;
}

void mrt_etcd_add(struct mrt_etcd_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *end = length >= 0 ? reserve(text, (size_t)length) : NULL;
    if (!end)
        return;
    va_start(arguments, format);
    vsnprintf(end, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void mrt_etcd_text_free(struct mrt_etcd_text *text)
{
    free(text->bytes);
    *text = (struct mrt_etcd_text){0};
}

void mrt_etcd_add_bytes(struct mrt_etcd_text *text, const char *name, const void *bytes,
                        size_t size)
{
    mrt_etcd_add(text, "\"%s\":\"", name);
    const unsigned char *from = bytes;
    char *end = reserve(text, (size + 2) / 3 * 4 + 1);
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
    *end++ = '"';
    *end = '\0';
    text->length = (size_t)(end - text->bytes);
}

void mrt_etcd_add_string(struct mrt_etcd_text *text, const char *name, const char *value)
{
    struct json_object *string = json_object_new_string(value);
    const char *escaped = string ? json_object_to_json_string(string) : NULL;
    text->failed |= !escaped;
    if (escaped)
        mrt_etcd_add(text, "\"%s\":%s", name, escaped);
    json_object_put(string);
}

static void separate(struct mrt_etcd_text *text)
{
    if (text->length > 0 && text->bytes[text->length - 1] != '[')
        mrt_etcd_add(text, ",");
}

static void add_key(struct mrt_etcd_text *text, const char *key)
{
    mrt_etcd_add_bytes(text, "key", key, strlen(key));
}

void mrt_etcd_add_end(struct mrt_etcd_text *text, const char *prefix)
{
    size_t length = strlen(prefix);
    char *end = strdup(prefix);
    text->failed |= !end;
    if (!end)
        return;
    if (length > 0)
        end[length - 1]++; /* names are UTF-8: no byte of them is 255 */
    mrt_etcd_add_bytes(text, "range_end", end, length > 0 ? length : 1); /* 0: all keys */
    free(end);
}

void mrt_etcd_add_prefix(struct mrt_etcd_text *text, const char *prefix)
{
    mrt_etcd_add_bytes(text, "key", prefix, *prefix ? strlen(prefix) : 1);
    mrt_etcd_add(text, ",");
    mrt_etcd_add_end(text, prefix);
}

/* The name of a number in a condition is not always that of its kind. */
static const char *member_of(const char *target)
{
    return strcmp(target, "CREATE") == 0 ? "create_revision"
           : strcmp(target, "MOD") == 0  ? "mod_revision"
                                         : "lease";
}

void mrt_etcd_if(struct mrt_etcd_text *text, const char *key, const char *target, int64_t value)
{
    separate(text);
    mrt_etcd_add(text, "{");
    add_key(text, key);
    mrt_etcd_add(text, ",\"target\":\"%s\",\"result\":\"EQUAL\",\"%s\":\"%" PRId64 "\"}", target,
                 member_of(target), value);
}

void mrt_etcd_if_all(struct mrt_etcd_text *text, const char *directory, const char *target,
                     const char *result, int64_t value)
{
    separate(text);
    mrt_etcd_add(text, "{");
    mrt_etcd_add_prefix(text, directory);
    mrt_etcd_add(text, ",\"target\":\"%s\",\"result\":\"%s\",\"%s\":\"%" PRId64 "\"}", target,
                 result, member_of(target), value);
}

void mrt_etcd_put(struct mrt_etcd_text *text, const char *key, const void *value, size_t size,
                  int64_t lease)
{
    separate(text);
    mrt_etcd_add(text, "{\"request_put\":{");
    add_key(text, key);
    mrt_etcd_add(text, ",");
    mrt_etcd_add_bytes(text, "value", value, size);
    mrt_etcd_add(text, ",\"lease\":\"%" PRId64 "\"}}", lease);
}

void mrt_etcd_put_again(struct mrt_etcd_text *text, const char *key, const void *value, size_t size)
{
    separate(text);
    mrt_etcd_add(text, "{\"request_put\":{");
    add_key(text, key);
    mrt_etcd_add(text, ",");
    mrt_etcd_add_bytes(text, "value", value, size);
    mrt_etcd_add(text, ",\"ignore_lease\":true}}");
}

void mrt_etcd_get(struct mrt_etcd_text *text, const char *key)
{
    separate(text);
    mrt_etcd_add(text, "{\"request_range\":{");
    add_key(text, key);
    mrt_etcd_add(text, "}}");
}

void mrt_etcd_range(struct mrt_etcd_text *text, const char *directory)
{
    mrt_etcd_add(text, "{");
    mrt_etcd_add_prefix(text, directory);
    mrt_etcd_add(text, ",\"sort_target\":\"CREATE\",\"sort_order\":\"ASCEND\"}");
}

void mrt_etcd_get_all(struct mrt_etcd_text *text, const char *directory)
{
    separate(text);
    mrt_etcd_add(text, "{\"request_range\":");
    mrt_etcd_range(text, directory);
    mrt_etcd_add(text, "}");
}

void mrt_etcd_delete(struct mrt_etcd_text *text, const char *key)
{
    separate(text);
    mrt_etcd_add(text, "{\"request_delete_range\":{");
    add_key(text, key);
    mrt_etcd_add(text, "}}");
}

/* ----------------------------------------------------------------- replies */

struct json_object *mrt_etcd_member(struct json_object *object, const char *name)
{
    struct json_object *member = NULL;
    if (!json_object_is_type(object, json_type_object))
        return NULL;
    json_object_object_get_ex(object, name, &member);
    return member;
}

int64_t mrt_etcd_number(struct json_object *object, const char *name)
{
    return json_object_get_int64(mrt_etcd_member(object, name));
}

const char *mrt_etcd_string(struct json_object *object, const char *name)
{
    struct json_object *member = mrt_etcd_member(object, name);
    return json_object_is_type(member, json_type_string) ? json_object_get_string(member) : "";
}

char *mrt_etcd_bytes(struct json_object *object, const char *name, size_t *size)
{
    const char *from = mrt_etcd_string(object, name);
    char *bytes = malloc(strlen(from) / 4 * 3 + 4), *end = bytes;
    uint32_t word = 0;
    unsigned bits = 0;
    for (; bytes && *from && *from != '='; from++) {
        const char *digit = strchr(digits, *from);
        if (!digit) {
            free(bytes);
            return NULL;
        }
        word = word << 6 | (uint32_t)(digit - digits);
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
