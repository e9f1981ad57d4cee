/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call, from its beginning to its end (wire.h). It is in one of the wire's two lists: under way,
 * or held until the wire is ready and there is a place.
 */
#include "store/rest/call.h"

#include "mortise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* of a reply */
#define MRT_REST_TARGET_MAX 2048

/* ---------------------------------------------------------- libcurl's calls */

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct mrt_rest_wire *wire = context;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd >= 0 && fd < MRT_REST_SOCKETS_MAX)
        wire->sockets[fd / 8] |= (unsigned char)(1u << fd % 8);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_close(void *context, curl_socket_t fd)
{
    struct mrt_rest_wire *wire = context;
    if (fd < MRT_REST_SOCKETS_MAX)
        wire->sockets[fd / 8] &= (unsigned char)~(1u << fd % 8);
    return close(fd);
}

/* Before a call goes out, also when libcurl sends it again (wire.h). */
static int on_request(void *context, char *to, char *from, int to_port, int from_port)
{
    (void)to, (void)from, (void)to_port, (void)from_port;
    struct mrt_rest_call *call = context;
    bool twice = call->begun && call->once;
    call->begun = true;
    return twice ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* The lines that are whole go to the stream's owner. */
static bool take_lines(struct mrt_rest_call *call)
{
    char *begin = call->reply.bytes, *end;
    while (begin && (end = memchr(begin, '\n', call->reply.length))) {
        struct json_tokener *parser = json_tokener_new_ex(DEPTH_MAX);
        struct json_object *json =
            parser ? json_tokener_parse_ex(parser, begin, (int)(end - begin)) : NULL;
        struct json_object *taken = call->wire->server.family->take_line(json);
        const struct mrt_rest_reply reply = {.outcome = MRT_REST_DONE, .json = taken};
        bool fine = taken || end == begin;
        if (taken)
            call->line(call->argument, &reply);
        json_object_put(json);
        if (parser)
            json_tokener_free(parser);
        if (!fine)
            return false;
        size_t rest = call->reply.length - (size_t)(end + 1 - begin);
        memmove(begin, end + 1, rest + 1);
        call->reply.length = rest;
    }
    return true;
}

static size_t on_data(char *bytes, size_t one, size_t size, void *context)
{
    (void)one;
    struct mrt_rest_call *call = context;
    call->excess = size > MRT_REST_REPLY_MAX - call->reply.length;
    if (call->excess)
        return 0;
    if (!mrt_rest_add_data(&call->reply, bytes, size))
        return 0;
    return !call->line || take_lines(call) ? size : 0;
}

/* -------------------------------------------------------------- a call */

/* One of them has the token. libcurl's own copies are out of reach. */
static void free_headers(struct mrt_rest_call *call)
{
    for (const struct curl_slist *header = call->headers; header; header = header->next)
        explicit_bzero(header->data, strlen(header->data));
    curl_slist_free_all(call->headers);
    call->headers = NULL;
}

static void free_call(struct mrt_rest_call *call)
{
    if (call->easy)
        curl_easy_cleanup(call->easy);
    free_headers(call);
    free(call->path);
    mrt_rest_text_free(&call->body);
    mrt_rest_text_free(&call->reply);
    free(call);
}

static void set_tls(CURL *easy, const struct mrt_rest_server *server)
{
    bool verify = server->tls == MRT_ADDRESS_TLS_VERIFY;
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (server->tls_ca && *server->tls_ca) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, server->tls_ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (server->tls_cert && *server->tls_cert) {
        curl_easy_setopt(easy, CURLOPT_SSLCERT, server->tls_cert);
        curl_easy_setopt(easy, CURLOPT_SSLKEY, server->tls_key);
    }
}

/* False: no memory. */
static bool add_header(struct mrt_rest_call *call, const char *text)
{
    struct curl_slist *more = curl_slist_append(call->headers, text);
    if (more)
        call->headers = more;
    return more;
}

static bool set_headers(struct mrt_rest_call *call)
{
    static const char name[] = "Authorization: ";
    char token[sizeof name + MRT_REST_TOKEN_MAX] = "";
    char *value = token + sizeof name - 1;
    memcpy(token, name, sizeof name);
    free_headers(call);
    call->wire->server.family->authorize(call, value);
    bool fine = add_header(call, "Content-Type: application/json") && add_header(call, "Expect:") &&
                add_header(call, "Accept:") && (!*value || add_header(call, token));
    explicit_bzero(token, sizeof token);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return fine;
}

static void set_body(const struct mrt_rest_call *call)
{
    if (strcmp(call->method, "GET") == 0) {
        curl_easy_setopt(call->easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body.bytes);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE, (long)call->body.length);
    if (strcmp(call->method, "POST") != 0)
        curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static void set_up(struct mrt_rest_call *call)
{
    struct mrt_rest_wire *wire = call->wire;
    CURL *easy = call->easy;
    long connect = (long)mrt_time_left_ms(wire->server.connect, 0);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    set_body(call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, wire);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, wire);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    if (!call->line)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)mrt_time_left_ms(call->limit, 0));
    /* A stream leaves the open connections to calls: a release goes out on one at once. */
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->line ? 1L : 0L);
    set_tls(easy, &wire->server);
}

