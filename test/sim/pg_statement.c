/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's statements, by name: sessions, cells, and what leads to the ones of queues. Each is
 * written down from its text in store/postgres/statements.c. One that has to wait for a lock is
 * done anew from its beginning, with the rows as it saw them then and what it has changed since.
 */
#include "pg_server.h"

#include "store/postgres/internal.h"
#include "store/sql/driver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ parameters and answers */

/* Each is a length of 4 bytes, -1 for NULL, the bytes, and a zero. */
static const char *bound(const struct pg_backend *backend, int parameter, int32_t *size)
{
    const char *at = backend->bound.bytes;
    for (;; parameter--) {
        memcpy(size, at, sizeof *size);
        if (parameter == 1)
            return at + sizeof *size;
        at += sizeof *size + (*size > 0 ? (size_t)*size : 0) + 1;
    }
}

bool pg_is_null(const struct pg_backend *backend, int parameter)
{
    int32_t size;
    bound(backend, parameter, &size);
    return size < 0;
}

const char *pg_text(const struct pg_backend *backend, int parameter)
{
    int32_t size;
    return bound(backend, parameter, &size);
}

int64_t pg_number(const struct pg_backend *backend, int parameter)
{
    return (int64_t)strtoull(pg_text(backend, parameter), NULL, 10);
}

void pg_column_text(struct pg_backend *backend, const char *text)
{
    if (backend->column_count == PG_COLUMNS_MAX)
        abort();
    backend->columns[backend->column_count].null = !*text;
    snprintf(backend->columns[backend->column_count].text, sizeof backend->columns[0].text, "%s",
             text);
    backend->column_count++;
}

void pg_column(struct pg_backend *backend, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    pg_column_text(backend, text);
}

/* ------------------------------------------------------------------ what the text says */

#ifdef MRT_DEFECTS
#include "texts.h"

/* Mutants of statements: what stands there, and what in its place. */
static const struct {
    int mutant;
    enum mrt_pg_statement statement;
    const char *right, *wrong;
} mistakes[] = {
    {SIM_TEXT_SQL_PG_NO_NOTIFY, MRT_PG_REMOVE, "uuid_send(session))", "uuid_send(id))"},
    {SIM_TEXT_SQL_PG_HURRIED_PAST, MRT_PG_REMOVE,
     " AND NOT EXISTS (SELECT FROM front WHERE number <> left_number)", ""},
    {SIM_TEXT_SQL_PG_GONE_COUNTS, MRT_PG_REMOVE, " AS remains", " AS remainz"},
    {SIM_TEXT_SQL_PG_LAST_UNLOCKED, MRT_PG_REMOVE_LAST, " FOR NO KEY UPDATE", ""},
    {SIM_TEXT_SQL_PG_LAST_UNCHECKED, MRT_PG_REMOVE_LAST, " AND number = $5 FOR", " FOR"},
    {SIM_TEXT_SQL_PG_CHANGE_UNTOLD, MRT_PG_REMOVE, MRT_PG_SEEN, "mortise_unseen_"},
    {SIM_TEXT_SQL_PG_UNLOCKED, MRT_PG_LOCK_QUEUE, " FOR NO KEY UPDATE", ""},
    {SIM_TEXT_SQL_PG_ONE_STATEMENT, MRT_PG_BUMP, "DO UPDATE", "DO NOTHING --"},
    {SIM_TEXT_SQL_PG_ONE_STATEMENT, MRT_PG_APPEND, "q.number", "nextval('fence')"},
    {SIM_TEXT_SQL_PG_LINGER_UNTOLD, MRT_PG_APPEND, "WHERE linger", "WHERE false"},
    {SIM_TEXT_SQL_PG_FROZEN_NOW, MRT_PG_RENEW, "clock_timestamp()", "now()"},
    {SIM_TEXT_SQL_PG_OLD_EPOCH, MRT_PG_APPEND, "epoch = $9", "true"},
    {SIM_TEXT_SQL_PG_SPLIT, MRT_PG_APPEND, "xmin = pg_current_xact_id()::xid", "true"},
    {SIM_TEXT_SQL_PG_REAP_ALL, MRT_PG_REAP, "s.expires <= clock_timestamp()", "true"},
    {SIM_TEXT_SQL_PG_CELL_BLIND, MRT_PG_CELL_WRITE, "END = $2::numeric", "END >= 0"},
};

