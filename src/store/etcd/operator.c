/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_list, mortise_revoke and mortise_break. A list is read in pages of one revision, so all
 * rows are of one instant. A list of all names shows queues in which a ticket of ours is, or a key
 * named after its lease, as Go's concurrency package and etcdctl name theirs.
 *
 * A request to give a lock up is a number in the ticket's value, which only a user with the right
 * to write the queue's keys can raise. Another program's key has none.
 */
#include "store/etcd/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 1000
#define REVOKE_TRIES 10

/* ------------------------------------------------------------------ reading */

/* A key of a list, and the name of its queue. */
struct row {
    char *queue;
    struct json_object *kv;
};

struct rows {
    struct row *all;
    size_t count, room;
};

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->all[i].queue);
        json_object_put(rows->all[i].kv);
    }
    free(rows->all);
}

static bool add_row(struct rows *rows, struct json_object *kv)
{
    size_t size = 0;
    char *key = mrt_rest_bytes(kv, "key", &size);
    char *slash = key ? memrchr(key, '/', size) : NULL;
    if (key && (!slash || strlen(key) != size)) {
        free(key); /* in no queue */
        return true;
    }
    if (key && rows->count == rows->room) {
        size_t room = 2 * rows->room + 64;
        struct row *all = realloc(rows->all, room * sizeof *all);
        if (all) {
            rows->all = all;
            rows->room = room;
        }
    }
    if (!key || rows->count == rows->room) {
        free(key);
        return false;
    }
    *slash = '\0';
    rows->all[rows->count++] = (struct row){key, json_object_get(kv)};
    return true;
}

static bool add_page(struct rows *rows, struct json_object *kvs, size_t count)
{
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++)
        fine = add_row(rows, json_object_array_get_idx(kvs, i));
    return fine;
}

/* Requests the keys from `first` to those that begin with `prefix`. */
static int read_page(struct mrt_etcd_operation *operation, const char *prefix,
                     struct json_object *first, int64_t revision)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{");
    if (first) { /* what comes after it; the end is the prefix's */
        size_t size = 0;
        char *key = mrt_rest_bytes(first, "key", &size);
        if (key)
            mrt_rest_add_bytes(&text, "key", key, size + 1);
        text.failed |= !key;
        free(key);
        mrt_rest_add(&text, ",");
        mrt_etcd_add_end(&text, prefix);
    } else {
        mrt_etcd_add_prefix(&text, prefix);
    }
    mrt_rest_add(&text, ",\"limit\":\"%d\",\"revision\":\"%" PRId64 "\"}", PAGE, revision);
    return mrt_etcd_ask(operation, "kv/range", &text);
}

static int read_rows(struct mrt_etcd_operation *operation, const char *prefix, struct rows *rows)
{
    int64_t revision = 0;
    struct json_object *first = NULL;
    for (bool more = true; more;) {
        int error = read_page(operation, prefix, first, revision);
        json_object_put(first);
        first = NULL;
        if (error)
            return error;
        struct json_object *kvs = mrt_rest_member(operation->ask.json, "kvs");
        size_t count =
            json_object_is_type(kvs, json_type_array) ? json_object_array_length(kvs) : 0;
        if (!add_page(rows, kvs, count))
            return MORTISE_ENOMEM;
        if (revision == 0)
            revision = mrt_rest_number(mrt_rest_member(operation->ask.json, "header"), "revision");
        more = count > 0 && json_object_get_boolean(mrt_rest_member(operation->ask.json, "more"));
        if (more)
            first = json_object_get(json_object_array_get_idx(kvs, count - 1));
    }
    return MORTISE_OK;
}

/* ------------------------------------------------------------------ showing */

static bool is_named_after_lease(const struct mrt_etcd_entry *entry)
{
    char name[24];
    snprintf(name, sizeof name, "%" PRIx64, (uint64_t)entry->lease);
    return entry->lease != 0 && strcmp(name, entry->name) == 0;
}

static bool is_queue(const struct mrt_etcd_view *view)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->entries[i].ours || is_named_after_lease(&view->entries[i]))
            return true;
    return false;
}

static bool show_entry(const char *queue, const struct mrt_etcd_entry *entry,
                       const struct mrt_etcd_ticket *kind, uint32_t place,
                       mrt_listed_callback callback, void *argument)
{
    char claim[MRT_CLAIM_SIZE] = "", label[MRT_OWNER_SIZE];
    snprintf(label, sizeof label, "%s%.64s", entry->ours ? "" : "key ", entry->name);
    if (entry->ours)
        mrt_claim_format(entry->ticket.id, claim);
    const struct mrt_listed listed = {
        .entry = {.size = sizeof(mortise_entry),
                  .name = queue,
                  .kind = entry->ours ? entry->ticket.kind : kind->kind,
                  .label = entry->ours ? entry->ticket.label : label,
                  .fence = mrt_etcd_fence(entry),
                  .place = place,
                  .since_wall_ms = entry->ticket.since,
                  .weight = mrt_etcd_weight(entry, kind->capacity),
                  .capacity = kind->capacity,
                  .detached = entry->lease == 0},
        .claim = claim};
    return callback(argument, &listed) == 0;
}

