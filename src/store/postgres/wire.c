/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on the wire. Statements are prepared when they are first used, in the same flight.
 * libpq knows only the order of results, so a request counts its own.
 *
 * Behind a pooler nothing is prepared, each flight begins with MRT_PG_BRIEF, and none leaves before
 * the last one is answered.
 */
#include "store/postgres/internal.h"

#include "base/error.h"
#include "store/sql/answer.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/list.h"
#include "store/sql/notification.h"
#include "store/sql/observers.h"
#include "store/sql/request.h"
#include "store/sql/retry.h"
#include "store/sql/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define END (-1)
#define NOT_A_NUMBER "22P02"
/* Statements without parameters or a table. */
#define LISTEN MRT_PG_STATEMENT_COUNT
#define UNLISTEN (MRT_PG_STATEMENT_COUNT + 1)
#define LISTEN_SEEN (MRT_PG_STATEMENT_COUNT + 2)
#define PLAN_MAX 5
#define KEY(step) ((int)MRT_SQL_DO_NAMED + (int)MRT_NATIVE_##step)
#define ROW(step) ((int)MRT_SQL_DO_ROW + (int)MRT_NATIVE_##step)

/* The statements of each kind, and the one whose rows are the answer. */
static const struct {
    int answer;
    int statement[PLAN_MAX + 1];
} plans[MRT_SQL_KINDS] = {
    [MRT_SQL_DO_SETUP] = {MRT_PG_IDENTIFY,
                          {MRT_PG_PIN, MRT_PG_SETUP, MRT_PG_ENTER, MRT_PG_IDENTIFY, END}},
    [MRT_SQL_DO_START] = {MRT_PG_START, {MRT_PG_ASYNC, MRT_PG_START, LISTEN, END}},
    [MRT_SQL_DO_RESUME] = {MRT_PG_RESUME, {MRT_PG_RESUME, LISTEN, END}},
    [MRT_SQL_DO_STOP] = {END,
                         {MRT_PG_ASYNC_EMPTY, MRT_PG_LOCK_ALL, MRT_PG_LEAVE_ALL, MRT_PG_END_SESSION,
                          UNLISTEN, END}},
    [MRT_SQL_DO_DIE] = {END,
                        {MRT_PG_LOCK_ALL, MRT_PG_LEAVE_BEHIND, MRT_PG_LEAVE_ALL, MRT_PG_END_SESSION,
                         UNLISTEN, END}},
    [MRT_SQL_DO_RENEW] = {MRT_PG_RENEW, {MRT_PG_LOCK_SESSION, MRT_PG_RENEW, END}},
    [MRT_SQL_DO_MAKE] = {END, {END}}, /* a row is made where it is needed */
    [MRT_SQL_DO_MAKE_CELL] = {END, {END}},
    [MRT_SQL_DO_APPEND] = {MRT_PG_APPEND, {MRT_PG_BUMP, MRT_PG_APPEND, END}},
    [MRT_SQL_DO_ADOPT] = {MRT_PG_ADOPT, {MRT_PG_LOCK_QUEUE, MRT_PG_ADOPT, END}},
    [MRT_SQL_DO_DETACH] = {MRT_PG_DETACH,
                           {MRT_PG_LOCK_QUEUE, MRT_PG_NOBODY, MRT_PG_LIGHTEN, MRT_PG_DETACH, END}},
    [MRT_SQL_DO_VIEW] = {MRT_PG_VIEW, {MRT_PG_VIEW, END}},
    [MRT_SQL_DO_REMOVE] = {MRT_PG_REMOVE, {MRT_PG_LOCK_QUEUE, MRT_PG_REMOVE, END}},
    [MRT_SQL_DO_REMOVE_LAST] = {MRT_PG_REMOVE_LAST, {MRT_PG_REMOVE_LAST, END}},
    [MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY] = {END, {MRT_PG_REMOVE_QUIETLY, END}},
    [MRT_SQL_DO_LIGHTEN] = {MRT_PG_VIEW, {MRT_PG_LOCK_QUEUE, MRT_PG_LIGHTEN, MRT_PG_VIEW, END}},
    [MRT_SQL_DO_SET_VALUE] = {MRT_PG_VIEW, {MRT_PG_SET_VALUE, MRT_PG_VIEW, END}},
    [MRT_SQL_DO_LISTEN] = {END, {LISTEN_SEEN, END}},
    [MRT_SQL_DO_OBSERVE] = {MRT_PG_OBSERVE, {MRT_PG_OBSERVE, END}},
    [MRT_SQL_DO_CELL_GET] = {MRT_PG_CELL, {MRT_PG_CELL, END}},
    [MRT_SQL_DO_CELL_SET] = {MRT_PG_CELL, {MRT_PG_CELL_MAKE, MRT_PG_CELL_WRITE, MRT_PG_CELL, END}},
    [MRT_SQL_DO_REAP] = {END, {MRT_PG_REAP, MRT_PG_CLEAR, END}},
    [MRT_SQL_DO_SWEEP] = {END,
                          {MRT_PG_SWEEP_SESSIONS, MRT_PG_SWEEP_TICKETS, MRT_PG_SWEEP_QUEUES, END}},
    [MRT_SQL_DO_LIST] = {MRT_PG_LIST, {MRT_PG_LIST, END}},
    [MRT_SQL_DO_REVOKE] = {MRT_PG_REVOKE, {MRT_PG_LOCK_QUEUE, MRT_PG_REVOKE, END}},
    [MRT_SQL_DO_BREAK] = {MRT_PG_BREAK, {MRT_PG_LOCK_QUEUE, MRT_PG_BREAK, END}},
    [KEY(SETUP)] = {MRT_PG_FORM_SETUP, {MRT_PG_PIN, MRT_PG_FORM_SETUP, END}},
    [KEY(TRY)] = {MRT_PG_KEY_TRY, {MRT_PG_KEY_TRY, END}},
    [KEY(WAIT)] = {MRT_PG_KEY_WAIT, {MRT_PG_KEY_WAIT, END}},
    [KEY(LEAVE)] = {MRT_PG_KEY_LEAVE, {MRT_PG_KEY_LEAVE, END}},
    [KEY(PROVE)] = {MRT_PG_KEY_PROVE, {MRT_PG_KEY_PROVE, END}},
    [KEY(LOOK)] = {MRT_PG_KEY_LOOK, {MRT_PG_KEY_LOOK, END}},
    [KEY(LIGHTEN)] = {MRT_PG_KEY_LIGHTEN, {MRT_PG_KEY_LIGHTEN, END}},
    [KEY(MAKE)] = {END, {END}}, /* never asked for */
    [KEY(LIST)] = {MRT_PG_KEY_LIST, {MRT_PG_KEY_LIST, END}},
    [KEY(KILL)] = {END, {END}}, /* never asked for */
    [ROW(SETUP)] = {MRT_PG_FORM_SETUP, {MRT_PG_PIN, MRT_PG_FORM_SETUP, MRT_PG_ENTER, END}},
    [ROW(TRY)] = {MRT_PG_ROW_TRY, {MRT_PG_BEGIN, MRT_PG_ROW_TRY, END}},
    [ROW(WAIT)] = {MRT_PG_ROW_WAIT, {MRT_PG_ROW_WAIT, END}},
    [ROW(LEAVE)] = {END, {MRT_PG_COMMIT, END}},
    [ROW(PROVE)] = {MRT_PG_ROW_PROVE, {MRT_PG_ROW_PROVE, END}},
    [ROW(LOOK)] = {MRT_PG_ROW_PROVE, {MRT_PG_ROW_PROVE, END}},
    [ROW(LIGHTEN)] = {END, {END}}, /* never asked for */
    [ROW(MAKE)] = {MRT_PG_ROW_TRY,
                   {MRT_PG_ROW_MAKE, MRT_PG_COMMIT, MRT_PG_BEGIN, MRT_PG_ROW_TRY, END}},
    [ROW(LIST)] = {MRT_PG_ROW_LIST, {MRT_PG_ROW_LIST, END}},
    [ROW(KILL)] = {END, {END}}, /* never asked for */
};

