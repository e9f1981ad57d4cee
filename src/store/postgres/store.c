/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PostgreSQL store's module (doc/postgresql.md), and its connection.
 *
 * The check of a new connection tells whether there is a pooler. One that gives each transaction
 * another server process takes LISTEN away, and everything else that a session is. It shows: the
 * greeting has another process number than the server, or the process has been used before; if
 * neither, by a renewal in another process, and the client connects anew. Then the store is
 * `pooled`: each transaction begins with the settings that it needs (MRT_PG_BRIEF), no statement is
 * prepared, and waiters look. That is right, and slower, also where a pooler does keep sessions
 * apart. Until the check is answered, nothing is left behind in a process that is not ours.
 */
#include "store/sql/store.h"
#include "store/postgres/internal.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/native/calls.h"
#include "store/sql/request.h"

#include "base/error.h"
#include "store/kit/module_glue.h"

#include <linux/tcp.h> /* struct tcp_info has more fields than that of netinet/tcp.h */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PRETENDS                                                                                  \
    "PostgreSQL: the server is CockroachDB, whose advisory locks and row locks are not those of " \
    "PostgreSQL; use a store without form="
#define NO_FORM_THERE                                                                          \
    "a lock of a form lasts as long as the server's session, which a pooler gives to others; " \
    "connect to the server itself, or leave form= out"
#define NOBODYS (UINT64_C(1) << 32) /* is no process's number */
#define WRITABLE "; locks need a server that can be written to"

const char mrt_sql_product[] = "PostgreSQL";
const bool mrt_sql_notifies = true;
const bool mrt_sql_async_commit = true;
const bool mrt_sql_removes_last = true;
const int mrt_sql_schema_version = 3;
const bool mrt_sql_named_shares = true;
const bool mrt_sql_shows_rows = true;

/* Columns of the statements' rows. */
enum { SETUP_VERSION, SETUP_BACKEND, SETUP_READ_ONLY, SETUP_ALONE, SETUP_USED, SETUP_PRETENDS };
enum { RENEW_BACKEND = 2 };

/* ------------------------------------------------------------------ its beginning */

/* One that was written to, or another of several, may be about to be the primary. */
static int error_of_a_server(const struct mrt_sql_store *store)
{
    return store->was_ready || store->driver->words.several ? MORTISE_EUNREACHABLE
                                                            : MORTISE_ENOTSUPPORTED;
}

static void reject_as_libpq_says(struct mrt_sql_store *store)
{
    char sqlstate[6], line[256];
    const char *message = PQerrorMessage(store->driver->connection);
    mrt_pg_code_in(message, sqlstate);
    mrt_sql_first_line(message, line, sizeof line);
    int error = sqlstate[0] ? mrt_sql_code(sqlstate)->error : MORTISE_EUNREACHABLE;
    /* From libpq, of target_session_attrs=read-write: a standby is, too. */
    bool read_only = !sqlstate[0] && strstr(message, "read-only");
    if (read_only)
        error = error_of_a_server(store);
    if (error == MORTISE_ESTORE)
        error = MORTISE_EUNREACHABLE;
    const char *tls = !sqlstate[0] && (strstr(line, "SSL") || strstr(line, "certificate"))
                          ? mrt_sql_tls_advice(store->address.tls)
                          : "";
    mrt_sql_reject(store, error, "PostgreSQL: %.170s%s%s", line,
                   read_only && strstr(line, "read-only") ? WRITABLE : "", tls);
}

/* A library does not print, and libpq would. */
static void ignore_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
}

