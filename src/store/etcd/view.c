/* SPDX-License-Identifier: Apache-2.0 */
/* See view.h. Invariant: entries are in the order of `created`. */
#include "store/etcd/view.h"

#include "core/rule.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TOO_LARGE (INT64_C(1) << (62 - MRT_ETCD_FENCE_BITS))

static void free_entry(struct mrt_etcd_entry *entry)
{
    free(entry->name);
    free(entry->value);
}

void mrt_etcd_view_free(struct mrt_etcd_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        free_entry(&view->entries[i]);
    free(view->entries);
    *view = (struct mrt_etcd_view){0};
}

/* The part of a key below a directory, to be freed; NULL: no memory, or it is not there. */
static char *name_of(struct json_object *kv, const char *directory, bool *below)
{
    size_t size = 0, length = strlen(directory);
    char *key = mrt_rest_bytes(kv, "key", &size);
    *below = key && size > length && memcmp(key, directory, length) == 0 &&
             !memchr(key + length, '/', size - length) && strlen(key) == size;
    if (*below)
        memmove(key, key + length, size - length + 1);
    return key;
}

/* An entry of a key and its value; false: no memory, or malformed. */
static bool read_entry(struct mrt_etcd_entry *entry, struct json_object *kv, char *name)
{
    *entry = (struct mrt_etcd_entry){.name = name,
                                     .created = mrt_rest_number(kv, "create_revision"),
                                     .modified = mrt_rest_number(kv, "mod_revision"),
                                     .lease = mrt_rest_number(kv, "lease")};
    struct mrt_id id;
    entry->value = mrt_rest_bytes(kv, "value", &entry->value_size);
    if (!entry->value)
        return false;
    if (entry->created < 0 || entry->created >= FIRST_TOO_LARGE)
        return false;
    entry->ours = mrt_id_parse(name, &id) &&
                  mrt_etcd_ticket_parse(entry->value, entry->value_size, &entry->ticket);
    return true;
}

static bool grow(struct mrt_etcd_view *view)
{
    if (view->count < view->room)
        return true;
    size_t room = 2 * view->room + 8;
    struct mrt_etcd_entry *entries = realloc(view->entries, room * sizeof *entries);
    if (!entries)
        return false;
    view->entries = entries;
    view->room = room;
    return true;
}

/* Puts the key's entry in its place. */
static bool add(struct mrt_etcd_view *view, struct json_object *kv, char *name)
{
    struct mrt_etcd_entry entry;
    if (!read_entry(&entry, kv, name) || !grow(view)) {
        free_entry(&entry);
        return false;
    }
    size_t at = view->count;
    while (at > 0 && view->entries[at - 1].created > entry.created)
        at--;
    memmove(&view->entries[at + 1], &view->entries[at],
            (view->count++ - at) * sizeof view->entries[0]);
    view->entries[at] = entry;
    return true;
}

bool mrt_etcd_view_read(struct mrt_etcd_view *view, struct json_object *range, int64_t revision,
                        const char *directory)
{
    struct json_object *kvs = mrt_rest_member(range, "kvs");
    size_t count = json_object_is_type(kvs, json_type_array) ? json_object_array_length(kvs) : 0;
    *view = (struct mrt_etcd_view){.revision = revision};
    bool fine = json_object_is_type(range, json_type_object);
    for (size_t i = 0; fine && i < count; i++) {
        bool below;
        struct json_object *kv = json_object_array_get_idx(kvs, i);
        char *name = name_of(kv, directory, &below);
        fine = name && (!below || add(view, kv, name));
        if (!below)
            free(name);
    }
    if (!fine)
        mrt_etcd_view_free(view);
    return fine;
}

static void drop(struct mrt_etcd_view *view, const char *name)
{
    for (size_t i = 0; i < view->count; i++) {
        if (strcmp(view->entries[i].name, name) != 0)
            continue;
        free_entry(&view->entries[i]);
        memmove(&view->entries[i], &view->entries[i + 1],
                (--view->count - i) * sizeof view->entries[0]);
        return;
    }
}

bool mrt_etcd_view_change(struct mrt_etcd_view *view, struct json_object *event,
                          const char *directory)
{
    bool below;
    struct json_object *kv = mrt_rest_member(event, "kv");
    int64_t revision = mrt_rest_number(kv, "mod_revision");
    char *name = name_of(kv, directory, &below);
    if (!name || !below || revision <= view->revision) {
        bool fine = name;
        free(name);
        return fine;
    }
    drop(view, name);
    if (strcmp(mrt_rest_string(event, "type"), "DELETE") != 0)
        return add(view, kv, name);
    free(name);
    return true;
}

const struct mrt_etcd_entry *mrt_etcd_view_find(const struct mrt_etcd_view *view, struct mrt_id id,
                                                int64_t lease)
{
    for (size_t i = 0; i < view->count; i++) {
        const struct mrt_etcd_entry *entry = &view->entries[i];
        if (entry->ours && entry->lease == lease && mrt_id_equal(entry->ticket.id, id))
            return entry;
    }
    return NULL;
}

uint64_t mrt_etcd_weight(const struct mrt_etcd_entry *entry, uint64_t capacity)
{
    return entry->ours ? entry->ticket.weight : capacity;
}

uint64_t mrt_etcd_weight_ahead(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *entry,
                               uint64_t capacity)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < view->count && &view->entries[i] != entry; i++)
        if (__builtin_add_overflow(sum, mrt_etcd_weight(&view->entries[i], capacity), &sum))
            return UINT64_MAX;
    return sum;
}

uint64_t mrt_etcd_place(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *entry)
{
    return (uint64_t)(entry - view->entries);
}

bool mrt_etcd_grants(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *entry,
                     uint64_t capacity)
{
    return mrt_rule_grants(mrt_etcd_weight_ahead(view, entry, capacity),
                           mrt_etcd_weight(entry, capacity), capacity);
}

const struct mrt_etcd_ticket *mrt_etcd_view_kind(const struct mrt_etcd_view *view,
                                                 const struct mrt_etcd_entry *entry)
{
    for (size_t i = 0; i < view->count && &view->entries[i] != entry; i++)
        if (view->entries[i].ours)
            return &view->entries[i].ticket;
    return NULL;
}

uint64_t mrt_etcd_fence(const struct mrt_etcd_entry *entry)
{
    return (uint64_t)entry->created << MRT_ETCD_FENCE_BITS;
}