static bool show_view(const char *queue, const struct mrt_etcd_view *view,
                      mrt_listed_callback callback, void *argument)
{
    static const struct mrt_etcd_ticket mutex = {.kind = "mutex", .capacity = 1};
    const struct mrt_etcd_ticket *kind = mrt_etcd_view_kind(view, NULL);
    uint32_t waiting = 0;
    kind = kind ? kind : &mutex;
    for (size_t i = 0; i < view->count; i++) {
        const struct mrt_etcd_entry *entry = &view->entries[i];
        bool holds = waiting == 0 && mrt_etcd_grants(view, entry, kind->capacity);
        if (!show_entry(queue, entry, kind, holds ? 0 : ++waiting, callback, argument))
            return false;
    }
    return true;
}

/* The rows of one queue, from `from` to before `to`. */
static bool show_queue(const struct row *from, const struct row *to, bool always,
                       mrt_listed_callback callback, void *argument)
{
    struct mrt_etcd_view view = {0};
    char directory[MRT_ETCD_NAME_SIZE];
    bool go_on = true;
    struct json_object *range = json_object_new_object(), *kvs = json_object_new_array();
    int length = snprintf(directory, sizeof directory, "%s/", from->queue);
    bool fine = range && kvs && length > 0 && (size_t)length < sizeof directory;
    for (const struct row *row = from; fine && row < to; row++)
        json_object_array_add(kvs, json_object_get(row->kv));
    if (fine && json_object_object_add(range, "kvs", kvs) == 0) {
        if (mrt_etcd_view_read(&view, range, 1, directory) && (always || is_queue(&view)))
            go_on = show_view(from->queue, &view, callback, argument);
    } else {
        json_object_put(kvs);
    }
    mrt_etcd_view_free(&view);
    json_object_put(range);
    return go_on;
}

static int compare_rows(const void *one, const void *other)
{
    return strcmp(((const struct row *)one)->queue, ((const struct row *)other)->queue);
}

static void show_rows(const struct mrt_etcd_store *store, struct rows *rows, const char *name,
                      const char *prefix, mrt_listed_callback callback, void *argument)
{
    bool go_on = true;
    qsort(rows->all, rows->count, sizeof rows->all[0], compare_rows);
    for (size_t i = 0, end; i < rows->count && go_on; i = end) {
        const char *queue = rows->all[i].queue;
        for (end = i + 1; end < rows->count && strcmp(rows->all[end].queue, queue) == 0;)
            end++;
        bool wanted = name ? strcmp(queue, name) == 0 : strncmp(queue, prefix, strlen(prefix)) == 0;
        if (wanted && strncmp(queue, store->address.base, strlen(store->address.base)) != 0)
            go_on = show_queue(&rows->all[i], &rows->all[end], name, callback, argument);
    }
}

int mrt_etcd_list(struct mrt_store *port, const char *name, const char *prefix,
                  mrt_listed_callback callback, void *argument)
{
    struct mrt_etcd_operation operation;
    struct rows rows = {0};
    char directory[MRT_ETCD_NAME_SIZE];
    snprintf(directory, sizeof directory, name ? "%s/" : "%s", name ? name : prefix ? prefix : "");
    int error = mrt_etcd_operation_open(&operation, port);
    if (error == MORTISE_OK)
        error = read_rows(&operation, directory, &rows);
    if (error == MORTISE_OK && rows.count > 0)
        show_rows(operation.store, &rows, name, prefix ? prefix : "", callback, argument);
    free_rows(&rows);
    mrt_etcd_operation_close(&operation);
    return error;
}

/* ------------------------------------------------------------ revoke, break */

/* The queue as it is, and its directory. */
static int read_queue(struct mrt_etcd_operation *operation, const char *name,
                      char directory[MRT_ETCD_NAME_SIZE], struct mrt_etcd_view *view)
{
    struct mrt_rest_text text = {0};
    snprintf(directory, MRT_ETCD_NAME_SIZE, "%s/", name);
    mrt_etcd_range(&text, directory);
    *view = (struct mrt_etcd_view){0};
    int error = mrt_etcd_ask(operation, "kv/range", &text);
    if (error == MORTISE_OK && !mrt_etcd_view_read(view, operation->ask.json, 1, directory))
        error = mrt_error(MORTISE_ESTORE, "etcd: the reply to a list is malformed");
    return error;
}