static const char *mistaken(int statement, const char *text)
{
    static char copy[4096];
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        if (mistakes[i].mutant != mrt_mutant_on || (int)mistakes[i].statement != statement)
            continue;
        const char *at = strstr(text, mistakes[i].right);
        if (!at)
            _exit(0); /* it does not say that any more: nothing is found */
        snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text), text, mistakes[i].wrong,
                 at + strlen(mistakes[i].right));
        text = copy;
    }
    return text;
}
#else
static const char *mistaken(int statement, const char *text)
{
    (void)statement;
    return text;
}
#endif

bool pg_says(const struct pg_backend *backend, const char *clause)
{
    return strstr(backend->text, clause);
}

int64_t pg_now(const struct pg_backend *backend)
{
    return pg_says(backend, "clock_timestamp()") ? pg_clock(backend->server) : backend->began;
}

void pg_show(struct pg_backend *backend, const char *queue)
{
    char channel[PG_CHANNEL_SIZE];
    snprintf(channel, sizeof channel, MRT_PG_SEEN "%s", backend->schema);
    if (pg_says(backend, MRT_PG_SEEN))
        pg_notify(backend, channel, "%s", queue);
}

static bool has_tickets(const struct pg_rows *rows, const char *session, const char *queue)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->at[i].table == PG_TICKET && strncmp(rows->at[i].key, session, 32) == 0 &&
            (!queue || strcmp(rows->at[i].queue, queue) == 0))
            return true;
    return false;
}

/* ------------------------------------------------------------------ connections */

/* Whether a setting is for this transaction alone: another process was told of. */
static bool is_brief(const struct pg_backend *backend, int parameter)
{
    int64_t told = pg_number(backend, parameter);
    return told != 0 && (told != backend->process.id || !pg_says(backend, "pg_backend_pid()"));
}

static void set_schema(struct pg_backend *backend, const char *schema, bool brief)
{
    snprintf(backend->schema, sizeof backend->schema, "%s", schema);
    if (!brief)
        memcpy(backend->process.schema, backend->schema, sizeof backend->schema);
}

static void set_patience(struct pg_backend *backend, int64_t patience_ms, bool brief)
{
    backend->patience_ms = patience_ms;
    if (!brief)
        backend->process.patience_ms = patience_ms;
}

static enum pg_end do_pin(struct pg_backend *backend)
{
    set_schema(backend, "", is_brief(backend, 1));
    return PG_DONE;
}

static enum pg_end do_setup(struct pg_backend *backend)
{
    set_patience(backend, pg_number(backend, 1), is_brief(backend, 4));
    return PG_DONE;
}

static enum pg_end do_enter(struct pg_backend *backend)
{
    set_schema(backend, pg_text(backend, 1), is_brief(backend, 3));
    return PG_DONE;
}

static enum pg_end do_brief(struct pg_backend *backend)
{
    char text[sizeof backend->columns[0].text];
    set_schema(backend, pg_text(backend, 1), true);
    set_patience(backend, pg_number(backend, 2), true);
    snprintf(text, sizeof text, "%s%s%s", pg_text(backend, 4), pg_text(backend, 5),
             pg_text(backend, 6));
    pg_column_text(backend, text);
    return PG_DONE;
}

/* Whether somebody has left something in it. */
static bool is_used(const struct pg_process *process)
{
    for (int i = 0; i < MRT_PG_STATEMENT_COUNT; i++)
        if (process->prepared[i])
            return true;
    return process->ear_count > 0;
}

static enum pg_end do_identify(struct pg_backend *backend)
{
    pg_column(backend, mrt_sql_schema_version);
    pg_column(backend, backend->process.id);
    pg_column(backend, !pg_is_primary(backend->server));
    pg_column(backend, 1); /* no commit waits for a standby */
    pg_column(backend, is_used(&backend->process));
    return PG_DONE;
}

static enum pg_end do_async(struct pg_backend *backend)
{
    backend->hurries =
        !pg_says(backend, "NOT EXISTS (SELECT FROM ticket") ||
        (pg_number(backend, 2) == 0 && !has_tickets(&backend->view, pg_text(backend, 1), NULL));
    return PG_DONE;
}

/* ------------------------------------------------------------------ sessions */

static void prolong(const struct pg_backend *backend, struct pg_row *session, int64_t lease_us)
{
    session->expires = pg_now(backend) + lease_us;
    session->lives_until = backend->server->cluster->world->now + lease_us * MRT_MICROSECOND;
}

