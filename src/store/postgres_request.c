/*
 * Requests on the wire. Statements are prepared when they are first used, in the same flight;
 * libpq keeps no more of them than their order, so a request counts its own results.
 */
#include "store/postgres_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END (-1)

/* The statements of each kind, and the one whose row is the answer. */
static const struct {
    int answer;
    int statement[MRT_PG_PLAN_MAX + 1];
} plans[MRT_PG_KINDS] = {
    [MRT_PG_DO_SETUP] = {MRT_PG_SETUP, {MRT_PG_SETUP, MRT_PG_VERSION, END}},
    [MRT_PG_DO_START] = {MRT_PG_START, {MRT_PG_START, MRT_PG_LISTEN, END}},
    [MRT_PG_DO_RESUME] = {MRT_PG_RESUME, {MRT_PG_RESUME, MRT_PG_LISTEN, END}},
    [MRT_PG_DO_STOP] = {END,
                        {MRT_PG_LOCK_ALL, MRT_PG_LEAVE_ALL, MRT_PG_END_SESSION, MRT_PG_UNLISTEN,
                         END}},
    [MRT_PG_DO_RENEW] = {MRT_PG_RENEW, {MRT_PG_LOCK_SESSION, MRT_PG_RENEW, END}},
    [MRT_PG_DO_APPEND] = {MRT_PG_APPEND, {MRT_PG_BUMP, MRT_PG_APPEND, END}},
    [MRT_PG_DO_VIEW] = {MRT_PG_VIEW, {MRT_PG_VIEW, END}},
    [MRT_PG_DO_REMOVE] = {MRT_PG_REMOVE, {MRT_PG_LOCK_QUEUE, MRT_PG_REMOVE, END}},
    [MRT_PG_DO_REMOVE_QUIETLY] = {END, {MRT_PG_REMOVE_QUIETLY, END}},
    [MRT_PG_DO_LIGHTEN] = {MRT_PG_VIEW, {MRT_PG_LOCK_QUEUE, MRT_PG_LIGHTEN, MRT_PG_VIEW, END}},
    [MRT_PG_DO_REAP] = {END, {MRT_PG_REAP, MRT_PG_CLEAR, END}},
    [MRT_PG_DO_SWEEP] = {END,
                         {MRT_PG_SWEEP_SESSIONS, MRT_PG_SWEEP_TICKETS, MRT_PG_SWEEP_QUEUES, END}},
    [MRT_PG_DO_LIST] = {MRT_PG_LIST, {MRT_PG_LIST, END}},
};

struct mrt_pg_request *mrt_pg_request_new(enum mrt_pg_kind kind)
{
    struct mrt_pg_request *request = calloc(1, sizeof *request);
    if (request)
        request->kind = kind;
    return request;
}

void mrt_pg_request_free(struct mrt_pg_request *request)
{
    if (request)
        PQclear(request->rows);
    free(request);
}

/* ------------------------------------------------------------------ sending */

/* The parameters' texts; room for all that are not texts already. */
struct values {
    const char *value[MRT_PG_PARAMETERS_MAX];
    char session[MRT_ID_TEXT_SIZE], ticket[MRT_ID_TEXT_SIZE];
    char epoch[24], lease[24], weight[24], capacity[24], queue_max[24], limit[24], idle[24];
};

static void write_number(char text[24], uint64_t number)
{
    snprintf(text, 24, "%" PRIu64, number);
}

static void fill(const struct mrt_store *store, const struct mrt_pg_request *request,
                 struct values *all)
{
    const struct mrt_command *command = &request->command;
    mrt_time third = store->address.lease / (3 * MRT_SECOND);
    mrt_id_format(command->session, all->session);
    mrt_id_format(command->ticket, all->ticket);
    write_number(all->epoch, store->epoch);
    write_number(all->lease, (uint64_t)(store->address.lease / MRT_MICROSECOND));
    write_number(all->weight, command->weight);
    write_number(all->capacity, command->capacity);
    write_number(all->queue_max, command->queue_max);
    write_number(all->limit, (uint64_t)(store->address.lease / (4 * MRT_MILLISECOND)));
    write_number(all->idle, (uint64_t)(third > 0 ? third : 1));
}

#define SET(...)                                  \
    do {                                          \
        const char *const list[] = {__VA_ARGS__}; \
        memcpy(all->value, list, sizeof list);    \
    } while (0)

/* The parameters of one statement, in its order. */
static void choose(const struct mrt_store *store, const struct mrt_pg_request *request,
                   int statement, struct values *all)
{
    const struct mrt_command *command = &request->command;
    switch (statement) {
    case MRT_PG_SETUP:
        SET(store->address.schema, all->limit, all->idle, "1");
        break;
    case MRT_PG_START:
        SET(all->session, all->epoch, all->lease, store->label);
        break;
    case MRT_PG_RESUME:
        SET(all->session, all->epoch);
        break;
    case MRT_PG_RENEW:
        SET(all->session, all->lease);
        break;
    case MRT_PG_APPEND:
        SET(command->queue, all->ticket, all->session, all->weight, command->kind, all->capacity,
            command->try_only ? "true" : "false", all->queue_max, all->epoch);
        break;
    case MRT_PG_REMOVE:
    case MRT_PG_LIGHTEN:
        SET(all->session, all->ticket, command->queue, all->weight);
        break;
    case MRT_PG_BUMP:
    case MRT_PG_LOCK_QUEUE:
    case MRT_PG_REAP:
    case MRT_PG_CLEAR:
        SET(command->queue);
        break;
    case MRT_PG_LIST:
        SET(request->name, request->prefix);
        break;
    default:
        SET(all->session, all->ticket);
    }
}

