/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MariaDB store's module (doc/mariadb.md), and its connection. Nothing in it blocks except the
 * library's look-up of a host's name, which is already known (store/sql/connection.c).
 */
#include "store/sql/store.h"
#include "store/mariadb/internal.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/native/calls.h"
#include "store/sql/request.h"

#include "base/error.h"
#include "store/kit/module_glue.h"

#include <errmsg.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

const char mrt_sql_product[] = "MariaDB";
const bool mrt_sql_notifies = false;
const bool mrt_sql_async_commit = false;
const bool mrt_sql_removes_last = false;
const int mrt_sql_schema_version = 2;
const bool mrt_sql_named_shares = false;
const bool mrt_sql_shows_rows = false; /* a look locks it */

/* Columns of the statements' rows. */
enum { SETUP_BACKEND, SETUP_READ_ONLY, SETUP_VERSION, SETUP_ALONE, SETUP_FAULT };
enum { RENEW_BACKEND = 2, RENEW_READ_ONLY };

/* ------------------------------------------------------------------ its beginning */

/* Names what mortise keeps with a connection: its count of bytes. */
static char own_data[] = "mortise";

/* The library exports this, and does not declare it. */
int STDCALL ma_pvio_register_callback(my_bool registers,
                                      void (*callback)(int writes, MYSQL *connection,
                                                       const unsigned char *bytes, size_t size));

/* The library reads a reply to its end within one call. So a reply that is too long loses its
   connection while the library reads. Connections of the program's own have no count. */
static void count_received(int writes, MYSQL *connection, const unsigned char *bytes, size_t size)
{
    size_t *received = NULL;
    (void)bytes;
    if (writes || (ssize_t)size <= 0)
        return;
    mysql_get_optionv(connection, MARIADB_OPT_USERDATA, own_data, &received);
    if (received && (*received += size) > MRT_SQL_REPLY_MAX)
        shutdown((int)mysql_get_socket(connection), SHUT_RDWR);
}

/* The first call of the library must not be made by two threads at a time. */
static void init_library(void)
{
    mysql_library_init(0, NULL, NULL);
    ma_pvio_register_callback(1, count_received);
}

/* Restricts what a server may request of the client: a plugin that sends the password in the clear
   is allowed only if the server is verified or on this machine's socket, and no file that the
   server names is sent. */
static void restrict_server(MYSQL *connection, const struct mrt_mariadb_connection_options *words)
{
    static const char hashed[] = "mysql_native_password,client_ed25519,auth_gssapi_client,parsec";
    static const char any[] = "mysql_native_password,client_ed25519,auth_gssapi_client,parsec,"
                              "mysql_clear_password,dialog";
    const unsigned none = 0;
    const my_bool on = 1;
    bool known = words->tls == MRT_SQL_TLS_VERIFY || *words->socket;
    mysql_options(connection, MYSQL_OPT_LOCAL_INFILE, &none);
    mysql_options(connection, MARIADB_OPT_RESTRICTED_AUTH, known ? any : hashed);
    if (words->tls >= MRT_SQL_TLS_REQUIRED)
        mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &on);
    if (words->tls == MRT_SQL_TLS_VERIFY)
        mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
    if (*words->tls_ca)
        mysql_options(connection, MYSQL_OPT_SSL_CA, words->tls_ca);
}

/* The library searches the server's version for a word when the server reports progress. A server
   can do so before its greeting, which brings the version. Until then the version is empty. */
static bool begin_guard(MYSQL *connection, struct mrt_mariadb_guard *guard)
{
    guard->received = 0;
    guard->no_version = connection->server_version = strdup("");
    return guard->no_version &&
           mysql_optionsv(connection, MARIADB_OPT_USERDATA, own_data, &guard->received) == 0;
}

void mrt_mariadb_close(MYSQL *connection, struct mrt_mariadb_guard *guard)
{
    /* Both are set after a greeting, whose version replaced this one. Else the library frees it. */
    if (connection && (connection->server_capabilities || connection->client_flag))
        free(guard->no_version);
    mysql_close(connection);
}

MYSQL *mrt_mariadb_new(const struct mrt_mariadb_connection_options *words,
                       struct mrt_mariadb_guard *guard)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const unsigned tcp = MYSQL_PROTOCOL_TCP;
    pthread_once(&once, init_library);
    MYSQL *connection = mysql_init(NULL);
    if (!connection || !begin_guard(connection, guard)) {
        mysql_close(connection);
        return NULL;
    }
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options4(connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "mortise");
    if (words->by_port)
        mysql_options(connection, MYSQL_OPT_PROTOCOL, &tcp);
    restrict_server(connection, words);
    if (*words->option_file)
        mysql_options(connection, MYSQL_READ_DEFAULT_FILE, words->option_file);
    if (*words->option_file || *words->option_group)
        mysql_options(connection, MYSQL_READ_DEFAULT_GROUP,
                      *words->option_group ? words->option_group : "mortise");
    return connection;
}