/* ------------------------------------------------------------------ sending */

static void note_step(struct mrt_sql_request *request, int statement, bool prepares)
{
    request->step[request->steps].statement = statement;
    request->step[request->steps++].prepares = prepares;
}

static bool execute(const struct mrt_sql_store *store, const struct mrt_sql_request *request,
                    const struct mrt_pg_statement_text *text, bool prepared)
{
    PGconn *connection = store->driver->connection;
    struct mrt_sql_value all[MRT_PG_PARAMETERS_MAX];
    const char *values[MRT_PG_PARAMETERS_MAX];
    int sizes[MRT_PG_PARAMETERS_MAX] = {0}, formats[MRT_PG_PARAMETERS_MAX] = {0}, count = 0;
    for (; text->parameters[count]; count++) {
        mrt_sql_value(store, request, text->parameters[count], &all[count]);
        values[count] = all[count].type == MRT_SQL_NULL ? NULL : all[count].data;
        formats[count] = all[count].type == MRT_SQL_BYTES; /* as they are, others as texts */
        sizes[count] = formats[count] ? (int)all[count].size : 0;
    }
    return prepared
               ? PQsendQueryPrepared(connection, text->name, count, values, sizes, formats, 0)
               : PQsendQueryParams(connection, text->text, count, NULL, values, sizes, formats, 0);
}