static enum pg_end do_start(struct pg_backend *backend)
{
    struct pg_row row = {.table = PG_SESSION};
    bool old = false;
    if (!pg_lock(backend, PG_SESSION, pg_text(backend, 1), true))
        return PG_WAITS;
    const struct pg_row *there = pg_find(&backend->view, PG_SESSION, pg_text(backend, 1));
    if (there)
        row = *there;
    else
        snprintf(row.key, sizeof row.key, "%s", pg_text(backend, 1));
    row.peer = backend->peer;
    if (pg_number(backend, 2) > row.epoch || !pg_says(backend, "greatest(session.epoch"))
        row.epoch = pg_number(backend, 2);
    prolong(backend, &row, pg_number(backend, 3));
    for (int i = 0; i < backend->view.count; i++)
        old |= backend->view.at[i].table == PG_SESSION &&
               backend->view.at[i].expires < pg_now(backend) - 60000000;
    pg_write(backend, &row);
    pg_column(backend, old);
    return PG_DONE;
}

static enum pg_end do_resume(struct pg_backend *backend)
{
    if (!pg_lock(backend, PG_SESSION, pg_text(backend, 1), true))
        return PG_WAITS;
    const struct pg_row *there = pg_find(&backend->view, PG_SESSION, pg_text(backend, 1));
    if (!there || (pg_says(backend, "epoch < $2") && there->epoch >= pg_number(backend, 2)))
        return PG_DONE;
    struct pg_row row = *there;
    row.epoch = pg_number(backend, 2);
    pg_write(backend, &row);
    pg_column(backend, 1);
    return PG_DONE;
}

static enum pg_end lock_one(struct pg_backend *backend, enum pg_table table)
{
    if (!pg_says(backend, "FOR NO KEY UPDATE") ||
        !pg_find(&backend->view, table, pg_text(backend, 1)))
        return PG_DONE;
    return pg_lock(backend, table, pg_text(backend, 1), true) ? PG_DONE : PG_WAITS;
}

static enum pg_end do_lock_session(struct pg_backend *backend)
{
    return lock_one(backend, PG_SESSION);
}

static enum pg_end do_lock_queue(struct pg_backend *backend)
{
    return lock_one(backend, PG_QUEUE);
}

static enum pg_end do_renew(struct pg_backend *backend)
{
    const char *session = pg_text(backend, 1);
    int64_t count = 0;
    int64_t asked = 0;
    if (!pg_lock(backend, PG_SESSION, session, true))
        return PG_WAITS;
    const struct pg_row *there = pg_find(&backend->view, PG_SESSION, session);
    if (!there)
        return PG_DONE;
    struct pg_row row = *there;
    prolong(backend, &row, pg_number(backend, 2));
    if (row.expires < pg_clock(backend->server) + pg_number(backend, 2))
        check_fail(backend->server->cluster->world, backend->peer->index, NO_QUEUE,
                   "a session that waited to be renewed has less than a lease");
    for (int i = 0; i < backend->view.count; i++) {
        const struct pg_row *ticket = &backend->view.at[i];
        if (ticket->table != PG_TICKET || strncmp(ticket->key, session, 32) != 0)
            continue;
        count++;
        asked = (asked + ticket->asked * ticket->number) % 1000000000000000000;
    }
    pg_write(backend, &row);
    pg_column(backend, count);
    pg_column(backend, asked);
    pg_column(backend, backend->process.id);
    return PG_DONE;
}

static enum pg_end do_end_session(struct pg_backend *backend)
{
    if (!pg_lock(backend, PG_SESSION, pg_text(backend, 1), true))
        return PG_WAITS;
    pg_delete(backend, PG_SESSION, pg_text(backend, 1));
    return PG_DONE;
}

/* ------------------------------------------------------------------ the dead */

/* Those whose lease was over so long ago, of one queue or of any. */
static enum pg_end bury(struct pg_backend *backend, const char *queue, int64_t since)
{
    for (int i = backend->view.count - 1; i >= 0; i--) {
        const struct pg_row *row = &backend->view.at[i];
        char key[PG_KEY_SIZE];
        if (row->table != PG_SESSION || row->expires > since ||
            (queue && !has_tickets(&backend->view, row->key, queue)))
            continue;
        snprintf(key, sizeof key, "%s", row->key);
        if (pg_says(backend, "SKIP LOCKED") && pg_is_locked(backend, PG_SESSION, key))
            continue;
        if (!pg_lock(backend, PG_SESSION, key, true))
            return PG_WAITS;
        row = pg_find(&backend->view, PG_SESSION, key);
        if (row && row->expires <= since)
            pg_delete(backend, PG_SESSION, key);
    }
    return PG_DONE;
}

