/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, snapshots, locks of rows, and transactions: pg_server.h. */
#include "pg_server.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ rows */

struct pg_row *pg_find(const struct pg_rows *rows, enum pg_table table, const char *key)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->at[i].table == table && strcmp(rows->at[i].key, key) == 0)
            return &rows->at[i];
    return NULL;
}

static void *grown(void *list, int count, int *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room ? 2 * *room : 16;
    list = realloc(list, (size_t)*room * size);
    if (!list)
        abort();
    return list;
}

static void put(struct pg_rows *rows, const struct pg_row *row)
{
    struct pg_row *old = pg_find(rows, row->table, row->key), copy = *row;
    if (!old) {
        rows->at = grown(rows->at, rows->count, &rows->room, sizeof *rows->at);
        old = &rows->at[rows->count++];
    }
    *old = copy;
}

void pg_drop(struct pg_rows *rows, enum pg_table table, const char *key)
{
    struct pg_row *row = pg_find(rows, table, key);
    if (row)
        *row = rows->at[--rows->count];
}

void pg_copy(struct pg_rows *to, const struct pg_rows *from)
{
    to->count = 0;
    for (int i = 0; i < from->count; i++) {
        to->at = grown(to->at, to->count, &to->room, sizeof *to->at);
        to->at[to->count++] = from->at[i];
    }
}

void pg_line_up(const struct pg_rows *rows, const char *queue, struct pg_line *line)
{
    int64_t sum = 0;
    line->count = 0;
    for (int i = 0; i < rows->count; i++) {
        struct pg_row *row = &rows->at[i];
        if (row->table != PG_TICKET || strcmp(row->queue, queue) != 0)
            continue;
        if (line->count == PG_LINE_MAX)
            abort();
        int at = line->count++;
        for (; at > 0 && line->tickets[at - 1]->number > row->number; at--)
            line->tickets[at] = line->tickets[at - 1];
        line->tickets[at] = row;
    }
    int kept = 0;
    for (int i = 0; i < line->count; i++) {
        char session[PG_ID_SIZE];
        snprintf(session, sizeof session, "%.32s", line->tickets[i]->key);
        const struct pg_row *row = pg_find(rows, PG_SESSION, session);
        if (!row)
            continue;
        sum += line->tickets[i]->weight;
        line->tickets[kept] = line->tickets[i];
        line->sessions[kept] = row;
        line->upto[kept++] = sum;
    }
    line->count = kept;
}

/* ------------------------------------------------------------------ snapshots */

static struct pg_change *changed(const struct pg_backend *backend, enum pg_table table,
                                 const char *key)
{
    for (int i = 0; i < backend->change_count; i++)
        if (backend->changes[i].row.table == table && strcmp(backend->changes[i].row.key, key) == 0)
            return &backend->changes[i];
    return NULL;
}

static void apply(struct pg_rows *rows, const struct pg_backend *backend)
{
    for (int i = 0; i < backend->change_count; i++) {
        const struct pg_change *change = &backend->changes[i];
        if (change->gone)
            pg_drop(rows, change->row.table, change->row.key);
        else
            put(rows, &change->row);
    }
}

void pg_see(struct pg_backend *backend)
{
    pg_copy(&backend->view, &backend->server->rows);
    apply(&backend->view, backend);
}

static void note(struct pg_backend *backend, const struct pg_row *row, bool gone)
{
    struct pg_change *change = changed(backend, row->table, row->key);
    struct pg_row copy = *row;
    if (!change) {
        backend->changes = grown(backend->changes, backend->change_count, &backend->change_room,
                                 sizeof *backend->changes);
        change = &backend->changes[backend->change_count++];
    }
    *change = (struct pg_change){copy, gone};
}

void pg_write(struct pg_backend *backend, const struct pg_row *row)
{
    note(backend, row, false);
    put(&backend->view, row);
}

void pg_delete(struct pg_backend *backend, enum pg_table table, const char *key)
{
    struct pg_row row = {.table = table};
    snprintf(row.key, sizeof row.key, "%s", key);
    note(backend, &row, true);
    pg_drop(&backend->view, table, row.key);
}

/* ------------------------------------------------------------------ locks */

static bool is_same(const struct pg_lock *lock, enum pg_table table, const char *key)
{
    return lock->table == table && strcmp(lock->key, key) == 0;
}

/* A lock of another that this one would have to wait for. */
static struct pg_lock *in_the_way(const struct pg_backend *backend, const struct pg_lock *wish)
{
    struct pg_lock *lock = backend->server->locks;
    while (lock && (lock->backend == backend || !is_same(lock, wish->table, wish->key) ||
                    (!lock->exclusive && !wish->exclusive)))
        lock = lock->next;
    return lock;
}

/* Whether it waits for the other, in however many steps. */
static bool waits_for(const struct pg_backend *backend, const struct pg_backend *other, int depth)
{
    if (!backend->waits || depth > 16)
        return false;
    for (struct pg_lock *lock = backend->server->locks; lock; lock = lock->next)
        if (lock->backend != backend && is_same(lock, backend->wish.table, backend->wish.key) &&
            (lock->exclusive || backend->wish.exclusive) &&
            (lock->backend == other || waits_for(lock->backend, other, depth + 1)))
            return true;
    return false;
}

