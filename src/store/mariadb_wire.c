/*
 * Requests on the wire: the statements of one go in one piece, with the transaction's beginning and
 * end, and the server stops at the first that fails. Then ROLLBACK follows, and only
 * when that is answered has the request failed.
 *
 * The statement of an acquire that finds nobody is prepared in front of the first that is sent on a
 * connection. It is done by its name then, with its values as literals, as all else is.
 */
#include "store/mariadb_internal.h"

#include "base/error.h"
#include "store/sql_columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define CALLED_MAX 64 /* MySQL's */

/* ------------------------------------------------------------------ texts */

static void write_text(FILE *out, const char *text)
{
    fwrite(text, 1, strlen(text), out);
}

static void write_hexadecimal(FILE *out, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    write_text(out, "x'");
    for (size_t i = 0; i < size; i++) {
        fputc(digits[bytes[i] >> 4], out);
        fputc(digits[bytes[i] & 15], out);
    }
    fputc('\'', out);
}

/* A name of more characters than every server takes is called by its hash. */
static void write_called(FILE *out, const char *name)
{
    size_t characters = 0;
    for (const char *at = name; at && *at; at++)
        characters += ((unsigned char)*at & 0xc0) != 0x80;
    if (!name) {
        write_text(out, "NULL");
        return;
    }
    write_text(out, characters > CALLED_MAX ? "SHA2(" : "");
    write_hexadecimal(out, (const unsigned char *)name, strlen(name));
    write_text(out, characters > CALLED_MAX ? ", 256)" : "");
}

static void write_value(FILE *out, const struct mrt_store *store,
                        const struct mrt_sql_request *request, char letter)
{
    struct mrt_sql_value value;
    if (letter == 'C') {
        write_called(out, request->name ? request->name : request->command.queue);
        return;
    }
    mrt_sql_value(store, request, letter, &value);
    switch (value.type) {
    case MRT_SQL_NULL:
        write_text(out, "NULL");
        break;
    case MRT_SQL_NUMBER:
        write_text(out, value.data);
        break;
    case MRT_SQL_ID:
        write_text(out, "x'");
        write_text(out, value.data);
        fputc('\'', out);
        break;
    case MRT_SQL_TEXT:
        write_hexadecimal(out, value.data, strlen(value.data));
        break;
    case MRT_SQL_BYTES:
        write_hexadecimal(out, value.data, value.size);
    }
}

static void write_statement(FILE *out, const struct mrt_store *store,
                            const struct mrt_sql_request *request, const char *text)
{
    for (; *text; text++)
        if (*text == '$')
            write_value(out, store, request, *++text);
        else
            fputc(*text, out);
    fputc(';', out);
}

/* The acquire of a lock that nobody has. */
static bool is_alone(const struct mrt_sql_request *request)
{
    return request->kind == MRT_SQL_DO_APPEND && !request->whole;
}

/* No such statement has a double quote in it. */
static void write_preparation(FILE *out, const char *text)
{
    write_text(out, "PREPARE mortise FROM \"");
    for (; *text; text++) {
        fputc(*text == '$' ? '?' : *text, out);
        text += *text == '$';
    }
    write_text(out, "\";");
}

/* Its values, in the order of its parameters. */
static void write_execution(FILE *out, const struct mrt_store *store,
                            const struct mrt_sql_request *request, const char *text)
{
    const char *between = "EXECUTE mortise USING ";
    while ((text = strchr(text, '$'))) {
        write_text(out, between);
        write_value(out, store, request, *++text);
        between = ", ";
    }
    fputc(';', out);
}

static void write_plan(FILE *out, const struct mrt_store *store,
                       const struct mrt_sql_request *request)
{
    const struct mrt_my_plan *plan = mrt_my_plan(request);
    if (store->driver->prepares)
        write_preparation(out, plan->statement[0]);
    if (is_alone(request)) {
        write_execution(out, store, request, plan->statement[0]);
        return;
    }
    if (plan->transaction)
        write_text(out, "START TRANSACTION;");
    for (int i = 0; plan->statement[i]; i++)
        write_statement(out, store, request, plan->statement[i]);
    if (plan->transaction)
        write_text(out, "COMMIT;");
}

/* The whole request as one text; NULL: no memory. */
static char *write_request(const struct mrt_store *store, const struct mrt_sql_request *request)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    write_plan(out, store, request);
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* ------------------------------------------------------------------ operations */

static void query(struct mrt_sql_driver *driver)
{
    driver->doing = MRT_MY_QUERYING;
    driver->waits = mysql_real_query_start(&driver->result, driver->connection, driver->text,
                                           strlen(driver->text));
}

static void begin(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    request->whole |= driver->crowded || !mariadb_connection(driver->connection);
    driver->prepares = is_alone(request) && !driver->prepared;
    driver->text = write_request(store, request);
    request->sent = now;
    request->at = 0;
    if (driver->text)
        query(driver);
    else
        mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a request");
}

static void end(struct mrt_sql_driver *driver)
{
    driver->doing = MRT_MY_NOTHING;
    driver->rolls_back = false;
    free(driver->text);
    driver->text = NULL;
}

/* The server does not take the prepared statement, as if there were no room for one more, or a
   pooler had another connection by now. */
static void give_up_alone(struct mrt_sql_driver *driver, struct mrt_sql_request *request)
{
    driver->prepared = false;
    request->failed = false;
    request->whole = true;
}

/* Nobody was to be in the queue, and somebody is, or there is no queue's row, or no session: now
   all is looked at. And the next acquire does so at once. */
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
        give_up_alone(driver, request);
    }
    return request->whole != was_whole;
}

