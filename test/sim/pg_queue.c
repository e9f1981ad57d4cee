/* SPDX-License-Identifier: Apache-2.0 */
/* The store's statements of queues and tickets: pg_statement.c. */
#include "pg_server.h"

#include "store/sql/sign.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void key_of(const struct pg_backend *backend, int session, int ticket, char key[PG_KEY_SIZE])
{
    snprintf(key, PG_KEY_SIZE, "%.32s%.32s", pg_text(backend, session), pg_text(backend, ticket));
}

/* To the session of a ticket. */
__attribute__((format(printf, 3, 4))) static void
tell(struct pg_backend *backend, const struct pg_row *ticket, const char *format, ...)
{
    char channel[PG_CHANNEL_SIZE] = MRT_PG_TOLD, name[MRT_ID_TEXT_SIZE], sign[MRT_SQL_SIGN_SIZE];
    char text[80] = " ";
    struct mrt_id session, id;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + 1, sizeof text - 1, format, arguments);
    va_end(arguments);
    snprintf(name, sizeof name, "%.32s", ticket->key);
    if (!mrt_id_parse(name, &session) || !mrt_id_parse(ticket->key + 32, &id))
        abort();
    mrt_sql_channel(session, channel + sizeof MRT_PG_TOLD - 1);
    mrt_sql_ticket_name(session, id, name);
    mrt_sql_sign(session, id, text, strlen(text), sign);
    pg_notify(backend, channel, "%s%s %s", name, text, sign);
}

static void tell_place(struct pg_backend *backend, const struct pg_row *ticket, int64_t ahead,
                       bool behind)
{
    if (pg_says(backend, "sha256(uuid_send(session))"))
        tell(backend, ticket, "place %" PRId64 " %" PRId64 " %d", ticket->number, ahead, behind);
}

/* How long the first of the leases up to here lasts; NULL: there is none. */
static void column_left(struct pg_backend *backend, const struct pg_line *line, int count)
{
    int64_t first = INT64_MAX;
    for (int i = 0; i < count; i++)
        if (line->sessions[i]->expires < first)
            first = line->sessions[i]->expires;
    if (count > 0)
        pg_column(backend, first - pg_now(backend));
    else
        pg_column_text(backend, "");
}

/* ------------------------------------------------------------------ coming */

enum pg_end pg_bump(struct pg_backend *backend)
{
    struct pg_row row = {.table = PG_QUEUE};
    snprintf(row.key, sizeof row.key, "%s", pg_text(backend, 1));
    bool there = pg_find(&backend->view, PG_QUEUE, row.key) != NULL;
    if (there && !pg_says(backend, "DO UPDATE"))
        return PG_DONE;
    if (!pg_lock(backend, PG_QUEUE, row.key, true))
        return PG_WAITS;
    row.number = ++backend->server->sequence;
    pg_write(backend, &row);
    return PG_DONE;
}

struct newcomer {
    struct pg_line line;
    int64_t waiting;
    const struct pg_row *other; /* of another kind or capacity */
    const struct pg_row *old, *queue;
};

static void look_around(const struct pg_backend *backend, struct newcomer *newcomer)
{
    struct pg_line *line = &newcomer->line;
    char key[PG_KEY_SIZE];
    key_of(backend, 3, 2, key);
    pg_line_up(&backend->view, pg_text(backend, 1), line);
    newcomer->queue = pg_find(&backend->view, PG_QUEUE, pg_text(backend, 1));
    newcomer->waiting = 0;
    newcomer->other = newcomer->old = NULL;
    for (int i = 0; i < line->count; i++) {
        const struct pg_row *ticket = line->tickets[i];
        newcomer->waiting += line->upto[i] > ticket->capacity;
        if (strcmp(ticket->key, key) == 0)
            newcomer->old = ticket;
        if (strcmp(ticket->kind, pg_text(backend, 5)) != 0 ||
            ticket->capacity != pg_number(backend, 6))
            newcomer->other = ticket;
    }
}