uint64_t mrt_pg_received(const PGconn *connection)
{
    struct tcp_info info = {.tcpi_bytes_received = 0};
    socklen_t size = sizeof info;
    if (getsockopt(PQsocket(connection), IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return 0;
    return info.tcpi_bytes_received;
}

/* Waits for the next result; false: the reply is too long. After a failure libpq has it at once. */
static bool await_result(PGconn *connection, uint64_t most)
{
    while (PQisBusy(connection)) {
        struct pollfd poller = {.fd = PQsocket(connection), .events = POLLIN};
        if (poll(&poller, 1, -1) > 0 && !PQconsumeInput(connection))
            return true;
        if (mrt_pg_received(connection) > most)
            return false;
    }
    return true;
}

PGresult *mrt_pg_execute(PGconn *connection, const char *text, const char **fault)
{
    uint64_t most = mrt_pg_received(connection) + MRT_SQL_REPLY_MAX;
    PGresult *last = NULL, *next;
    *fault = NULL;
    if (!PQsendQuery(connection, text))
        return NULL;
    for (;;) {
        if (!await_result(connection, most)) {
            PQclear(last);
            *fault = MRT_SQL_REPLY_TOO_LONG;
            return NULL;
        }
        next = PQgetResult(connection);
        if (!next)
            return last;
        PQclear(last);
        last = next;
        ExecStatusType status = PQresultStatus(last);
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH)
            return last; /* of no statement of ours */
    }
}

/* Goes on until the connection is there or libpq has failed; false: *fault says why not. */
static bool finish_connecting(PGconn *connection, mrt_time until, const char **fault)
{
    PostgresPollingStatusType wants = PGRES_POLLING_WRITING;
    while (PQstatus(connection) != CONNECTION_BAD && wants != PGRES_POLLING_OK) {
        struct pollfd poller = {.fd = PQsocket(connection),
                                .events = wants == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        if (mrt_pg_received(connection) > MRT_SQL_REPLY_MAX)
            *fault = MRT_SQL_REPLY_TOO_LONG;
        else if (mrt_time_now() >= until)
            *fault = "no server has answered within connect=";
        if (*fault)
            return false;
        if (poll(&poller, 1, (int)mrt_time_left_ms(until, mrt_time_now())) > 0)
            wants = PQconnectPoll(connection);
    }
    return true;
}

PGconn *mrt_pg_connect(const struct mrt_pg_connection_options *words,
                       const struct mrt_sql_address *address, const char **fault)
{
    /* The system gives up a host that does not answer after the lease; libpq then tries the next.
     */
    mrt_time others = address->host_count > 1 ? (mrt_time)address->host_count - 1 : 0;
    mrt_time until =
        mrt_time_now() + address->connect + others * (address->connect + address->lease);
    PGconn *connection = PQconnectStartParams(words->words, (const char *const *)words->values, 1);
    PQsetNoticeReceiver(connection, ignore_notice, NULL);
    *fault = NULL;
    if (finish_connecting(connection, until, fault))
        return connection;
    PQfinish(connection);
    return NULL;
}

void mrt_sql_driver_connect(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    driver->connection =
        PQconnectStartParams(driver->words.words, (const char *const *)driver->words.values, 1);
    memset(driver->prepared, 0, sizeof driver->prepared);
    driver->reply_from = 0;
    if (!driver->connection) {
        mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    PQsetErrorVerbosity(driver->connection, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(driver->connection, ignore_notice, NULL);
    if (PQstatus(driver->connection) == CONNECTION_BAD)
        reject_as_libpq_says(store);
    else
        mrt_sql_watch(store, PQsocket(driver->connection), EPOLLOUT);
}

/* The connection is there. */
static void prepare(struct mrt_sql_store *store, mrt_time now)
{
    PGconn *connection = store->driver->connection;
    if (PQsetnonblocking(connection, 1) != 0 || !PQenterPipelineMode(connection)) {
        mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
    if (store->steps && PQparameterStatus(connection, "crdb_version")) {
        mrt_sql_reject(store, MORTISE_ENOTSUPPORTED, PRETENDS);
        return;
    }
    uint32_t told = (uint32_t)PQbackendPID(connection);
    enum mrt_pg_pooler pooler = store->driver->words.pooler;
    store->told = pooler == MRT_PG_POOLER_SESSION                    ? 0
                  : pooler == MRT_PG_POOLER_TRANSACTION || told == 0 ? NOBODYS
                                                                     : told;
    mrt_sql_check(store, now);
}

void mrt_sql_driver_go_on(struct mrt_sql_store *store, mrt_time now)
{
    PGconn *connection = store->driver->connection;
    if (!mrt_sql_ready(store))
        return;
    if (mrt_pg_received(connection) > MRT_SQL_REPLY_MAX) { /* to what libpq asks by itself */
        mrt_sql_reject(store, MORTISE_EUNREACHABLE, "PostgreSQL: " MRT_SQL_REPLY_TOO_LONG);
        return;
    }
    store->mask = 0; /* libpq may have another socket by now, of the same number */
    PostgresPollingStatusType wants = PQconnectPoll(connection);
    if (wants == PGRES_POLLING_OK)
        prepare(store, now);
    else if (wants == PGRES_POLLING_FAILED)
        reject_as_libpq_says(store);
    else
        mrt_sql_watch(store, PQsocket(connection),
                      wants == PGRES_POLLING_READING ? EPOLLIN : EPOLLOUT);
}

/* ------------------------------------------------------------------ what it is */

/* Whether the connection may be anybody's in the next transaction; true too if a pooler keeps it
   for this client and cannot be told from one that does not. */
static bool is_shared(const struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    return mrt_sql_number(request, SETUP_USED) ||
           (store->told != 0 && store->told != (uint64_t)store->driver->backend);
}

/* Whether this pooler, or none, can be used. */
static bool accept_pooler(struct mrt_sql_store *store, bool shared)
{
    enum mrt_pg_pooler pooler = store->driver->words.pooler;
    if (!shared)
        return true;
    if (store->steps)
        mrt_sql_reject(
            store, MORTISE_ENOTSUPPORTED,
            "PostgreSQL: there is a connection pooler before the server; " NO_FORM_THERE);
    else if (pooler == MRT_PG_POOLER_NO)
        mrt_sql_reject(
            store, MORTISE_ENOTSUPPORTED,
            "PostgreSQL: there is a connection pooler before the server, which pooler=no "
            "excludes");
    else if (pooler == MRT_PG_POOLER_SESSION)
        mrt_sql_reject(store, MORTISE_ENOTSUPPORTED,
                       "PostgreSQL: the pooler gives out connections that others have used, which "
                       "is not pooler=session; leave that out");
    return !store->broken;
}

void mrt_sql_driver_check(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    struct mrt_sql_driver *driver = store->driver;
    driver->backend = mrt_sql_number(request, SETUP_BACKEND);
    bool shared = !request->failed && is_shared(store, request);
    if (request->failed && strcmp(request->state, MRT_PG_FAULT_STATE) == 0)
        mrt_sql_reject(store, MORTISE_ESETUP, "PostgreSQL: %.240s", request->detail);
    else if (request->failed)
        mrt_sql_reject_setup(store, request);
    else if (mrt_sql_number(request, SETUP_READ_ONLY)) /* behind a pooler libpq does not see it */
        mrt_sql_reject(store, error_of_a_server(store),
                       "PostgreSQL: the server is read-only or a standby" WRITABLE);
    else if (store->address.synchronous && mrt_sql_number(request, SETUP_ALONE))
        mrt_sql_reject(store, error_of_a_server(store),
                       "PostgreSQL: commits do not wait for a standby, which synchronous=required "
                       "asks for");
    else if (store->steps && mrt_sql_number(request, SETUP_PRETENDS))
        mrt_sql_reject(store, MORTISE_ENOTSUPPORTED, PRETENDS);
    else if (mrt_sql_accept_schema(store, mrt_sql_number(request, SETUP_VERSION)) &&
             accept_pooler(store, shared)) {
        store->pooled = shared;
        mrt_sql_connected(store);
    }
}

bool mrt_sql_driver_same(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    enum mrt_pg_pooler *pooler = &store->driver->words.pooler;
    if (store->pooled || mrt_sql_number(request, RENEW_BACKEND) == store->driver->backend)
        return true;
    if (store->steps || *pooler != MRT_PG_POOLER_AUTO)
        return false;
    *pooler = MRT_PG_POOLER_TRANSACTION; /* on all later connections */
    mrt_sql_reject(store, MORTISE_EUNREACHABLE,
                   "PostgreSQL: there is a connection pooler before the server; connecting anew "
                   "without a session of the server's");
    return true;
}

/* A server becomes a standby only by a restart. */
bool mrt_sql_driver_writable(const struct mrt_sql_request *request)
{
    (void)request;
    return true;
}

/* Within a second (client_connection_check_interval). */
uint64_t mrt_sql_driver_to_kill(const struct mrt_sql_store *store)
{
    (void)store;
    return 0;
}

/* ------------------------------------------------------------------ its end */

void mrt_sql_driver_disconnect(struct mrt_sql_store *store)
{
    PQfinish(store->driver->connection);
    store->driver->connection = NULL;
}

void mrt_sql_driver_free(struct mrt_sql_store *store)
{
    if (!store->driver)
        return;
    mrt_sql_driver_disconnect(store);
    mrt_pg_words_free(&store->driver->words);
    free(store->driver);
}

int mrt_sql_driver_leave(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    int socket = driver->connection ? PQsocket(driver->connection) : -1;
    mrt_pg_words_free(&driver->words);
    return socket;
}

int mrt_sql_driver_open(struct mrt_sql_store *store, const struct mrt_uri *uri)
{
    store->driver = calloc(1, sizeof *store->driver);
    return store->driver ? mrt_pg_uri_parse(uri, &store->address, &store->driver->words)
                         : MORTISE_ENOMEM;
}

/* ------------------------------------------------------------------ the module */

static const struct mrt_store_ops advisory_store = {
    .scheme = "postgresql",
    MRT_NATIVE_CALLS(named),
};

static const struct mrt_store_ops row_store = {
    .scheme = "postgresql",
    .init = mrt_pg_init_rows,
    MRT_NATIVE_CALLS(row),
};

/* The promises of each of its stores; `sessions`: where the server's sessions are the clients' own.
 */
#define CAPABILITIES(sessions)                             \
    .capabilities = {.size = sizeof(mortise_capabilities), \
                     .fair = 1,                            \
                     .exclusive_fair = 1,                  \
                     .fence = 1,                           \
                     .notify = (sessions),                 \
                     .across_hosts = 1,                    \
                     .survives_failover = 0,               \
                     .durable_fence = 1,                   \
                     .detach = 1,                          \
                     .linger = (sessions),                 \
                     .lock_delay = 1,                      \
                     .lease_ms = 10000}

static const struct mrt_store_ops pooled_store = {
    .scheme = "postgresql",
    CAPABILITIES(0),
    .init = mrt_pg_init,
    MRT_SQL_CALLS,
};

static int choose_form(const char *form, enum mrt_pg_pooler pooler,
                       const struct mrt_store_ops **ops)
{
    *ops = strcmp(form, "advisory") == 0 ? &advisory_store : &row_store;
    if (strcmp(form, "advisory") != 0 && strcmp(form, "row") != 0)
        return mrt_error(MORTISE_EURI,
                         "form=%.32s is not a form of PostgreSQL's locks: advisory or row", form);
    return pooler == MRT_PG_POOLER_AUTO || pooler == MRT_PG_POOLER_NO
               ? MORTISE_OK
               : mrt_error(MORTISE_ENOTSUPPORTED, "form=%.32s and pooler=: " NO_FORM_THERE, form);
}

static int choose(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    const char *form = mrt_uri_parameter(uri, "form");
    enum mrt_pg_pooler pooler;
    int error = mrt_pg_read_pooler(uri, &pooler);
    if (error == MORTISE_OK && form)
        error = choose_form(form, pooler, ops);
    else if (error == MORTISE_OK && pooler == MRT_PG_POOLER_TRANSACTION)
        *ops = &pooled_store;
    return error;
}

static const struct mrt_store_ops postgres_store = {
    .scheme = "postgresql",
    .choose = choose,
    CAPABILITIES(1),
    .init = mrt_pg_init,
    MRT_SQL_CALLS,
};

__attribute__((visibility("default"))) mrt_module_entry mortise_store_module;

const struct mrt_store_ops *mortise_store_module(const struct mrt_module_host *host)
{
    return mrt_module_greet(host) ? &postgres_store : NULL;
}