static void finish(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    end(store->driver);
    if (goes_on_whole(store->driver, request)) {
        begin(store, request, now);
        return;
    }
    TAILQ_REMOVE(&store->sent, request, link);
    mrt_sql_finish(store, request, now);
}

/* The server has refused one of the statements; the library's own errors end the connection. */
static void refuse(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    unsigned number = mysql_errno(driver->connection);
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
    if (driver->rolls_back || !mrt_my_plan(request)->transaction) {
        finish(store, request, now);
        return;
    }
    end(driver);
    driver->text = strdup("ROLLBACK");
    driver->rolls_back = true;
    if (driver->text)
        query(driver);
    else
        store->broken = true;
}

static void store_result(struct mrt_sql_driver *driver)
{
    driver->doing = MRT_MY_STORING;
    driver->waits = mysql_store_result_start(&driver->stored, driver->connection);
}

/* The rows of one statement are here, or it has none. */
static void take_result(struct mrt_sql_driver *driver, struct mrt_sql_request *request)
{
    const struct mrt_my_plan *plan = mrt_my_plan(request);
    if (!driver->rolls_back && plan->answer >= 0 &&
        request->at == plan->answer + plan->transaction + driver->prepares) {
        mrt_sql_rows_free(request->rows);
        request->rows = driver->stored;
        request->affected = (int64_t)mysql_affected_rows(driver->connection);
        if (request->kind == MRT_SQL_DO_APPEND && request->affected > 0)
            request->affected = (int64_t)mysql_insert_id(driver->connection);
    } else {
        mysql_free_result(driver->stored);
    }
    request->at++;
    driver->doing = MRT_MY_GOING_ON;
    driver->waits = mysql_next_result_start(&driver->result, driver->connection);
}

/* One operation is done: the next one. */
static void step(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    bool stored = driver->doing == MRT_MY_STORING;
    if (stored ? !driver->stored && mysql_errno(driver->connection) : driver->result > 0)
        refuse(store, request, now);
    else if (stored)
        take_result(driver, request);
    else if (driver->result == 0)
        store_result(driver);
    else
        finish(store, request, now);
}

/* ------------------------------------------------------------------ turns */

static void go_on(struct mrt_sql_driver *driver, int ready)
{
    if (driver->doing == MRT_MY_STORING)
        driver->waits = mysql_store_result_cont(&driver->stored, driver->connection, ready);
    else if (driver->doing == MRT_MY_GOING_ON)
        driver->waits = mysql_next_result_cont(&driver->result, driver->connection, ready);
    else
        driver->waits = mysql_real_query_cont(&driver->result, driver->connection, ready);
}

int mrt_my_ready(const struct mrt_store *store)
{
    uint32_t events = mrt_sql_ready(store);
    int ready = events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? MYSQL_WAIT_READ : 0;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        ready |= MYSQL_WAIT_WRITE;
    return ready & (store->driver->waits | (store->driver->waits ? 0 : MYSQL_WAIT_READ));
}

void mrt_my_watch(struct mrt_store *store)
{
    struct mrt_sql_driver *driver = store->driver;
    uint32_t events = driver->waits & MYSQL_WAIT_WRITE ? EPOLLOUT : 0;
    if (driver->waits & MYSQL_WAIT_READ || driver->waits == 0)
        events |= EPOLLIN;
    mrt_sql_watch(store, (int)mysql_get_socket(driver->connection), events);
}

void mrt_sql_driver_send(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    if (store->driver->doing == MRT_MY_NOTHING && !store->broken &&
        TAILQ_FIRST(&store->sent) == request)
        begin(store, request, now);
}

void mrt_sql_driver_turn(struct mrt_store *store, mrt_time now)
{
    struct mrt_sql_driver *driver = store->driver;
    struct mrt_sql_request *request;
    int ready = mrt_my_ready(store);
    if (driver->doing == MRT_MY_NOTHING && ready)
        store->broken = true; /* nothing was asked: it is the end of the connection */
    else if (driver->doing != MRT_MY_NOTHING && driver->waits && ready)
        go_on(driver, ready);
    while (!store->broken && (request = TAILQ_FIRST(&store->sent))) {
        if (driver->doing == MRT_MY_NOTHING)
            begin(store, request, now);
        else if (driver->waits == 0)
            step(store, request, now);
        else
            break;
    }
    if (!store->broken)
        mrt_my_watch(store);
}

/* ------------------------------------------------------------------ rows */

int mrt_sql_rows_count(void *rows)
{
    return (int)mysql_num_rows(rows);
}

const char *mrt_sql_rows_text(void *rows, int row, int column)
{
    mysql_data_seek(rows, (unsigned long long)row);
    MYSQL_ROW values = mysql_fetch_row(rows);
    return values ? values[column] : NULL;
}

void mrt_sql_rows_free(void *rows)
{
    mysql_free_result(rows);
}

static int show_nothing(void *argument, const mortise_entry *entry)
{
    (void)argument, (void)entry;
    return 1;
}

int mrt_sql_server(struct mrt_store *store, char *text, size_t size)
{
    int error = mrt_sql_list(store, "-", NULL, show_nothing, NULL); /* of a queue that is empty */
    MYSQL *connection = store->driver->connection;
    const char *version =
        error == MORTISE_OK && connection ? mysql_get_server_info(connection) : NULL;
    if (version)
        snprintf(text, size, "%s %s", mrt_sql_product, version);
    else if (error == MORTISE_OK)
        error = mrt_error(MORTISE_EUNREACHABLE, "%s: the connection was lost", mrt_sql_product);
    if (version)
        mrt_my_check_access(store);
    return error;
}