static int64_t weight_of(const struct pg_line *line)
{
    return line->count > 0 ? line->upto[line->count - 1] : 0;
}

static bool is_let_in(const struct pg_backend *backend, const struct newcomer *newcomer)
{
    int64_t most = pg_number(backend, 8);
    bool fits = weight_of(&newcomer->line) + pg_number(backend, 4) <= pg_number(backend, 6);
    bool waits = pg_number(backend, 7) == 0 && (most == 0 || newcomer->waiting < most);
    return newcomer->queue && !newcomer->other && (fits || waits) &&
           (!newcomer->old || !pg_says(backend, "a.old IS NULL"));
}

static bool has_session(const struct pg_backend *backend)
{
    const struct pg_row *session = pg_find(&backend->view, PG_SESSION, pg_text(backend, 3));
    return session && (session->epoch == pg_number(backend, 9) || !pg_says(backend, "epoch = $9"));
}

static struct pg_row ticket_of(const struct pg_backend *backend, const struct newcomer *newcomer)
{
    struct pg_row row = {.table = PG_TICKET,
                         .number = newcomer->queue->number,
                         .since = pg_clock(backend->server),
                         .weight = pg_number(backend, 4),
                         .capacity = pg_number(backend, 6),
                         .linger = pg_number(backend, 11) == 1,
                         .delay = pg_number(backend, 12)};
    key_of(backend, 3, 2, row.key);
    snprintf(row.queue, sizeof row.queue, "%s", pg_text(backend, 1));
    snprintf(row.kind, sizeof row.kind, "%s", pg_text(backend, 5));
    snprintf(row.value, sizeof row.value, "%s", pg_text(backend, 10));
    if (!pg_says(backend, "q.number"))
        row.number = ++backend->server->sequence;
    return row;
}

static void put_in(struct pg_backend *backend, struct newcomer *newcomer, const struct pg_row *row)
{
    const struct pg_line *line = &newcomer->line;
    bool tells = pg_says(backend, "WHERE linger AND upto <= capacity");
    for (int i = 0; i < line->count && tells; i++)
        if (line->tickets[i]->linger && line->upto[i] <= line->tickets[i]->capacity)
            tell(backend, line->tickets[i], "place %" PRId64 " 0 1", line->tickets[i]->number);
    if (row->value[0])
        pg_show(backend, row->queue);
    pg_write(backend, row);
}

static void column_or_null(struct pg_backend *backend, const struct pg_row *row)
{
    if (row)
        pg_column(backend, row->number);
    else
        pg_column_text(backend, "");
}

/* The answer is as the statement saw it, before any wait. */
static void answer(struct pg_backend *backend, const struct newcomer *newcomer,
                   const struct pg_row *mine, bool there)
{
    column_or_null(backend, mine);
    column_or_null(backend, newcomer->old);
    pg_column(backend, weight_of(&newcomer->line));
    column_left(backend, &newcomer->line, newcomer->line.count);
    pg_column(backend, there);
    if (newcomer->other)
        pg_column(backend, newcomer->other->capacity);
    else
        pg_column_text(backend, "");
    pg_column_text(backend, newcomer->other ? newcomer->other->kind : "");
    pg_column(backend, newcomer->line.count);
    pg_column(backend, 1);
}

/* Something has ended the transaction that had the queue's row locked. */
static bool is_split(const struct pg_backend *backend)
{
    return pg_says(backend, "xmin = pg_current_xact_id()::xid") &&
           !pg_holds(backend, PG_QUEUE, pg_text(backend, 1));
}

