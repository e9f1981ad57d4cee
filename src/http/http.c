/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web server on libmicrohttpd: http.h says what it promises.
 *
 * An exchange is a request and its answer. It is made when the header is there and freed when the
 * library says that it is over; one whose answer is to come later is suspended meanwhile. The
 * mutex orders the handler's "later" and the answer that another thread may give before the
 * connection has been suspended.
 *
 * The library's own time limit is one of silence. Against clients that send or read a byte now and
 * then, the connections are listed, and those that have been at one request for too long are shut
 * down; so is, for each one that comes when there are nearly too many, the oldest of a client that
 * has not shown that it may ask. The mutex keeps the descriptor open until then, as the library
 * closes it after having told us.
 */
#include "http/http.h"

#include "mortise.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

struct connection {
    int fd;
    time_t since; /* when it was made, or its latest request ended */
    bool asks;    /* the header of a request has come, and its answer has not gone */
    bool trusted;
    bool cut; /* it has been shut down */
    TAILQ_ENTRY(connection) link;
};

TAILQ_HEAD(connection_list, connection);

struct mrt_http {
    struct MHD_Daemon *daemon;
    struct mrt_http_options options;
    pthread_mutex_t mutex;
    struct connection_list connections;
    unsigned count; /* number of connections not shut down */
};

struct mrt_http_exchange {
    struct mrt_http *http;
    struct MHD_Connection *connection;
    bool answered, suspended, sent;
    struct mrt_http_answer answer;
};

static time_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ----------------------------------------------------------------- answers */

static enum MHD_Result send_answer(struct mrt_http_exchange *exchange)
{
    const struct mrt_http_answer *answer = &exchange->answer;
    exchange->sent = true;
    /* The library does not write to what is persistent. */
    void *body = answer->body ? answer->body : (void *)(uintptr_t)answer->text;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->size, body, answer->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) {
        free(answer->body);
        return MHD_NO;
    }
    if (answer->type)
        MHD_add_response_header(response, "Content-Type", answer->type);
    if (answer->name)
        MHD_add_response_header(response, answer->name, answer->value);
    for (const char *const(*header)[2] = exchange->http->options.headers; (*header)[0]; header++)
        MHD_add_response_header(response, (*header)[0], (*header)[1]);
    enum MHD_Result result = MHD_queue_response(exchange->connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

static void give_answer(struct mrt_http_exchange *exchange, const struct mrt_http_answer *answer)
{
    struct mrt_http *http = exchange->http;
    pthread_mutex_lock(&http->mutex);
    exchange->answer = *answer;
    exchange->answered = true;
    bool resume = exchange->suspended;
    pthread_mutex_unlock(&http->mutex);
    if (resume)
        MHD_resume_connection(exchange->connection);
}

/* ------------------------------------------------------------- connections */

static struct connection *connection_of(struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void cut(struct mrt_http *http, struct connection *connection)
{
    if (connection->cut || connection->fd < 0)
        return;
    shutdown(connection->fd, SHUT_RDWR);
    connection->cut = true;
    http->count--;
}

/* Of the strangers' connections the oldest, if there is hardly room for more. */
static void make_room(struct mrt_http *http)
{
    struct connection *connection;
    unsigned most = http->options.connections_max;
    if (http->options.stranger_seconds == 0 || http->count < most - most / 8)
        return;
    TAILQ_FOREACH (connection, &http->connections, link)
        if (!connection->trusted && !connection->cut) {
            cut(http, connection);
            return;
        }
}

static void trust(const struct mrt_http_request *request)
{
    struct mrt_http *http = request->exchange->http;
    struct connection *connection = connection_of(request->exchange->connection);
    pthread_mutex_lock(&http->mutex);
    if (connection)
        connection->trusted = true;
    pthread_mutex_unlock(&http->mutex);
}

static void cut_slow(struct mrt_http *http)
{
    struct connection *connection;
    time_t now = seconds_now();
    pthread_mutex_lock(&http->mutex);
    TAILQ_FOREACH (connection, &http->connections, link) {
        bool is_stranger = http->options.stranger_seconds > 0 && !connection->trusted;
        unsigned seconds = is_stranger && !connection->asks ? http->options.stranger_seconds
                                                            : http->options.request_seconds;
        if (now - connection->since > seconds)
            cut(http, connection);
    }
    pthread_mutex_unlock(&http->mutex);
}

/* ---------------------------------------------------------------- requests */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static const char *argument(const struct mrt_http_request *request, const char *name)
{
    const char *value = NULL;
    size_t size = 0;
    if (MHD_lookup_connection_value_n(request->exchange->connection, MHD_GET_ARGUMENT_KIND, name,
                                      strlen(name), &value, &size) != MHD_YES ||
        !value || strlen(value) != size)
        return NULL;
    return value;
}

static enum MHD_Result count_host(void *count, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    (void)kind;
    (void)value;
    *(unsigned *)count += strcasecmp(name, "Host") == 0;
    return MHD_YES;
}

static bool has_two_hosts(struct MHD_Connection *connection)
{
    unsigned count = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &count);
    return count > 1;
}

static bool has_body(struct MHD_Connection *connection)
{
    const char *length = header(connection, "Content-Length");
    return header(connection, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static enum MHD_Result refuse(struct mrt_http_exchange *exchange, unsigned status, const char *why)
{
    exchange->answer = (struct mrt_http_answer){.status = status,
                                                .type = "text/plain",
                                                .text = why,
                                                .size = strlen(why),
                                                .name = "Connection",
                                                .value = "close"};
    return send_answer(exchange);
}

static enum MHD_Result begin_exchange(struct mrt_http *http, struct MHD_Connection *handle,
                                      void **context)
{
    struct mrt_http_exchange *exchange = calloc(1, sizeof *exchange);
    struct connection *connection = connection_of(handle);
    *context = exchange;
    if (!exchange)
        return MHD_NO;
    pthread_mutex_lock(&http->mutex);
    if (connection)
        connection->asks = true;
    pthread_mutex_unlock(&http->mutex);
    exchange->http = http;
    exchange->connection = handle;
    if (has_two_hosts(handle))
        return refuse(exchange, MHD_HTTP_BAD_REQUEST, "more than one Host header\n");
    if (has_body(handle))
        return refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "no body is expected\n");
    return MHD_YES;
}

/* True: there is an answer; else the connection is suspended until there is. */
static bool ask_handler(struct mrt_http_exchange *exchange, const char *method, const char *path)
{
    struct mrt_http *http = exchange->http;
    struct MHD_Connection *connection = exchange->connection;
    struct mrt_http_answer answer = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR};
    struct mrt_http_request request = {.method = method,
                                       .path = path,
                                       .host = header(connection, "Host"),
                                       .origin = header(connection, "Origin"),
                                       .site = header(connection, "Sec-Fetch-Site"),
                                       .authorization = header(connection, "Authorization"),
                                       .exchange = exchange};
    if (http->options.handler(http->options.argument, &request, &answer)) {
        exchange->answer = answer;
        exchange->answered = true;
        return true;
    }
    pthread_mutex_lock(&http->mutex);
    bool answered = exchange->answered;
    exchange->suspended = !answered;
    if (!answered)
        MHD_suspend_connection(connection);
    pthread_mutex_unlock(&http->mutex);
    return answered;
}

static enum MHD_Result on_request(void *argument_, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **context)
{
    (void)version;
    (void)upload;
    if (!*context)
        return begin_exchange(argument_, connection, context);
    struct mrt_http_exchange *exchange = *context;
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (!exchange->answered && !ask_handler(exchange, method, path))
        return MHD_YES;
    return send_answer(exchange);
}

/* ------------------------------------------------------------ notifications */

static void on_connection(void *argument_, struct MHD_Connection *handle, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct mrt_http *http = argument_;
    struct connection *connection = *context;
    pthread_mutex_lock(&http->mutex);
    if (what == MHD_CONNECTION_NOTIFY_STARTED && (connection = calloc(1, sizeof *connection))) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
        connection->fd = info ? info->connect_fd : -1;
        connection->since = seconds_now();
        make_room(http);
        http->count++;
        TAILQ_INSERT_TAIL(&http->connections, connection, link);
        *context = connection;
    } else if (what == MHD_CONNECTION_NOTIFY_CLOSED && connection) {
        TAILQ_REMOVE(&http->connections, connection, link);
        http->count -= !connection->cut;
        free(connection);
    }
    pthread_mutex_unlock(&http->mutex);
}