/* Prepared statements stay in the connection, which must be known to be ours. */
static bool send_statement(struct mrt_sql_store *store, struct mrt_sql_request *request,
                           int statement)
{
    struct mrt_sql_driver *driver = store->driver;
    const struct mrt_pg_statement_text *text = mrt_pg_statement((enum mrt_pg_statement)statement);
    bool prepares = store->state == MRT_SQL_READY && !store->pooled;
    if (prepares && !driver->prepared[statement]) {
        if (!PQsendPrepare(driver->connection, text->name, text->text, 0, NULL))
            return false;
        note_step(request, statement, true);
        driver->prepared[statement] = true;
    }
    note_step(request, statement, false);
    return execute(store, request, text, prepares);
}

/* LISTEN takes no parameter: its channel is 32 hexadecimal digits of ours, or the schema, a word.
   The server shows such a text to some, and anybody may notify whom he likes. */
static bool send_listen(struct mrt_sql_store *store, struct mrt_sql_request *request, int statement)
{
    char text[96], channel[MRT_SQL_CHANNEL_SIZE];
    if (store->pooled)
        return true; /* somebody else would hear it */
    mrt_sql_channel(request->command.session, channel);
    if (statement == LISTEN_SEEN)
        snprintf(text, sizeof text, "LISTEN " MRT_PG_SEEN "%s", store->address.schema);
    else
        snprintf(text, sizeof text, "%s " MRT_PG_TOLD "%s",
                 statement == LISTEN ? "LISTEN" : "UNLISTEN", channel);
    note_step(request, statement, false);
    return PQsendQueryParams(store->driver->connection, text, 0, NULL, NULL, NULL, NULL, 0);
}

static void send_flight(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    const int *statement = plans[request->kind].statement;
    bool pooled = store->pooled && store->state == MRT_SQL_READY;
    request->flight = ++store->driver->flights;
    bool taken = !pooled || send_statement(store, request, MRT_PG_BRIEF);
    for (; *statement != END && taken; statement++)
        taken = *statement < MRT_PG_STATEMENT_COUNT ? send_statement(store, request, *statement)
                                                    : send_listen(store, request, *statement);
    request->sent = now;
    mrt_traffic_sent(store->traffic);
    if (!taken || !PQpipelineSync(store->driver->connection))
        store->broken = true;
}