enum pg_end pg_append(struct pg_backend *backend)
{
    struct newcomer newcomer;
    struct pg_row row;
    bool there = has_session(backend);
    if (is_split(backend)) {
        snprintf(backend->error, sizeof backend->error, "22P02");
        return PG_DONE;
    }
    if (there && pg_says(backend, " FOR SHARE") &&
        !pg_lock(backend, PG_SESSION, pg_text(backend, 3), false))
        return PG_WAITS;
    there = there && has_session(backend);
    look_around(backend, &newcomer);
    if (!there || !is_let_in(backend, &newcomer)) {
        answer(backend, &newcomer, NULL, there);
        return PG_DONE;
    }
    row = ticket_of(backend, &newcomer);
    if (!pg_lock(backend, PG_TICKET, row.key, true))
        return PG_WAITS;
    if (!newcomer.old && pg_find(&backend->view, PG_TICKET, row.key)) {
        snprintf(backend->error, sizeof backend->error, "23505");
        return PG_DONE;
    }
    look_around(backend, &newcomer);
    answer(backend, &newcomer, &row, there);
    put_in(backend, &newcomer, &row);
    return PG_DONE;
}

/* ------------------------------------------------------------------ looking */

enum pg_end pg_view(struct pg_backend *backend)
{
    struct pg_line line;
    char key[PG_KEY_SIZE];
    int at = 0;
    key_of(backend, 1, 2, key);
    const struct pg_row *ticket = pg_find(&backend->view, PG_TICKET, key);
    if (!ticket)
        return PG_DONE;
    pg_line_up(&backend->view, ticket->queue, &line);
    while (at < line.count && line.tickets[at] != ticket)
        at++;
    if (at == line.count)
        return PG_DONE; /* its session has ended */
    pg_column(backend, ticket->number);
    pg_column(backend, at > 0 ? line.upto[at - 1] : 0);
    column_left(backend, &line, at);
    pg_column(backend, at + 1 < line.count);
    pg_column(backend, ticket->asked);
    pg_column(backend, at);
    pg_column(backend, pg_clock(backend->server) - ticket->since);
    return PG_DONE;
}

enum pg_end pg_observe(struct pg_backend *backend)
{
    struct pg_line line;
    pg_line_up(&backend->view, pg_text(backend, 1), &line);
    if (line.count == 0)
        return PG_DONE;
    pg_column(backend, line.tickets[0]->number);
    column_left(backend, &line, 1);
    pg_column_text(backend, line.tickets[0]->value);
    return PG_DONE;
}

enum pg_end pg_set_value(struct pg_backend *backend)
{
    char key[PG_KEY_SIZE];
    key_of(backend, 1, 2, key);
    if (!pg_find(&backend->view, PG_TICKET, key))
        return PG_DONE;
    if (!pg_lock(backend, PG_TICKET, key, true))
        return PG_WAITS;
    const struct pg_row *ticket = pg_find(&backend->view, PG_TICKET, key);
    if (!ticket)
        return PG_DONE;
    struct pg_row row = *ticket;
    snprintf(row.value, sizeof row.value, "%s", pg_text(backend, 3));
    pg_show(backend, row.queue);
    pg_write(backend, &row);
    return PG_DONE;
}

/* ------------------------------------------------------------------ leaving */

static bool is_in(const struct pg_line *line, const struct pg_row *ticket)
{
    for (int i = 0; i < line->count; i++)
        if (line->tickets[i]->number == ticket->number)
            return true;
    return false;
}

/* Those behind, within the front of the queue, that have become able to run as so much goes; a
 * ticket that did not count, as its session has ended, gives nothing. */
static void tell_front(struct pg_backend *backend, const struct pg_row *leaver, int64_t less)
{
    static const char leaver_rule[] = "ELSE f.weight END) OVER w AS remains";
    struct pg_line line;
    pg_line_up(&backend->view, leaver->queue, &line);
    if (!is_in(&line, leaver) && pg_says(backend, leaver_rule))
        less = 0;
    int64_t most = 2 + leaver->capacity;
    int count = line.count < most ? line.count : (int)most;
    for (int i = 0; i < count; i++) {
        const struct pg_row *ticket = line.tickets[i];
        if (ticket->number > leaver->number && line.upto[i] - less <= ticket->capacity &&
            line.upto[i] > ticket->capacity)
            tell_place(backend, ticket, line.upto[i] - ticket->weight - less, i + 1 < count);
    }
}