/* The library accepts a server without TLS unless it verifies the certificate. */
bool mrt_mariadb_is_open(MYSQL *connection, const struct mrt_mariadb_connection_options *words)
{
    return words->tls >= MRT_SQL_TLS_REQUIRED && !mysql_get_ssl_cipher(connection);
}

const char *mrt_mariadb_tls_advice(const struct mrt_mariadb_connection_options *words,
                                   unsigned code)
{
    if (code == CR_AUTH_PLUGIN_ERR || code == CR_AUTH_PLUGIN_CANNOT_LOAD)
        return "; a password is sent in the clear with tls=verify only";
    return code == CR_SSL_CONNECTION_ERROR ? mrt_sql_tls_advice(words->tls) : "";
}

void mrt_mariadb_error_line(MYSQL *connection, char *line, size_t size)
{
    unsigned code = mysql_errno(connection);
    mrt_sql_first_line(mysql_error(connection), line, size);
    char *open = strrchr(line, '('), *end = NULL;
    bool of_system = code == CR_CONNECTION_ERROR || code == CR_CONN_HOST_ERROR;
    long number = of_system && open ? strtol(open + 1, &end, 10) : 0;
    if (number > 0 && strcmp(end, ")") == 0)
        snprintf(open, size - (size_t)(open - line), "(%s)", strerror((int)number));
}

/* Waits until the library can go on, at most until `end`: the MYSQL_WAIT_ bits that are ready. */
static int wait_until(MYSQL *connection, int waits, mrt_time end)
{
    struct pollfd socket = {.fd = (int)mysql_get_socket(connection)};
    mrt_time left = end - mrt_time_now();
    socket.events =
        (short)((waits & MYSQL_WAIT_READ ? POLLIN : 0) | (waits & MYSQL_WAIT_WRITE ? POLLOUT : 0));
    if (left <= 0 || poll(&socket, 1, (int)(left / MRT_MILLISECOND) + 1) == 0)
        return MYSQL_WAIT_TIMEOUT;
    return waits & (MYSQL_WAIT_READ | MYSQL_WAIT_WRITE);
}

/* By the calls that do not block: after one that does, the library names another reason than the
   true one. */
MYSQL *mrt_mariadb_connect(const struct mrt_mariadb_connection_options *words, bool *connected,
                           struct mrt_mariadb_guard *guard)
{
    MYSQL *connection = mrt_mariadb_new(words, guard), *result = NULL;
    mrt_time end = mrt_time_add(mrt_time_now(), words->connect);
    *connected = false;
    if (!connection || mysql_options(connection, MYSQL_OPT_NONBLOCK, 0) != 0)
        return connection;
    int waits = mysql_real_connect_start(
        &result, connection, words->host, words->user, words->password, NULL, words->port,
        *words->socket ? words->socket : NULL, CLIENT_MULTI_STATEMENTS);
    while (waits)
        waits = mysql_real_connect_cont(&result, connection, wait_until(connection, waits, end));
    *connected = result;
    return connection;
}

static void connecting(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    if (driver->waits) {
        mrt_mariadb_watch(store);
        return;
    }
    driver->doing = MRT_MARIADB_NOTHING;
    driver->guard.received = 0;
    if (driver->connected && mrt_mariadb_is_open(driver->connection, &driver->words)) {
        mrt_sql_reject(store, MORTISE_EUNREACHABLE, "MariaDB: the server does not encrypt%s",
                       mrt_sql_tls_advice(driver->words.tls));
        return;
    }
    if (driver->connected) {
        mrt_sql_check(store, now);
        return;
    }
    char line[256], number[8];
    unsigned code = mysql_errno(driver->connection);
    snprintf(number, sizeof number, "%u", code % 100000);
    int error = code >= 2000 && code < 3000 ? MORTISE_EUNREACHABLE : mrt_sql_code(number)->error;
    const char *advice = mrt_sql_code(number)->advice;
    mrt_mariadb_error_line(driver->connection, line, sizeof line);
    mrt_sql_reject(store, error == MORTISE_ESTORE ? MORTISE_EUNREACHABLE : error,
                   "MariaDB: %.100s: %.150s%s%s%s", store->address.shown, line, advice ? "; " : "",
                   advice ? advice : "", mrt_mariadb_tls_advice(&driver->words, code));
}