static void on_completed(void *argument_, struct MHD_Connection *handle, void **context,
                         enum MHD_RequestTerminationCode why)
{
    (void)why;
    struct mrt_http *http = argument_;
    struct connection *connection = connection_of(handle);
    pthread_mutex_lock(&http->mutex);
    if (connection) {
        connection->since = seconds_now();
        connection->asks = false;
    }
    pthread_mutex_unlock(&http->mutex);
    struct mrt_http_exchange *exchange = *context;
    if (exchange && !exchange->sent)
        free(exchange->answer.body);
    free(exchange);
    *context = NULL;
}

/* ------------------------------------------------------------------ server */

static struct mrt_http *start(const struct mrt_http_options *options)
{
    struct mrt_http *http = calloc(1, sizeof *http);
    if (!http)
        return NULL;
    http->options = *options;
    pthread_mutex_init(&http->mutex, NULL);
    TAILQ_INIT(&http->connections);
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, options->listener, MHD_OPTION_CONNECTION_LIMIT,
        options->connections_max, MHD_OPTION_CONNECTION_TIMEOUT, options->idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MRT_HTTP_HEADER_MAX,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, http, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (http->daemon)
        return http;
    int error = errno;
    pthread_mutex_destroy(&http->mutex);
    free(http);
    errno = error;
    return NULL;
}

static void stop(struct mrt_http *http)
{
    MHD_stop_daemon(http->daemon);
    pthread_mutex_destroy(&http->mutex);
    free(http);
}

__attribute__((visibility("default"))) const struct mrt_http_ops *mortise_http_module(void);
const struct mrt_http_ops *mortise_http_module(void)
{
    static const struct mrt_http_ops ops = {.version = MORTISE_VERSION,
                                            .start = start,
                                            .argument = argument,
                                            .trust = trust,
                                            .answer = give_answer,
                                            .cut_slow = cut_slow,
                                            .stop = stop};
    return &ops;
}