static void add_lock(struct pg_backend *backend, const struct pg_lock *wish)
{
    struct pg_lock *lock = backend->server->locks;
    while (lock && (lock->backend != backend || !is_same(lock, wish->table, wish->key)))
        lock = lock->next;
    if (!lock) {
        lock = calloc(1, sizeof *lock);
        if (!lock)
            abort();
        *lock = *wish;
        lock->backend = backend;
        lock->next = backend->server->locks;
        backend->server->locks = lock;
    }
    lock->exclusive |= wish->exclusive;
}

bool pg_is_locked(const struct pg_backend *backend, enum pg_table table, const char *key)
{
    struct pg_lock wish = {.table = table, .exclusive = true};
    snprintf(wish.key, sizeof wish.key, "%s", key);
    return in_the_way(backend, &wish);
}

bool pg_lock(struct pg_backend *backend, enum pg_table table, const char *key, bool exclusive)
{
    struct pg_lock wish = {.table = table, .exclusive = exclusive};
    snprintf(wish.key, sizeof wish.key, "%s", key);
    if (in_the_way(backend, &wish)) {
        backend->waits = true;
        backend->wish = wish;
        if (waits_for(backend, backend, 0))
            snprintf(backend->error, sizeof backend->error, "40P01");
        return false;
    }
    backend->waits = false;
    add_lock(backend, &wish);
    if (changed(backend, table, wish.key))
        return true;
    const struct pg_row *now = pg_find(&backend->server->rows, table, wish.key);
    if (now)
        put(&backend->view, now);
    else
        pg_drop(&backend->view, table, wish.key);
    return true;
}

bool pg_holds(const struct pg_backend *backend, enum pg_table table, const char *key)
{
    const struct pg_lock *lock = backend->server->locks;
    while (lock &&
           (lock->backend != backend || lock->table != table || strcmp(lock->key, key) != 0))
        lock = lock->next;
    return lock;
}

static void unlock_all(struct pg_backend *backend)
{
    struct pg_lock **link = &backend->server->locks, *lock;
    while ((lock = *link)) {
        if (lock->backend != backend) {
            link = &lock->next;
            continue;
        }
        *link = lock->next;
        free(lock);
    }
}

/* ------------------------------------------------------------------ transactions */

void pg_notify(struct pg_backend *backend, const char *channel, const char *format, ...)
{
    va_list arguments;
    backend->notices = grown(backend->notices, backend->notice_count, &backend->notice_room,
                             sizeof *backend->notices);
    struct pg_notice *notice = &backend->notices[backend->notice_count++];
    snprintf(notice->channel, sizeof notice->channel, "%s", channel);
    va_start(arguments, format);
    vsnprintf(notice->text, sizeof notice->text, format, arguments);
    va_end(arguments);
}

static void turn_ear(struct pg_backend *backend, const struct pg_ear *ear)
{
    int i = 0;
    while (i < backend->process.ear_count &&
           strcmp(backend->process.ears[i].channel, ear->channel) != 0)
        i++;
    if (i == (int)(sizeof backend->process.ears / sizeof backend->process.ears[0]))
        abort();
    if (i == backend->process.ear_count)
        backend->process.ear_count++;
    backend->process.ears[i] = *ear;
    if (!ear->on)
        backend->process.ears[i] = backend->process.ears[--backend->process.ear_count];
}

static bool hears(const struct pg_backend *backend, const char *channel)
{
    for (int i = 0; i < backend->process.ear_count; i++)
        if (strcmp(backend->process.ears[i].channel, channel) == 0)
            return true;
    return false;
}

static void finish(struct pg_backend *backend)
{
    unlock_all(backend);
    backend->change_count = backend->notice_count = backend->new_ear_count = 0;
    backend->in_transaction = backend->hurries = backend->waits = backend->has_view = false;
    pg_wake(backend->server);
}

/* A commit that waits for the disk takes all before it there. */
static void write_log(struct pg_backend *backend)
{
    struct pg_server *server = backend->server;
    if (backend->change_count == 0)
        return;
    if (backend->hurries && !server->hurried)
        pg_copy(&server->durable, &server->rows);
    server->hurried = backend->hurries;
}

void pg_commit(struct pg_backend *backend)
{
    struct pg_server *server = backend->server;
    write_log(backend);
    apply(&server->rows, backend);
    for (int i = 0; i < backend->new_ear_count; i++)
        turn_ear(backend, &backend->new_ears[i]);
    for (int i = 0; i < backend->notice_count; i++)
        for (struct pg_backend *b = server->backends; b; b = b->next)
            if (hears(b, backend->notices[i].channel))
                pg_tell(b, &backend->notices[i]);
    server->cluster->world->server_changed = true;
    finish(backend);
}

void pg_abort(struct pg_backend *backend)
{
    finish(backend);
}