void mrt_sql_driver_connect(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    const struct mrt_mariadb_connection_options *words = &driver->words;
    driver->connection = mrt_mariadb_new(words, &driver->guard);
    if (!driver->connection || mysql_options(driver->connection, MYSQL_OPT_NONBLOCK, 0) != 0) {
        mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    driver->doing = MRT_MARIADB_CONNECTING;
    /* A lock by name is the server's. */
    const char *database = store->steps == MRT_SQL_DO_NAMED ? NULL : words->database;
    driver->waits = mysql_real_connect_start(&driver->connected, driver->connection, words->host,
                                             words->user, words->password, database, words->port,
                                             *words->socket ? words->socket : NULL,
                                             CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS);
    if (driver->waits)
        mrt_mariadb_watch(store);
}

void mrt_sql_driver_go_on(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    int ready = driver->waits ? mrt_mariadb_ready(store) : 0;
    if (driver->waits && !ready)
        return;
    store->mask = 0; /* the library may have another socket by now, of the same number */
    if (driver->waits)
        driver->waits = mysql_real_connect_cont(&driver->connected, driver->connection, ready);
    connecting(store, now);
}

/* ------------------------------------------------------------------ what it is */

void mrt_sql_driver_check(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    store->driver->backend = (uint64_t)mrt_sql_number(request, SETUP_BACKEND);
    if (request->failed)
        mrt_sql_reject_setup(store, request);
    else if (mrt_sql_number(request, SETUP_READ_ONLY))
        mrt_sql_reject(store, store->was_ready ? MORTISE_EUNREACHABLE : MORTISE_ENOTSUPPORTED,
                       "MariaDB: the server is read-only; locks need one that can be written to");
    else if (store->address.synchronous && mrt_sql_number(request, SETUP_ALONE))
        mrt_sql_reject(store, store->was_ready ? MORTISE_EUNREACHABLE : MORTISE_ENOTSUPPORTED,
                       "MariaDB: commits do not wait for a replica, which synchronous=required "
                       "asks for");
    else if (!mrt_sql_is_null(request, SETUP_FAULT))
        mrt_sql_reject(store, MORTISE_ESETUP, "MariaDB: %.64s.%.180s", store->address.schema,
                       mrt_sql_text(request, SETUP_FAULT));
    else if (mrt_sql_accept_schema(store, mrt_sql_number(request, SETUP_VERSION)))
        mrt_sql_connected(store);
}

bool mrt_sql_driver_same(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    return (uint64_t)mrt_sql_number(request, RENEW_BACKEND) == store->driver->backend;
}

bool mrt_sql_driver_writable(const struct mrt_sql_request *request)
{
    return !mrt_sql_number(request, RENEW_READ_ONLY);
}

uint64_t mrt_sql_driver_to_kill(const struct mrt_sql_store *store)
{
    return store->state == MRT_SQL_READY ? store->driver->backend : 0;
}

/* ------------------------------------------------------------------ its end */

void mrt_sql_driver_disconnect(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    mrt_mariadb_close(driver->connection, &driver->guard);
    driver->connection = NULL;
    driver->doing = MRT_MARIADB_NOTHING;
    driver->waits = 0;
    driver->rolls_back = driver->prepared = driver->unprepared = false;
    free(driver->text);
    driver->text = NULL;
}

void mrt_sql_driver_free(struct mrt_sql_store *store)
{
    if (!store->driver)
        return;
    mrt_sql_driver_disconnect(store);
    explicit_bzero(store->driver, sizeof *store->driver);
    free(store->driver);
}

int mrt_sql_driver_leave(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    int socket = driver->connection ? (int)mysql_get_socket(driver->connection) : -1;
    explicit_bzero(driver, sizeof *driver);
    return socket;
}

int mrt_sql_driver_open(struct mrt_sql_store *store, const struct mrt_uri *uri)
{
    store->driver = calloc(1, sizeof *store->driver);
    return store->driver ? mrt_mariadb_uri_parse(uri, &store->address, &store->driver->words)
                         : MORTISE_ENOMEM;
}

/* ------------------------------------------------------------------ the module */

static const struct mrt_store_ops get_lock_store = {
    .scheme = "mysql",
    MRT_NATIVE_CALLS(named),
};

static const struct mrt_store_ops row_store = {
    .scheme = "mysql",
    .init = mrt_mariadb_init_rows,
    MRT_NATIVE_CALLS(row),
};

static int choose(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    const char *form = mrt_uri_parameter(uri, "form");
    if (!form)
        return MORTISE_OK;
    *ops = strcmp(form, "get_lock") == 0 ? &get_lock_store : &row_store;
    return strcmp(form, "get_lock") == 0 || strcmp(form, "row") == 0
               ? MORTISE_OK
               : mrt_error(MORTISE_EURI,
                           "form=%.32s is not a form of MariaDB's locks: get_lock or row", form);
}

static const struct mrt_store_ops mariadb_store = {
    .scheme = "mysql",
    .choose = choose,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .exclusive_fair = 1,
                     .fence = 1,
                     .notify = 0,
                     .across_hosts = 1,
                     .survives_failover = 0,
                     .durable_fence = 1,
                     .detach = 1,
                     .lock_delay = 1,
                     .lease_ms = 10000},
    .init = mrt_mariadb_init,
    MRT_SQL_CALLS,
};

__attribute__((visibility("default"))) mrt_module_entry mortise_store_module;

const struct mrt_store_ops *mortise_store_module(const struct mrt_module_host *host)
{
    return mrt_module_greet(host) ? &mariadb_store : NULL;
}
