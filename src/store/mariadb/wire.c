/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on the wire: the server stops at the first statement of one that fails. If they are a
 * transaction then ROLLBACK follows, and only when that is answered has the request failed.
 *
 * Behind a removal or a renewal one more request leaves before it is answered: neither is a
 * transaction, in which the other would be if it failed, and that need not wait for one of them to
 * be made again. Nor is what gives back a form's lock; if that fails, the connection ends, and the
 * other with it. Not more than one: what waits for a row's lock must not keep renewals waiting for
 * longer than itself. Answers come in the order of requests.
 *
 * The library can do nothing else while it waits for a part of an answer. So where one alone is
 * awaited, it is not let to begin before some of it has come.
 */
#include "store/mariadb/internal.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/sql/answer.h"
#include "store/sql/columns.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/list.h"
#include "store/sql/request.h"
#include "store/sql/send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* ------------------------------------------------------------------ sending */

/* The request that may be sent now: the first, or the one behind it. */
static struct mrt_sql_request *next_to_send(const struct mrt_sql_store *store)
{
    enum mrt_mariadb_doing doing = store->driver->doing;
    struct mrt_sql_request *request = TAILQ_FIRST(&store->sent);
    if (request && request->sent && mrt_sql_goes_through(request))
        request = TAILQ_NEXT(request, link);
    bool can = doing == MRT_MARIADB_NOTHING || doing == MRT_MARIADB_SENT;
    return can && request && request->sent == 0 ? request : NULL;
}

static void send_text(struct mrt_sql_store *store, char *text)
{
    struct mrt_sql_driver *driver = store->driver;
    if (!text) {
        mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a request");
        return;
    }
    driver->text = text;
    driver->doing = MRT_MARIADB_SENDING;
    driver->waits = mysql_send_query_start(&driver->result, driver->connection, text, strlen(text));
}

static void start_step(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    request->whole |= driver->crowded || driver->unprepared;
    request->step[0].prepares = mrt_mariadb_is_alone(request) && !driver->prepared;
    request->sent = now;
    mrt_traffic_sent(store->traffic);
    request->at = 0;
    send_text(store, mrt_mariadb_text(store, request));
}

static void sent(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    free(driver->text);
    driver->text = NULL;
    driver->doing = MRT_MARIADB_SENT;
    store->broken |= driver->result != 0;
}

/* ------------------------------------------------------------------ answers */

static void read_answer(struct mrt_sql_driver *driver)
{
    driver->doing = MRT_MARIADB_READING;
    driver->waits = mysql_read_query_result_start(&driver->refused, driver->connection);
}

static void store_result(struct mrt_sql_driver *driver)
{
    driver->doing = MRT_MARIADB_STORING;
    driver->waits = mysql_store_result_start(&driver->stored, driver->connection);
}

/* The short form expected an empty queue. If another ticket is there, or the queue's row or the
   session is missing, the whole form follows, and the next acquire begins with it. */
static bool goes_on_whole(struct mrt_sql_driver *driver, struct mrt_sql_request *request)
{
    bool was_whole = request->whole;
    if (request->kind != MRT_SQL_DO_APPEND)
        return false;
    if (!request->failed) {
        driver->prepared |= !was_whole;
        driver->crowded =
            was_whole ? mrt_sql_number(request, MRT_APPEND_PLACE) > 0 : request->affected == 0;
        request->whole |= driver->crowded;
    } else if (!was_whole && mrt_sql_code(request->state)->outcome == MRT_SQL_FAILED) {
        driver->unprepared = request->whole = true;
    }
    return request->whole != was_whole;
}

/* The server has turned to the next one that was sent. Of its answer a part may have been read
   with this one, so it is not waited for. */
static void finish(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    struct mrt_sql_request *next = TAILQ_NEXT(request, link);
    bool again = goes_on_whole(driver, request);
    driver->rolls_back = false;
    driver->doing = MRT_MARIADB_NOTHING;
    driver->guard.received = 0;
    TAILQ_REMOVE(&store->sent, request, link);
    mrt_traffic_answered(store->traffic);
    if (next && next->sent) {
        next->sent = now;
        read_answer(driver);
    }
    if (again)
        mrt_sql_resend(store, request, request->kind, now);
    else
        mrt_sql_finish(store, request, now);
}

/* The server has refused one of the statements; the library's own errors end the connection. */
static void refuse(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    unsigned number = mysql_errno(driver->connection);
    if (driver->guard.received > MRT_SQL_REPLY_MAX) {
        mrt_sql_reject(store, MORTISE_EUNREACHABLE, "MariaDB: " MRT_SQL_REPLY_TOO_LONG);
        return;
    }
    if (number >= 2000 && number < 3000) {
        store->broken = true;
        return;
    }
    if (!request->failed) { /* the first is the cause */
        request->failed = true;
        snprintf(request->state, sizeof request->state, "%u", number % 100000);
        mrt_sql_first_line(mysql_error(driver->connection), request->detail,
                           sizeof request->detail);
    }
    if (driver->rolls_back || !mrt_mariadb_plan(request)->transaction) {
        finish(store, request, now);
        return;
    }
    driver->rolls_back = true;
    send_text(store, strdup("ROLLBACK"));
}