static enum pg_end do_reap(struct pg_backend *backend)
{
    bool dead = pg_says(backend, "s.expires <= clock_timestamp()");
    return bury(backend, pg_text(backend, 1), dead ? pg_clock(backend->server) : INT64_MAX);
}

static enum pg_end do_sweep_sessions(struct pg_backend *backend)
{
    return bury(backend, NULL, pg_now(backend) - 60000000);
}

/* Tickets without a session. */
static enum pg_end clear(struct pg_backend *backend, const char *queue)
{
    for (int i = backend->view.count - 1; i >= 0; i--) {
        struct pg_row row = backend->view.at[i];
        char session[PG_ID_SIZE];
        snprintf(session, sizeof session, "%.32s", row.key);
        if (row.table != PG_TICKET || (queue && strcmp(row.queue, queue) != 0) ||
            pg_find(&backend->view, PG_SESSION, session))
            continue;
        if (!pg_lock(backend, PG_TICKET, row.key, true))
            return PG_WAITS;
        if (!pg_find(&backend->view, PG_TICKET, row.key))
            continue;
        if (row.value[0])
            pg_show(backend, row.queue);
        pg_delete(backend, PG_TICKET, row.key);
    }
    return PG_DONE;
}

static enum pg_end do_clear(struct pg_backend *backend)
{
    return clear(backend, pg_text(backend, 1));
}

static enum pg_end do_sweep_tickets(struct pg_backend *backend)
{
    return clear(backend, NULL);
}

static enum pg_end do_nothing(struct pg_backend *backend)
{
    (void)backend; /* a queue's row stays for a day, and no run lasts so long */
    return PG_DONE;
}

/* ------------------------------------------------------------------ cells */

static bool has_session(const struct pg_backend *backend, const char *session, int64_t epoch)
{
    const struct pg_row *row = pg_find(&backend->view, PG_SESSION, session);
    return row && row->epoch == epoch;
}

static enum pg_end do_cell_make(struct pg_backend *backend)
{
    struct pg_row row = {.table = PG_CELL};
    snprintf(row.key, sizeof row.key, "%s", pg_text(backend, 1));
    if (!has_session(backend, pg_text(backend, 3), pg_number(backend, 4)) ||
        pg_number(backend, 2) != 0 || pg_find(&backend->view, PG_CELL, row.key))
        return PG_DONE;
    if (!pg_lock(backend, PG_CELL, row.key, true))
        return PG_WAITS;
    if (!pg_find(&backend->view, PG_CELL, row.key))
        pg_write(backend, &row);
    return PG_DONE;
}

static bool may_write(const struct pg_backend *backend, const struct pg_row *cell)
{
    int64_t version = cell->value[0] ? cell->number : 0, fence = pg_number(backend, 6);
    bool again = strcmp(cell->writer, pg_text(backend, 5)) == 0;
    return !(again && pg_says(backend, "writer IS DISTINCT FROM")) &&
           (version == pg_number(backend, 2) || !pg_says(backend, "END = $2")) &&
           (fence == 0 || cell->fence <= fence || !pg_says(backend, "fence <= $6"));
}

static enum pg_end do_cell_write(struct pg_backend *backend)
{
    const char *name = pg_text(backend, 1);
    const struct pg_row *cell = pg_find(&backend->view, PG_CELL, name);
    if (!cell || !may_write(backend, cell))
        return PG_DONE;
    if (!pg_lock(backend, PG_SESSION, pg_text(backend, 3), false) ||
        !pg_lock(backend, PG_CELL, name, true))
        return PG_WAITS;
    cell = pg_find(&backend->view, PG_CELL, name);
    if (!cell || !may_write(backend, cell) ||
        !has_session(backend, pg_text(backend, 3), pg_number(backend, 4)))
        return PG_DONE;
    struct pg_row row = *cell;
    row.number++;
    if (pg_number(backend, 6) > row.fence)
        row.fence = pg_number(backend, 6);
    snprintf(row.writer, sizeof row.writer, "%s", pg_text(backend, 5));
    snprintf(row.value, sizeof row.value, "%s", pg_text(backend, 7));
    pg_write(backend, &row);
    return PG_DONE;
}

static enum pg_end do_cell(struct pg_backend *backend)
{
    const struct pg_row *cell = pg_find(&backend->view, PG_CELL, pg_text(backend, 1));
    pg_column(backend, pg_find(&backend->view, PG_SESSION, pg_text(backend, 2)) != NULL);
    if (!cell) {
        for (int i = 0; i < 4; i++)
            pg_column_text(backend, "");
        return PG_DONE;
    }
    pg_column(backend, cell->number);
    pg_column(backend, cell->fence);
    if (cell->writer[0])
        pg_column(backend, strcmp(cell->writer, pg_text(backend, 3)) == 0);
    else
        pg_column_text(backend, "");
    pg_column_text(backend, cell->value);
    return PG_DONE;
}