static bool is_ready(struct mrt_rest_wire *wire)
{
    const struct mrt_rest_family *family = wire->server.family;
    return !family->ready || family->ready(wire);
}

static bool may_begin(const struct mrt_rest_call *call)
{
    if (call->apart)
        return true;
    return is_ready(call->wire) && (call->urgent || call->wire->running < MRT_REST_CALLS_MAX);
}

/* Sends the call to the host of the moment, or holds it; false: no memory. */
static bool send_or_hold(struct mrt_rest_call *call)
{
    struct mrt_rest_wire *wire = call->wire;
    char target[MRT_REST_TARGET_MAX], host[MRT_HOST_TEXT_SIZE];
    if (!may_begin(call)) {
        call->held = true;
        TAILQ_INSERT_TAIL(&wire->held, call, link);
        return true;
    }
    call->host = wire->host;
    call->begun = false;
    mrt_host_format(&wire->server.hosts[call->host], host);
    snprintf(target, sizeof target, "%s://%s/%s",
             wire->server.tls == MRT_ADDRESS_TLS_OFF ? "http" : "https", host, call->path);
    if (!set_headers(call) || curl_easy_setopt(call->easy, CURLOPT_URL, target) != CURLE_OK ||
        curl_multi_add_handle(wire->multi, call->easy) != CURLM_OK)
        return false;
    TAILQ_INSERT_TAIL(&wire->calls, call, link);
    wire->running += !call->urgent;
    if (!call->line) /* a stream is never waited for */
        mrt_traffic_sent(&wire->traffic);
    return true;
}

static struct mrt_rest_call *make_call(struct mrt_rest_wire *wire,
                                       const struct mrt_rest_request *request,
                                       const struct mrt_rest_text *body)
{
    struct mrt_rest_call *call = calloc(1, sizeof *call);
    struct mrt_rest_text taken = *body;
    if (!call) {
        mrt_rest_text_free(&taken);
        return NULL;
    }
    call->wire = wire;
    call->body = taken;
    call->method = request->method;
    call->path = strdup(request->path);
    call->limit = request->limit;
    call->urgent = request->urgent;
    call->apart = request->apart;
    call->once = request->once;
    call->line = request->line;
    call->done = request->done;
    call->argument = request->argument;
    call->easy = curl_easy_init();
    if (call->easy && call->path && !body->failed)
        return call;
    free_call(call);
    return NULL;
}

struct mrt_rest_call *mrt_rest_send(struct mrt_rest_wire *wire,
                                    const struct mrt_rest_request *request,
                                    struct mrt_rest_text *body)
{
    const struct mrt_rest_text none = {0};
    struct mrt_rest_call *call = make_call(wire, request, body ? body : &none);
    if (!call)
        return NULL;
    set_up(call);
    if (send_or_hold(call))
        return call;
    free_call(call);
    return NULL;
}

static void take_out(struct mrt_rest_call *call)
{
    if (call->held) {
        TAILQ_REMOVE(&call->wire->held, call, link);
        call->held = false;
        return;
    }
    call->wire->running -= !call->urgent;
    TAILQ_REMOVE(&call->wire->calls, call, link);
    curl_multi_remove_handle(call->wire->multi, call->easy);
    if (!call->line)
        mrt_traffic_answered(&call->wire->traffic);
}