/* The ticket that is meant, locked; NULL: it is not there. */
static enum pg_end take(struct pg_backend *backend, const char *key, struct pg_row *row)
{
    const struct pg_row *found = pg_find(&backend->view, PG_TICKET, key);
    row->key[0] = '\0';
    if (!found)
        return PG_DONE;
    if (!pg_lock(backend, PG_TICKET, found->key, true))
        return PG_WAITS;
    found = pg_find(&backend->view, PG_TICKET, key);
    if (found)
        *row = *found;
    return PG_DONE;
}

static const char *key_by_number(const struct pg_backend *backend, const char *queue,
                                 int64_t number)
{
    for (int i = 0; i < backend->view.count; i++) {
        const struct pg_row *row = &backend->view.at[i];
        if (row->table == PG_TICKET && row->number == number && strcmp(row->queue, queue) == 0)
            return row->key;
    }
    return "";
}

/* Whether the commit that removes this ticket need not wait for the disk. */
static bool is_hurried(const struct pg_backend *backend, const struct pg_row *ticket)
{
    struct pg_line line;
    pg_line_up(&backend->view, ticket->queue, &line);
    bool others = line.count > 1 || (line.count == 1 && line.tickets[0]->number != ticket->number);
    return pg_says(backend, "set_config('synchronous_commit', 'off', true)") &&
           pg_number(backend, 4) == 1 &&
           (!ticket->value[0] || !pg_says(backend, "value IS NULL")) &&
           (ticket->delay == 0 || !pg_says(backend, "delay = 0")) &&
           (!others || !pg_says(backend, "AND NOT EXISTS (SELECT FROM "));
}

/* REMOVE, REMOVE_LAST and BREAK. */
enum pg_end pg_leave(struct pg_backend *backend)
{
    struct pg_row row;
    char key[PG_KEY_SIZE];
    bool breaks = backend->statement == MRT_PG_BREAK;
    if (breaks)
        snprintf(key, sizeof key, "%s",
                 key_by_number(backend, pg_text(backend, 1), pg_number(backend, 2)));
    else
        key_of(backend, 1, 2, key);
    if (take(backend, key, &row) == PG_WAITS)
        return PG_WAITS;
    if (!row.key[0])
        return PG_DONE;
    bool hurried = !breaks && is_hurried(backend, &row);
    backend->hurries |= hurried;
    pg_column(backend, 1);
    pg_column(backend, 0); /* the number of notified sessions is not used */
    pg_column(backend, 0);
    pg_column(backend, hurried);
    tell_front(backend, &row, row.weight);
    if (row.value[0])
        pg_show(backend, row.queue);
    if (breaks)
        tell(backend, &row, "look");
    pg_delete(backend, PG_TICKET, row.key);
    return PG_DONE;
}

static bool is_last(const struct pg_backend *backend)
{
    const struct pg_row *queue = pg_find(&backend->view, PG_QUEUE, pg_text(backend, 3));
    return queue && (queue->number == pg_number(backend, 5) || !pg_says(backend, "number = $5"));
}

/* REMOVE_LAST: only a row that has the number is locked, and looked at again after a wait. */
enum pg_end pg_leave_last(struct pg_backend *backend)
{
    if (!is_last(backend))
        return PG_DONE;
    if (pg_says(backend, "FOR NO KEY UPDATE") &&
        !pg_lock(backend, PG_QUEUE, pg_text(backend, 3), true))
        return PG_WAITS;
    return is_last(backend) ? pg_leave(backend) : PG_DONE;
}