/* A transaction of one condition and one change; `done` says whether it was made. */
static int commit(struct mrt_etcd_operation *operation, struct mrt_rest_text *text, bool *done)
{
    mrt_rest_add(text, "]}");
    int error = mrt_etcd_ask(operation, "kv/txn", text);
    *done = json_object_get_boolean(mrt_rest_member(operation->ask.json, "succeeded"));
    if (error && operation->ask.unknown)
        return mrt_error(MORTISE_EUNKNOWN, "etcd: no answer from %s: it may have been done",
                         operation->store->address.servers.shown);
    return error;
}

int mrt_etcd_break(struct mrt_store *port, const char *name, uint64_t fence)
{
    struct mrt_etcd_operation operation;
    struct mrt_etcd_view view = {0};
    char directory[MRT_ETCD_NAME_SIZE], key[MRT_ETCD_NAME_SIZE];
    bool done = false;
    int error = mrt_etcd_operation_open(&operation, port);
    if (error == MORTISE_OK)
        error = read_queue(&operation, name, directory, &view);
    for (size_t i = 0; error == MORTISE_OK && !done && i < view.count; i++) {
        const struct mrt_etcd_entry *entry = &view.entries[i];
        struct mrt_rest_text text = {0};
        int length = snprintf(key, sizeof key, "%s%s", directory, entry->name);
        if (mrt_etcd_fence(entry) != fence || length < 0 || (size_t)length >= sizeof key)
            continue;
        mrt_rest_add(&text, "{\"compare\":[");
        mrt_etcd_if(&text, key, "CREATE", entry->created);
        mrt_rest_add(&text, "],\"success\":[");
        mrt_etcd_delete(&text, key);
        error = commit(&operation, &text, &done);
    }
    mrt_etcd_view_free(&view);
    mrt_etcd_operation_close(&operation);
    return error == MORTISE_OK && !done ? MORTISE_ENOTHELD : error;
}

/* Raises the number of a holder's request; `done` false: it has changed meanwhile. */
static int revoke_one(struct mrt_etcd_operation *operation, const char *directory,
                      const struct mrt_etcd_entry *entry, bool *done)
{
    char key[MRT_ETCD_NAME_SIZE], *value = malloc(entry->value_size + MRT_ETCD_LINE_SIZE);
    struct mrt_rest_text text = {0};
    struct mrt_etcd_ticket ticket = entry->ticket;
    if (!value)
        return MORTISE_ENOMEM;
    ticket.revoked++;
    memcpy(value, entry->value, ticket.value_size);
    size_t size = ticket.value_size;
    size += mrt_etcd_ticket_format(&ticket, value + size);
    snprintf(key, sizeof key, "%s%s", directory, entry->name);
    mrt_rest_add(&text, "{\"compare\":[");
    mrt_etcd_if(&text, key, "MOD", entry->modified);
    mrt_rest_add(&text, "],\"success\":[");
    mrt_etcd_put_again(&text, key, value, size);
    free(value);
    return commit(operation, &text, done);
}

/* All holders, or that of this fence. `again`: one had changed meanwhile. */
static int revoke_all(struct mrt_etcd_operation *operation, const char *directory,
                      const struct mrt_etcd_view *view, uint64_t fence, bool *any, bool *again)
{
    const struct mrt_etcd_ticket *kind = mrt_etcd_view_kind(view, NULL);
    for (size_t i = 0; i < view->count; i++) {
        const struct mrt_etcd_entry *entry = &view->entries[i];
        bool done = false;
        if (!mrt_etcd_grants(view, entry, kind ? kind->capacity : 1))
            break;
        if (fence > 0 && mrt_etcd_fence(entry) != fence)
            continue;
        if (!entry->ours)
            return mrt_error(MORTISE_ENOTSUPPORTED,
                             "etcd: %.100s is held by another program, which takes no requests",
                             directory);
        int error = revoke_one(operation, directory, entry, &done);
        if (error)
            return error;
        *any |= done;
        *again |= !done;
    }
    return MORTISE_OK;
}

int mrt_etcd_revoke(struct mrt_store *port, const char *name, uint64_t fence)
{
    struct mrt_etcd_operation operation;
    struct mrt_etcd_view view = {0};
    char directory[MRT_ETCD_NAME_SIZE];
    bool any = false, again = true;
    int error = mrt_etcd_operation_open(&operation, port);
    for (int i = 0; error == MORTISE_OK && again && i < REVOKE_TRIES; i++) {
        again = false;
        error = read_queue(&operation, name, directory, &view);
        if (error == MORTISE_OK)
            error = revoke_all(&operation, directory, &view, fence, &any, &again);
        mrt_etcd_view_free(&view);
    }
    mrt_etcd_operation_close(&operation);
    return error == MORTISE_OK && !any ? MORTISE_ENOTHELD : error;
}