void mrt_rest_cancel(struct mrt_rest_call *call)
{
    take_out(call);
    free_call(call);
}

/* ------------------------------------------------------------------ its end */

static void end(struct mrt_rest_call *call, const struct mrt_rest_reply *reply)
{
    call->done(call->argument, reply);
    free_call(call);
}

static void end_badly(struct mrt_rest_call *call, enum mrt_rest_outcome outcome, int error,
                      const char *what, const char *advice)
{
    char text[256], host[MRT_HOST_TEXT_SIZE];
    mrt_host_format(&call->wire->server.hosts[call->host], host);
    snprintf(text, sizeof text, "%.80s: %.120s%s", host, what, advice);
    const struct mrt_rest_reply reply = {.outcome = outcome, .error = error, .text = text};
    end(call, &reply);
}

static void next_host(struct mrt_rest_call *call)
{
    struct mrt_rest_wire *wire = call->wire;
    if (wire->host == call->host)
        wire->host = (wire->host + 1) % wire->server.host_count;
}

static void begin_again(struct mrt_rest_call *call)
{
    call->reply.length = 0;
    if (!send_or_hold(call))
        end_badly(call, MRT_REST_REFUSED, MORTISE_ENOMEM, "no memory", "");
}

/* libcurl has not had a whole reply. */
static void broken(struct mrt_rest_call *call, CURLcode code)
{
    long sent = 0;
    bool twice = code == CURLE_ABORTED_BY_CALLBACK;
    const char *what = twice ? "the connection broke before the answer" : curl_easy_strerror(code);
    curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
    bool tls = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    next_host(call);
    if (call->excess)
        end_badly(call, MRT_REST_UNKNOWN, MORTISE_ESTORE, "the reply is too large", "");
    else if (twice || sent > 0)
        end_badly(call, MRT_REST_UNKNOWN, MORTISE_EUNREACHABLE, what, "");
    else if (++call->tried < call->wire->server.host_count)
        begin_again(call);
    else if (tls)
        end_badly(call, MRT_REST_AWAY, MORTISE_EUNREACHABLE, what,
                  "; tls=verify checks the certificate against tls_ca= and the host's name");
    else
        end_badly(call, MRT_REST_AWAY, MORTISE_EUNREACHABLE, what, "");
}

/* An answer that is not a success. */
static void judged(struct mrt_rest_call *call, const struct mrt_rest_verdict *verdict)
{
    if (verdict->again && !call->again) {
        call->again = true;
        begin_again(call);
        return;
    }
    if (verdict->next_host)
        next_host(call);
    end_badly(call, verdict->outcome, verdict->error, verdict->text, verdict->advice);
}

void mrt_rest_call_ended(struct mrt_rest_call *call, CURLcode code)
{
    long status = 0;
    take_out(call);
    if (code != CURLE_OK) {
        broken(call, code);
        return;
    }
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    struct json_tokener *parser = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *json = NULL;
    if (parser && call->reply.length > 0)
        json = json_tokener_parse_ex(parser, call->reply.bytes, (int)call->reply.length);
    struct mrt_rest_verdict verdict = {.advice = ""};
    call->wire->server.family->judge(call, status, json, &verdict);
    const struct mrt_rest_reply reply = {.outcome = MRT_REST_DONE, .json = json};
    if (verdict.outcome == MRT_REST_DONE)
        end(call, &reply);
    else
        judged(call, &verdict);
    json_object_put(json);
    if (parser)
        json_tokener_free(parser);
}

/* --------------------------------------------------------------- calls that are held */

void mrt_rest_release(struct mrt_rest_wire *wire)
{
    struct mrt_rest_call *call;
    while ((call = TAILQ_FIRST(&wire->held)) && may_begin(call)) {
        take_out(call);
        begin_again(call);
    }
}

/* The owner of a call may send another meanwhile, which is held, too. */
void mrt_rest_refuse_held(struct mrt_rest_wire *wire, const struct mrt_rest_reply *reply)
{
    struct mrt_rest_calls held = TAILQ_HEAD_INITIALIZER(held);
    struct mrt_rest_call *call;
    TAILQ_CONCAT(&held, &wire->held, link);
    while ((call = TAILQ_FIRST(&held))) {
        TAILQ_REMOVE(&held, call, link);
        end(call, reply);
    }
}