static void note_step(struct mrt_pg_request *request, int statement, bool prepares)
{
    request->step[request->steps].statement = statement;
    request->step[request->steps++].prepares = prepares;
}

static bool send_prepared(struct mrt_store *store, struct mrt_pg_request *request, int statement,
                          struct values *all)
{
    const struct mrt_pg_statement_text *text = mrt_pg_statement((enum mrt_pg_statement)statement);
    if (!store->prepared[statement]) {
        if (!PQsendPrepare(store->connection, text->name, text->text, 0, NULL))
            return false;
        note_step(request, statement, true);
        store->prepared[statement] = true;
    }
    choose(store, request, statement, all);
    note_step(request, statement, false);
    return PQsendQueryPrepared(store->connection, text->name, text->parameters, all->value, NULL,
                               NULL, 0);
}

/* LISTEN takes no parameter: its channel is 32 hexadecimal digits of ours. */
static bool send_listen(struct mrt_store *store, struct mrt_pg_request *request, int statement,
                        const struct values *all)
{
    char text[64];
    snprintf(text, sizeof text, "%s mortise_%s", statement == MRT_PG_LISTEN ? "LISTEN" : "UNLISTEN",
             all->session);
    note_step(request, statement, false);
    return PQsendQueryParams(store->connection, text, 0, NULL, NULL, NULL, NULL, 0);
}

void mrt_pg_send(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    struct values all;
    const int *statement = plans[request->kind].statement;
    bool taken = true;
    fill(store, request, &all);
    request->steps = request->at = 0;
    request->failed = request->has_row = false;
    request->sent = now;
    for (; *statement != END && taken; statement++)
        taken = *statement < MRT_PG_STATEMENT_COUNT
                    ? send_prepared(store, request, *statement, &all)
                    : send_listen(store, request, *statement, &all);
    TAILQ_INSERT_TAIL(&store->sent, request, link);
    if (!taken || !PQpipelineSync(store->connection))
        store->broken = true;
}

void mrt_pg_submit(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    if (request->begun == 0)
        request->begun = now;
    if (store->state == MRT_PG_READY && !store->broken)
        mrt_pg_send(store, request, now);
    else
        TAILQ_INSERT_TAIL(&store->waiting, request, link);
}

/* ------------------------------------------------------------------ reading */

static int64_t read_number(const char *text)
{
    errno = 0;
    return strtoll(text, NULL, 10);
}

static void read_row(struct mrt_pg_request *request, const PGresult *result)
{
    int columns = PQnfields(result);
    request->has_row = PQntuples(result) > 0;
    if (!request->has_row)
        return;
    for (int i = 0; i < columns && i < MRT_PG_COLUMNS_MAX; i++) {
        request->is_null[i] = PQgetisnull(result, 0, i);
        request->column[i] = read_number(PQgetvalue(result, 0, i));
    }
    if (request->kind == MRT_PG_DO_APPEND)
        snprintf(request->kind_text, sizeof request->kind_text, "%s",
                 PQgetvalue(result, 0, columns - 1));
}

static void read_error(struct mrt_pg_request *request, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (request->failed)
        return; /* the first is the cause */
    request->failed = true;
    snprintf(request->sqlstate, sizeof request->sqlstate, "%s", state ? state : "08006");
    mrt_pg_first_line(text ? text : PQresultErrorMessage(result), request->detail,
                      sizeof request->detail);
}

/* One result of the request; true: its last one. */
static bool read_result(struct mrt_store *store, struct mrt_pg_request *request, PGresult *result)
{
    bool known = request->at < request->steps;
    int statement = known ? request->step[request->at].statement : END;
    bool prepares = known && request->step[request->at].prepares;
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        if (statement == plans[request->kind].answer && !prepares) {
            read_row(request, result);
            if (request->kind == MRT_PG_DO_LIST) {
                PQclear(request->rows);
                request->rows = result;
                return false;
            }
        }
        break;
    case PGRES_COMMAND_OK:
        break;
    case PGRES_PIPELINE_SYNC:
        PQclear(result);
        return true;
    case PGRES_PIPELINE_ABORTED:
        if (prepares)
            store->prepared[statement] = false;
        break;
    default:
        read_error(request, result);
        if (known && statement < MRT_PG_STATEMENT_COUNT &&
            (prepares || strcmp(request->sqlstate, "26000") == 0))
            store->prepared[statement] = strcmp(request->sqlstate, "42P05") == 0;
    }
    PQclear(result);
    return false;
}

void mrt_pg_read(struct mrt_store *store, mrt_time now)
{
    struct mrt_pg_request *request;
    PGnotify *notification;
    if (!PQconsumeInput(store->connection))
        store->broken = true;
    while ((request = TAILQ_FIRST(&store->sent)) && !PQisBusy(store->connection)) {
        PGresult *result = PQgetResult(store->connection);
        if (!result && request->at++ < request->steps)
            continue; /* the end of one statement's results */
        if (!result)
            break; /* libpq has lost count */
        if (!read_result(store, request, result))
            continue;
        TAILQ_REMOVE(&store->sent, request, link);
        mrt_pg_finish(store, request, now);
    }
    if (PQstatus(store->connection) != CONNECTION_OK)
        store->broken = true;
    while ((notification = PQnotifies(store->connection))) {
        mrt_pg_notified(store, notification);
        PQfreemem(notification);
    }
}