/* ------------------------------------------------------------------ all */

static enum pg_end do_listen(struct pg_backend *backend)
{
    int count = (int)(sizeof backend->new_ears / sizeof backend->new_ears[0]);
    if (backend->new_ear_count == count)
        abort();
    backend->new_ears[backend->new_ear_count++] = backend->wanted;
    return PG_DONE;
}

static const struct {
    enum pg_end (*run)(struct pg_backend *backend);
    bool reads; /* and changes nothing: a standby does it too */
} all[MRT_PG_STATEMENT_COUNT] = {
    [MRT_PG_PIN] = {do_pin, true},
    [MRT_PG_SETUP] = {do_setup, true},
    [MRT_PG_ENTER] = {do_enter, true},
    [MRT_PG_BRIEF] = {do_brief, true},
    [MRT_PG_IDENTIFY] = {do_identify, true},
    [MRT_PG_ASYNC] = {do_async, true},
    [MRT_PG_ASYNC_EMPTY] = {do_async, true},
    [MRT_PG_START] = {do_start, false},
    [MRT_PG_RESUME] = {do_resume, false},
    [MRT_PG_LOCK_SESSION] = {do_lock_session, false},
    [MRT_PG_RENEW] = {do_renew, false},
    [MRT_PG_LOCK_ALL] = {pg_lock_all, false},
    [MRT_PG_LEAVE_BEHIND] = {do_nothing, false}, /* nothing has a delay */
    [MRT_PG_LEAVE_ALL] = {pg_leave_all, false},
    [MRT_PG_END_SESSION] = {do_end_session, false},
    [MRT_PG_BUMP] = {pg_bump, false},
    [MRT_PG_APPEND] = {pg_append, false},
    [MRT_PG_VIEW] = {pg_view, true},
    [MRT_PG_LOCK_QUEUE] = {do_lock_queue, false},
    [MRT_PG_REMOVE] = {pg_leave, false},
    [MRT_PG_REMOVE_LAST] = {pg_leave_last, false},
    [MRT_PG_REMOVE_QUIETLY] = {pg_leave_quietly, false},
    [MRT_PG_LIGHTEN] = {pg_lighten, false},
    [MRT_PG_SET_VALUE] = {pg_set_value, false},
    [MRT_PG_OBSERVE] = {pg_observe, true},
    [MRT_PG_CELL_MAKE] = {do_cell_make, false},
    [MRT_PG_CELL_WRITE] = {do_cell_write, false},
    [MRT_PG_CELL] = {do_cell, true},
    [MRT_PG_REAP] = {do_reap, false},
    [MRT_PG_CLEAR] = {do_clear, false},
    [MRT_PG_SWEEP_SESSIONS] = {do_sweep_sessions, false},
    [MRT_PG_SWEEP_TICKETS] = {do_sweep_tickets, false},
    [MRT_PG_SWEEP_QUEUES] = {do_nothing, false},
    [MRT_PG_REVOKE] = {pg_revoke, false},
    [MRT_PG_BREAK] = {pg_leave, false},
};

static bool makes_settings(int statement)
{
    return statement == MRT_PG_PIN || statement == MRT_PG_SETUP || statement == MRT_PG_ENTER ||
           statement == MRT_PG_BRIEF;
}

enum pg_end pg_execute(struct pg_backend *backend)
{
    bool reads = backend->statement >= 0 && all[backend->statement].reads;
    enum pg_end end = PG_DONE;
    backend->column_count = 0;
    if (!reads && !pg_is_primary(backend->server)) {
        snprintf(backend->error, sizeof backend->error, "25006");
        return PG_DONE;
    }
    if (!backend->has_view)
        pg_see(backend);
    backend->has_view = true;
    if (backend->statement >= 0) {
        if (!all[backend->statement].run)
            abort();
        if (!backend->schema[0] && !makes_settings(backend->statement)) {
            snprintf(backend->error, sizeof backend->error, "42P01"); /* no such table */
            return PG_DONE;
        }
        backend->text = mistaken(backend->statement,
                                 mrt_pg_statement((enum mrt_pg_statement)backend->statement)->text);
        end = all[backend->statement].run(backend);
    } else {
        end = do_listen(backend);
    }
    if (end == PG_DONE)
        backend->has_view = false;
    return end;
}
