/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. A text that could not grow says so in the end, and is not sent. */
#include "store/etcd/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void separate(struct mrt_rest_text *text)
{
    if (text->length > 0 && text->bytes[text->length - 1] != '[')
        mrt_rest_add(text, ",");
}

static void add_key(struct mrt_rest_text *text, const char *key)
{
    mrt_rest_add_bytes(text, "key", key, strlen(key));
}

void mrt_etcd_add_end(struct mrt_rest_text *text, const char *prefix)
{
    size_t length = strlen(prefix);
    char *end = strdup(prefix);
    text->failed |= !end;
    if (!end)
        return;
    if (length > 0)
        end[length - 1]++; /* names are UTF-8: no byte of them is 255 */
    mrt_rest_add_bytes(text, "range_end", end, length > 0 ? length : 1); /* 0: all keys */
    free(end);
}

void mrt_etcd_add_prefix(struct mrt_rest_text *text, const char *prefix)
{
    mrt_rest_add_bytes(text, "key", prefix, *prefix ? strlen(prefix) : 1);
    mrt_rest_add(text, ",");
    mrt_etcd_add_end(text, prefix);
}

/* The name of a number in a condition is not always that of its kind. */
static const char *member_of(const char *target)
{
    return strcmp(target, "CREATE") == 0 ? "create_revision"
           : strcmp(target, "MOD") == 0  ? "mod_revision"
                                         : "lease";
}

void mrt_etcd_if(struct mrt_rest_text *text, const char *key, const char *target, int64_t value)
{
    separate(text);
    mrt_rest_add(text, "{");
    add_key(text, key);
    mrt_rest_add(text, ",\"target\":\"%s\",\"result\":\"EQUAL\",\"%s\":\"%" PRId64 "\"}", target,
                 member_of(target), value);
}

void mrt_etcd_if_all(struct mrt_rest_text *text, const char *directory, const char *target,
                     const char *result, int64_t value)
{
    separate(text);
    mrt_rest_add(text, "{");
    mrt_etcd_add_prefix(text, directory);
    mrt_rest_add(text, ",\"target\":\"%s\",\"result\":\"%s\",\"%s\":\"%" PRId64 "\"}", target,
                 result, member_of(target), value);
}

void mrt_etcd_put(struct mrt_rest_text *text, const char *key, const void *value, size_t size,
                  int64_t lease)
{
    separate(text);
    mrt_rest_add(text, "{\"request_put\":{");
    add_key(text, key);
    mrt_rest_add(text, ",");
    mrt_rest_add_bytes(text, "value", value, size);
    mrt_rest_add(text, ",\"lease\":\"%" PRId64 "\"}}", lease);
}

void mrt_etcd_put_again(struct mrt_rest_text *text, const char *key, const void *value, size_t size)
{
    separate(text);
    mrt_rest_add(text, "{\"request_put\":{");
    add_key(text, key);
    mrt_rest_add(text, ",");
    mrt_rest_add_bytes(text, "value", value, size);
    mrt_rest_add(text, ",\"ignore_lease\":true}}");
}

void mrt_etcd_get(struct mrt_rest_text *text, const char *key)
{
    separate(text);
    mrt_rest_add(text, "{\"request_range\":{");
    add_key(text, key);
    mrt_rest_add(text, "}}");
}

void mrt_etcd_range(struct mrt_rest_text *text, const char *directory)
{
    mrt_rest_add(text, "{");
    mrt_etcd_add_prefix(text, directory);
    mrt_rest_add(text, ",\"sort_target\":\"CREATE\",\"sort_order\":\"ASCEND\"}");
}

void mrt_etcd_get_all(struct mrt_rest_text *text, const char *directory)
{
    separate(text);
    mrt_rest_add(text, "{\"request_range\":");
    mrt_etcd_range(text, directory);
    mrt_rest_add(text, "}");
}

void mrt_etcd_delete(struct mrt_rest_text *text, const char *key)
{
    separate(text);
    mrt_rest_add(text, "{\"request_delete_range\":{");
    add_key(text, key);
    mrt_rest_add(text, "}}");
}