/* The rows of one statement are here, or it has none. */
static void take_result(struct mrt_sql_driver *driver, struct mrt_sql_request *request)
{
    const struct mrt_mariadb_plan *plan = mrt_mariadb_plan(request);
    if (!driver->rolls_back && plan->answer >= 0 &&
        request->at == plan->answer + plan->transaction + request->step[0].prepares) {
        mrt_sql_rows_free(request->rows);
        request->rows = driver->stored;
        request->affected = (int64_t)mysql_affected_rows(driver->connection);
        if (request->kind == MRT_SQL_DO_APPEND && request->affected > 0)
            request->affected = (int64_t)mysql_insert_id(driver->connection);
    } else {
        mysql_free_result(driver->stored);
    }
    request->at++;
    driver->doing = MRT_MARIADB_GOING_ON;
    driver->waits = mysql_next_result_start(&driver->result, driver->connection);
}

/* One operation is done: the next one. */
static void step(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    enum mrt_mariadb_doing doing = driver->doing;
    if (doing == MRT_MARIADB_SENDING)
        sent(store);
    else if (doing == MRT_MARIADB_STORING && (driver->stored || !mysql_errno(driver->connection)))
        take_result(driver, request);
    else if (doing == MRT_MARIADB_STORING || (doing == MRT_MARIADB_READING && driver->refused) ||
             (doing == MRT_MARIADB_GOING_ON && driver->result > 0))
        refuse(store, request, now);
    else if (doing == MRT_MARIADB_READING || driver->result == 0)
        store_result(driver);
    else
        finish(store, request, now);
}

/* ------------------------------------------------------------------ turns */

static void go_on(struct mrt_sql_driver *driver, int ready)
{
    MYSQL *connection = driver->connection;
    switch (driver->doing) {
    case MRT_MARIADB_SENDING:
        driver->waits = mysql_send_query_cont(&driver->result, connection, ready);
        break;
    case MRT_MARIADB_READING:
        driver->waits = mysql_read_query_result_cont(&driver->refused, connection, ready);
        break;
    case MRT_MARIADB_STORING:
        driver->waits = mysql_store_result_cont(&driver->stored, connection, ready);
        break;
    default:
        driver->waits = mysql_next_result_cont(&driver->result, connection, ready);
    }
}

int mrt_mariadb_ready(const struct mrt_sql_store *store)
{
    uint32_t events = mrt_sql_ready(store);
    int ready = events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? MYSQL_WAIT_READ : 0;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        ready |= MYSQL_WAIT_WRITE;
    return ready & (store->driver->waits | (store->driver->waits ? 0 : MYSQL_WAIT_READ));
}

void mrt_mariadb_watch(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    uint32_t events = driver->waits & MYSQL_WAIT_WRITE ? EPOLLOUT : 0;
    if (driver->waits & MYSQL_WAIT_READ || driver->waits == 0)
        events |= EPOLLIN;
    mrt_sql_watch(store, (int)mysql_get_socket(driver->connection), events);
}

void mrt_sql_driver_send(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    MRT_ASSERT(request);
    if (!store->broken && next_to_send(store) == request)
        start_step(store, request, now);
}

/* Reads what has arrived. */
static void take_ready(struct mrt_sql_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    int ready = mrt_mariadb_ready(store);
    if (!ready)
        return;
    if (driver->doing == MRT_MARIADB_NOTHING)
        store->broken = true; /* no request is under way: it is the end of the connection */
    else if (driver->doing == MRT_MARIADB_SENT)
        read_answer(driver);
    else if (driver->waits)
        go_on(driver, ready);
}

static bool is_done(const struct mrt_sql_driver *driver)
{
    return driver->waits == 0 && driver->doing != MRT_MARIADB_NOTHING &&
           driver->doing != MRT_MARIADB_SENT;
}

void mrt_sql_driver_turn(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    struct mrt_sql_request *next;
    take_ready(store);
    while (!store->broken) {
        if ((next = next_to_send(store)))
            start_step(store, next, now);
        else if (is_done(driver))
            step(store, TAILQ_FIRST(&store->sent), now);
        else
            break;
    }
    if (!store->broken)
        mrt_mariadb_watch(store);
}

/* ------------------------------------------------------------------ rows */

int mrt_sql_rows_count(void *rows)
{
    return (int)mysql_num_rows(rows);
}

/* The server decides how many columns there are. */
const char *mrt_sql_rows_text(void *rows, int row, int column)
{
    if ((unsigned)column >= mysql_num_fields(rows))
        return NULL;
    mysql_data_seek(rows, (unsigned long long)row);
    MYSQL_ROW values = mysql_fetch_row(rows);
    return values ? values[column] : NULL;
}

void mrt_sql_rows_free(void *rows)
{
    mysql_free_result(rows);
}

static const char *version_of(const struct mrt_sql_store *asker)
{
    MYSQL *connection = asker->driver->connection;
    my_bool checked = 0;
    if (!connection)
        return NULL;
    mysql_get_optionv(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &checked);
    snprintf(asker->driver->version, sizeof asker->driver->version, "%.80s%s",
             mysql_get_server_info(connection),
             mrt_address_encrypted(mysql_get_ssl_cipher(connection), checked));
    return asker->driver->version;
}

int mrt_sql_server(struct mrt_store *port, char *text, size_t size)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    int error = mrt_sql_tell_version(store, version_of, text, size);
    if (error == MORTISE_OK)
        mrt_mariadb_check_access(store);
    return error;
}