enum pg_end pg_leave_quietly(struct pg_backend *backend)
{
    struct pg_row row;
    char key[PG_KEY_SIZE];
    key_of(backend, 1, 2, key);
    if (take(backend, key, &row) == PG_WAITS)
        return PG_WAITS;
    if (row.key[0])
        pg_delete(backend, PG_TICKET, row.key);
    return PG_DONE;
}

enum pg_end pg_lighten(struct pg_backend *backend)
{
    struct pg_row row;
    char key[PG_KEY_SIZE];
    int64_t weight = pg_number(backend, 4);
    key_of(backend, 1, 2, key);
    if (take(backend, key, &row) == PG_WAITS)
        return PG_WAITS;
    if (!row.key[0] || row.weight <= weight)
        return PG_DONE;
    tell_front(backend, &row, row.weight - weight);
    row.weight = weight;
    pg_write(backend, &row);
    return PG_DONE;
}

/* ------------------------------------------------------------------ the end of a session */

static bool is_of(const struct pg_row *row, const char *session)
{
    return row->table == PG_TICKET && strncmp(row->key, session, 32) == 0;
}

enum pg_end pg_lock_all(struct pg_backend *backend)
{
    for (int i = 0; i < backend->view.count; i++) {
        const struct pg_row row = backend->view.at[i];
        if (is_of(&row, pg_text(backend, 1)) && pg_says(backend, "FOR NO KEY UPDATE") &&
            pg_find(&backend->view, PG_QUEUE, row.queue) &&
            !pg_lock(backend, PG_QUEUE, row.queue, true))
            return PG_WAITS;
    }
    return PG_DONE;
}

/* Finds the tickets of one queue that fit without the session's tickets. */
static void tell_rest(struct pg_backend *backend, const char *queue, const char *session)
{
    struct pg_line line;
    int64_t remains = 0;
    pg_line_up(&backend->view, queue, &line);
    for (int i = 0; i < line.count; i++) {
        const struct pg_row *ticket = line.tickets[i];
        if (is_of(ticket, session))
            continue;
        remains += ticket->weight;
        if (remains <= ticket->capacity && line.upto[i] > ticket->capacity)
            tell_place(backend, ticket, remains - ticket->weight, i + 1 < line.count);
    }
}

enum pg_end pg_leave_all(struct pg_backend *backend)
{
    const char *session = pg_text(backend, 1);
    for (int i = 0; i < backend->view.count; i++) {
        const struct pg_row row = backend->view.at[i];
        if (is_of(&row, session) && !pg_lock(backend, PG_TICKET, row.key, true))
            return PG_WAITS;
    }
    for (int q = 0; q < backend->server->cluster->world->drawn.queues; q++)
        tell_rest(backend, backend->server->cluster->world->queues[q].name, session);
    for (int i = backend->view.count - 1; i >= 0; i--) {
        const struct pg_row row = backend->view.at[i];
        if (!is_of(&row, session))
            continue;
        if (row.value[0])
            pg_show(backend, row.queue);
        pg_delete(backend, PG_TICKET, row.key);
    }
    return PG_DONE;
}

/* ------------------------------------------------------------------ an operator's */

enum pg_end pg_revoke(struct pg_backend *backend)
{
    struct pg_line line;
    int64_t wanted = pg_number(backend, 2);
    struct pg_row asked[PG_LINE_MAX];
    int count = 0;
    pg_line_up(&backend->view, pg_text(backend, 1), &line);
    for (int i = 0; i < line.count; i++)
        if (line.upto[i] <= line.tickets[i]->capacity &&
            (wanted == 0 || line.tickets[i]->number == wanted))
            asked[count++] = *line.tickets[i];
    for (int i = 0; i < count; i++)
        if (!pg_lock(backend, PG_TICKET, asked[i].key, true))
            return PG_WAITS;
    for (int i = 0; i < count; i++) {
        asked[i].asked++;
        tell(backend, &asked[i], "asked %" PRId64, asked[i].asked);
        pg_write(backend, &asked[i]);
    }
    pg_column(backend, count);
    return PG_DONE;
}
