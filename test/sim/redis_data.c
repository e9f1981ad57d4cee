/* SPDX-License-Identifier: Apache-2.0 */
/* See redis_data.h. */
#include "redis_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

char *slice_copy(struct slice slice)
{
    char *copy = malloc(slice.size + 1);
    if (!copy)
        abort();
    memcpy(copy, slice.bytes, slice.size);
    copy[slice.size] = '\0';
    return copy;
}

bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

bool slice_is(struct slice slice, const char *text)
{
    return slice_equal(slice, slice_of(text));
}

double slice_number(struct slice slice)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)slice.size, slice.bytes);
    return strtod(text, NULL);
}

static struct slice copy_of(struct slice slice)
{
    char *bytes = malloc(slice.size + 1);
    if (!bytes)
        abort();
    if (slice.size > 0)
        memcpy(bytes, slice.bytes, slice.size);
    bytes[slice.size] = '\0';
    return (struct slice){bytes, slice.size};
}

static void forget(struct slice *slice)
{
    free((void *)(uintptr_t)slice->bytes);
    *slice = (struct slice){NULL, 0};
}

/* ------------------------------------------------------------------ keys */

void redis_delete(struct redis_data *data, struct redis_key *key)
{
    struct redis_key **link = &data->keys;
    while (*link != key)
        link = &(*link)->next;
    *link = key->next;
    for (int i = 0; i < key->count; i++) {
        forget(&key->fields[i].name);
        forget(&key->fields[i].value);
    }
    forget(&key->name);
    free(key->fields);
    free(key);
}

void redis_delete_all(struct redis_data *data)
{
    while (data->keys)
        redis_delete(data, data->keys);
}

struct redis_key *redis_find(struct redis_data *data, struct slice name, int64_t now)
{
    struct redis_key *key = data->keys;
    while (key && !slice_equal(key->name, name))
        key = key->next;
    if (key && key->ends > 0 && now > key->ends) {
        redis_delete(data, key);
        return NULL;
    }
    return key;
}

struct redis_key *redis_have(struct redis_data *data, struct slice name, enum redis_type type,
                             int64_t now)
{
    struct redis_key *key = redis_find(data, name, now);
    if (key && key->type != type)
        abort();
    if (key)
        return key;
    key = calloc(1, sizeof *key);
    if (!key)
        abort();
    key->name = copy_of(name);
    key->type = type;
    key->next = data->keys;
    data->keys = key;
    return key;
}

int redis_field(const struct redis_key *key, struct slice name)
{
    for (int i = 0; key && i < key->count; i++)
        if (slice_equal(key->fields[i].name, name))
            return i;
    return -1;
}

static struct redis_field *insert(struct redis_key *key, int index, struct slice name)
{
    if (key->count == key->room) {
        key->room = key->room ? 2 * key->room : 4;
        key->fields = realloc(key->fields, (size_t)key->room * sizeof *key->fields);
        if (!key->fields)
            abort();
    }
    struct redis_field *field = &key->fields[index];
    memmove(field + 1, field, (size_t)(key->count - index) * sizeof *field);
    key->count++;
    *field = (struct redis_field){.name = copy_of(name)};
    return field;
}

bool redis_set(struct redis_key *key, struct slice name, struct slice value)
{
    int index = redis_field(key, name);
    struct redis_field *field = index >= 0 ? &key->fields[index] : insert(key, key->count, name);
    struct slice before = field->value;
    field->value = copy_of(value);
    forget(&before);
    return index < 0;
}

static void take_out(struct redis_key *key, int index)
{
    forget(&key->fields[index].name);
    forget(&key->fields[index].value);
    key->count--;
    memmove(&key->fields[index], &key->fields[index + 1],
            (size_t)(key->count - index) * sizeof *key->fields);
}

static bool is_before(const struct redis_field *field, double score, struct slice name)
{
    size_t least = field->name.size < name.size ? field->name.size : name.size;
    int order = memcmp(field->name.bytes, name.bytes, least);
    if (field->score < score || field->score > score)
        return field->score < score;
    return order < 0 || (order == 0 && field->name.size < name.size);
}

bool redis_rank(struct redis_key *key, struct slice name, double score)
{
    int old = redis_field(key, name), index = 0;
    struct slice kept = copy_of(name);
    if (old >= 0)
        take_out(key, old);
    while (index < key->count && is_before(&key->fields[index], score, kept))
        index++;
    insert(key, index, kept)->score = score;
    forget(&kept);
    return old < 0;
}

void redis_drop(struct redis_data *data, struct redis_key *key, int index)
{
    take_out(key, index);
    if (key->count == 0)
        redis_delete(data, key);
}

/* ------------------------------------------------------------------ replies */

void reply_bytes(struct reply *reply, const char *bytes, size_t size)
{
    if (reply->room - reply->used < size) {
        reply->room = 2 * reply->room + size + 64;
        reply->bytes = realloc(reply->bytes, reply->room);
        if (!reply->bytes)
            abort();
    }
    if (size > 0)
        memcpy(reply->bytes + reply->used, bytes, size);
    reply->used += size;
}

void reply_mark(struct reply *reply, char mark, int64_t number)
{
    char text[32];
    int size = snprintf(text, sizeof text, "%c%lld\r\n", mark, (long long)number);
    reply_bytes(reply, text, (size_t)size);
}

void reply_text(struct reply *reply, struct slice text)
{
    reply_mark(reply, '$', (int64_t)text.size);
    reply_bytes(reply, text.bytes, text.size);
    reply_bytes(reply, "\r\n", 2);
}

void reply_number_text(struct reply *reply, double number)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", number);
    reply_text(reply, slice_of(text));
}

void reply_nothing(struct reply *reply)
{
    reply_mark(reply, '$', -1);
}

void reply_line(struct reply *reply, char mark, const char *line)
{
    reply_bytes(reply, &mark, 1);
    reply_bytes(reply, line, strlen(line));
    reply_bytes(reply, "\r\n", 2);
}