/* Poolers lose count of answers if a flight arrives before that of the last one has been answered:
   the connection to the server is given away too early, and answers go astray. */
void mrt_sql_driver_send(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    if (!store->pooled || TAILQ_FIRST(&store->sent) == request)
        send_flight(store, request, now);
}

/* ------------------------------------------------------------------ reading */

/* A fault that a statement of ours has put into words, which are no number. */
static void read_fault(struct mrt_sql_request *request)
{
    char *open = strchr(request->detail, '{'), *close = strrchr(request->detail, '}');
    if (strcmp(request->state, NOT_A_NUMBER) != 0 || !open || !close || close < open)
        return;
    *close = '\0';
    memmove(request->detail, open + 1, (size_t)(close - open));
    snprintf(request->state, sizeof request->state, "%s", MRT_PG_FAULT_STATE);
}

static void read_error(struct mrt_sql_request *request, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (request->failed)
        return; /* the first is the cause */
    request->failed = true;
    snprintf(request->state, sizeof request->state, "%s", state ? state : "08006");
    mrt_sql_first_line(text ? text : PQresultErrorMessage(result), request->detail,
                       sizeof request->detail);
    read_fault(request);
}

/* The first answer must be the values that MRT_PG_BRIEF was sent with: others have such answers,
 * too.
 */
static bool is_own(const struct mrt_sql_request *request, PGresult *result)
{
    char wanted[2 * MRT_ID_TEXT_SIZE + 24], session[MRT_ID_TEXT_SIZE], ticket[MRT_ID_TEXT_SIZE];
    mrt_id_format(request->command.session, session);
    mrt_id_format(request->command.ticket, ticket);
    snprintf(wanted, sizeof wanted, "%s%s%" PRIu64, session, ticket, request->flight);
    const char *answer = mrt_sql_rows_text(result, 0, 0);
    return answer && strcmp(answer, wanted) == 0;
}

/* The answers are not those of what was sent. */
static void lose_count(struct mrt_sql_store *store)
{
    mrt_sql_reject(store, MORTISE_EUNREACHABLE, "PostgreSQL: a pooler has mixed up answers");
}

/* One result of the request; true: its last one. */
static bool read_result(struct mrt_sql_store *store, struct mrt_sql_request *request,
                        PGresult *result)
{
    bool *prepared = store->driver->prepared;
    bool known = request->at < request->steps;
    int statement = known ? request->step[request->at].statement : END;
    bool prepares = known && request->step[request->at].prepares;
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        if (statement == plans[request->kind].answer && !prepares) {
            PQclear(request->rows);
            request->rows = result;
            return false;
        }
        if (statement == MRT_PG_BRIEF && !is_own(request, result))
            lose_count(store);
        break;
    case PGRES_COMMAND_OK:
        break;
    case PGRES_PIPELINE_SYNC:
        PQclear(result);
        if (request->at < request->steps)
            lose_count(store);
        return request->at >= request->steps;
    case PGRES_PIPELINE_ABORTED:
        if (prepares)
            prepared[statement] = false;
        break;
    default:
        read_error(request, result);
        if (known && statement < MRT_PG_STATEMENT_COUNT && !store->pooled &&
            (prepares || strcmp(request->state, "26000") == 0))
            prepared[statement] = strcmp(request->state, "42P05") == 0;
    }
    PQclear(result);
    return false;
}

static void notified(struct mrt_sql_store *store, const PGnotify *notification)
{
    static const char told[] = MRT_PG_TOLD, seen[] = MRT_PG_SEEN;
    if (strncmp(notification->relname, seen, sizeof seen - 1) == 0)
        mrt_sql_observed_changed(store, notification->extra);
    else if (strncmp(notification->relname, told, sizeof told - 1) == 0)
        mrt_sql_notification(store, notification->relname + sizeof told - 1, notification->extra);
}

/* A reply of which only a part has come is measured from when that was first seen. */
static void bound_reply(struct mrt_sql_store *store)
{
    uint64_t *from = &store->driver->reply_from;
    uint64_t received = TAILQ_EMPTY(&store->sent) ? 0 : mrt_pg_received(store->driver->connection);
    if (received == 0 || *from == 0)
        *from = received;
    else if (received - *from > MRT_SQL_REPLY_MAX)
        mrt_sql_reject(store, MORTISE_EUNREACHABLE, "PostgreSQL: " MRT_SQL_REPLY_TOO_LONG);
}

static void take(struct mrt_sql_store *store, mrt_time now)
{
    PGconn *connection = store->driver->connection;
    struct mrt_sql_request *request;
    PGnotify *notification;
    if (!PQconsumeInput(connection))
        store->broken = true;
    while ((request = TAILQ_FIRST(&store->sent)) && request->sent && !store->broken &&
           !PQisBusy(connection)) {
        PGresult *result = PQgetResult(connection);
        store->driver->reply_from = 0;
        if (!result && request->at++ < request->steps)
            continue; /* the end of one statement's results */
        if (!result)
            break; /* libpq has lost count */
        if (!read_result(store, request, result))
            continue;
        TAILQ_REMOVE(&store->sent, request, link);
        mrt_traffic_answered(store->traffic);
        mrt_sql_finish(store, request, now);
    }
    if (PQstatus(connection) != CONNECTION_OK)
        store->broken = true;
    else
        bound_reply(store);
    while ((notification = PQnotifies(connection))) {
        notified(store, notification);
        PQfreemem(notification);
    }
}

void mrt_sql_driver_turn(struct mrt_sql_store *store, mrt_time now)
{
    take(store, now);
    struct mrt_sql_request *next = TAILQ_FIRST(&store->sent);
    if (next && !next->sent && !store->broken)
        send_flight(store, next, now);
    int unsent = store->broken ? 0 : PQflush(store->driver->connection);
    if (unsent < 0)
        store->broken = true;
    else if (!store->broken)
        mrt_sql_watch(store, PQsocket(store->driver->connection),
                      unsent ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* ------------------------------------------------------------------ rows */

int mrt_sql_rows_count(void *rows)
{
    return PQntuples(rows);
}

const char *mrt_sql_rows_text(void *rows, int row, int column)
{
    return PQgetisnull(rows, row, column) ? NULL : PQgetvalue(rows, row, column);
}

void mrt_sql_rows_free(void *rows)
{
    PQclear(rows);
}

/* The certificate and the host's name in it. */
static bool is_checked(PGconn *connection)
{
    PQconninfoOption *options = PQconninfo(connection), *option = options;
    while (option && option->keyword && strcmp(option->keyword, "sslmode") != 0)
        option++;
    bool checked =
        option && option->keyword && option->val && strcmp(option->val, "verify-full") == 0;
    PQconninfoFree(options);
    return checked;
}

static const char *version_of(const struct mrt_sql_store *asker)
{
    PGconn *connection = asker->driver->connection;
    const char *version = connection ? PQparameterStatus(connection, "server_version") : NULL;
    if (!version)
        return NULL;
    snprintf(asker->driver->version, sizeof asker->driver->version, "%.80s%s%s", version,
             mrt_address_encrypted(PQsslInUse(asker->driver->connection), is_checked(connection)),
             asker->pooled      ? "; pooler: yes; waiters: look, " MRT_SQL_LOOKS
             : asker->told == 0 ? "; pooler: in session mode, by the URI; waiters: are notified"
                                : "; pooler: none was seen; waiters: are notified");
    return asker->driver->version;
}

int mrt_sql_server(struct mrt_store *port, char *text, size_t size)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    int error = mrt_sql_tell_version(store, version_of, text, size);
    if (error == MORTISE_OK)
        mrt_pg_check_access(store);
    return error;
}
