/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call, from its beginning to its end (wire.h). It is in one of the wire's two lists: under way,
 * or held until there is a token or a place.
 */
#include "store/etcd/call.h"

#include "store/etcd/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* of a reply */
#define LATE_MAX 6   /* how often the time for a login is doubled */

/* ---------------------------------------------------------- libcurl's calls */

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct mrt_etcd_wire *wire = context;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd >= 0 && fd < MRT_ETCD_SOCKETS_MAX)
        wire->sockets[fd / 8] |= (unsigned char)(1u << fd % 8);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_close(void *context, curl_socket_t fd)
{
    struct mrt_etcd_wire *wire = context;
    if (fd < MRT_ETCD_SOCKETS_MAX)
        wire->sockets[fd / 8] &= (unsigned char)~(1u << fd % 8);
    return close(fd);
}

/* Before a call goes out, also when libcurl sends it again (wire.h). */
static int on_request(void *context, char *to, char *from, int to_port, int from_port)
{
    (void)to, (void)from, (void)to_port, (void)from_port;
    struct mrt_etcd_call *call = context;
    bool twice = call->begun && strcmp(call->path, "kv/txn") == 0;
    call->begun = true;
    return twice ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* The lines that are whole go to the stream's owner. */
static bool take_lines(struct mrt_etcd_call *call)
{
    char *begin = call->reply.bytes, *end;
    while (begin && (end = memchr(begin, '\n', call->reply.length))) {
        struct json_tokener *parser = json_tokener_new_ex(DEPTH_MAX);
        struct json_object *json =
            parser ? json_tokener_parse_ex(parser, begin, (int)(end - begin)) : NULL;
        struct json_object *result = mrt_etcd_member(json, "result");
        const struct mrt_etcd_reply reply = {.outcome = MRT_ETCD_DONE, .json = result};
        bool fine = result || end == begin;
        if (result)
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
    struct mrt_etcd_call *call = context;
    call->excess = size > MRT_ETCD_REPLY_MAX - call->reply.length;
    if (call->excess)
        return 0;
    struct mrt_etcd_text *reply = &call->reply;
    if (reply->length + size + 1 > reply->room) {
        size_t room = 2 * (reply->length + size + 512);
        char *grown = realloc(reply->bytes, room);
        if (!grown)
            return 0;
        reply->bytes = grown;
        reply->room = room;
    }
    memcpy(reply->bytes + reply->length, bytes, size);
    reply->length += size;
    reply->bytes[reply->length] = '\0';
    return !call->line || take_lines(call) ? size : 0;
}

/* -------------------------------------------------------------- a call */

static void free_call(struct mrt_etcd_call *call)
{
    if (call->easy)
        curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    free(call->body.bytes);
    free(call->reply.bytes);
    free(call);
}

static void set_tls(CURL *easy, const struct mrt_etcd_address *address)
{
    bool verify = address->tls == MRT_ETCD_TLS_VERIFY;
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (address->tls_ca[0]) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, address->tls_ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

/* False: no memory. */
static bool set_headers(struct mrt_etcd_call *call)
{
    static const char *const fixed[] = {"Content-Type: application/json", "Expect:", "Accept:"};
    char token[sizeof call->wire->token + 32];
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    snprintf(token, sizeof token, "Authorization: %s", call->wire->token);
    for (size_t i = 0; i < 4; i++) {
        if (i == 3 && (!call->wire->token[0] || call == call->wire->login))
            break;
        struct curl_slist *more = curl_slist_append(call->headers, i < 3 ? fixed[i] : token);
        if (!more)
            return false;
        call->headers = more;
    }
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return true;
}

static void set_up(struct mrt_etcd_call *call)
{
    struct mrt_etcd_wire *wire = call->wire;
    CURL *easy = call->easy;
    long connect = (long)mrt_time_left_ms(wire->address->connect, 0);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body.bytes);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)call->body.length);
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
    set_tls(easy, wire->address);
}

static void log_in(struct mrt_etcd_wire *wire);

static bool has_token(const struct mrt_etcd_wire *wire)
{
    return !wire->address->user[0] || wire->token[0] || wire->open;
}

static bool may_begin(const struct mrt_etcd_call *call)
{
    const struct mrt_etcd_wire *wire = call->wire;
    if (call == wire->login)
        return true;
    return has_token(wire) && (call->urgent || wire->running < MRT_ETCD_CALLS_MAX);
}

/* Sends the call to the host of the moment, or holds it; false: no memory. */
static bool send_or_hold(struct mrt_etcd_call *call)
{
    struct mrt_etcd_wire *wire = call->wire;
    char target[MRT_HOST_TEXT_SIZE + 64], host[MRT_HOST_TEXT_SIZE];
    if (!may_begin(call)) {
        call->held = true;
        TAILQ_INSERT_TAIL(&wire->held, call, link);
        if (!has_token(wire))
            log_in(wire);
        return true;
    }
    call->host = wire->host;
    call->begun = false;
    mrt_host_format(&wire->address->hosts[call->host], host);
    snprintf(target, sizeof target, "%s://%s/v3/%s",
             wire->address->tls == MRT_ETCD_TLS_OFF ? "http" : "https", host, call->path);
    if (!set_headers(call) || curl_easy_setopt(call->easy, CURLOPT_URL, target) != CURLE_OK ||
        curl_multi_add_handle(wire->multi, call->easy) != CURLM_OK)
        return false;
    TAILQ_INSERT_TAIL(&wire->calls, call, link);
    wire->running += !call->urgent;
    if (!call->line) /* a stream is never waited for */
        mrt_traffic_sent(&wire->traffic);
    return true;
}

static struct mrt_etcd_call *make_call(struct mrt_etcd_wire *wire, const char *path,
                                       struct mrt_etcd_text *body)
{
    struct mrt_etcd_call *call = calloc(1, sizeof *call);
    if (!call || body->failed) {
        free(call);
        free(body->bytes);
        return NULL;
    }
    call->wire = wire;
    call->path = path;
    call->body = *body;
    call->easy = curl_easy_init();
    if (!call->easy) {
        free_call(call);
        return NULL;
    }
    return call;
}

static struct mrt_etcd_call *start_call(struct mrt_etcd_call *call)
{
    set_up(call);
    if (send_or_hold(call))
        return call;
    free_call(call);
    return NULL;
}

struct mrt_etcd_call *mrt_etcd_send(struct mrt_etcd_wire *wire, const char *path,
                                    struct mrt_etcd_text *body, mrt_time limit, mrt_etcd_done *done,
                                    void *argument)
{
    struct mrt_etcd_call *call = make_call(wire, path, body);
    if (!call)
        return NULL;
    call->limit = limit < 0 ? -limit : limit;
    call->urgent = limit < 0;
    call->done = done;
    call->argument = argument;
    return start_call(call);
}

struct mrt_etcd_call *mrt_etcd_stream(struct mrt_etcd_wire *wire, const char *path,
                                      struct mrt_etcd_text *body, mrt_etcd_done *line,
                                      mrt_etcd_done *done, void *argument)
{
    struct mrt_etcd_call *call = make_call(wire, path, body);
    if (!call)
        return NULL;
    call->line = line;
    call->urgent = true;
    call->done = done;
    call->argument = argument;
    return start_call(call);
}

static void take_out(struct mrt_etcd_call *call)
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

void mrt_etcd_cancel(struct mrt_etcd_call *call)
{
    take_out(call);
    free_call(call);
}

/* ------------------------------------------------------------------ its end */

static void end(struct mrt_etcd_call *call, const struct mrt_etcd_reply *reply)
{
    call->done(call->argument, reply);
    free_call(call);
}

static void end_badly(struct mrt_etcd_call *call, enum mrt_etcd_outcome outcome, int error,
                      const char *what, const char *advice)
{
    char text[256], host[MRT_HOST_TEXT_SIZE];
    mrt_host_format(&call->wire->address->hosts[call->host], host);
    snprintf(text, sizeof text, "%.80s: %.120s%s", host, what, advice);
    const struct mrt_etcd_reply reply = {.outcome = outcome, .error = error, .text = text};
    end(call, &reply);
}

static void next_host(struct mrt_etcd_call *call)
{
    struct mrt_etcd_wire *wire = call->wire;
    if (wire->host == call->host)
        wire->host = (wire->host + 1) % wire->address->host_count;
}

static void begin_again(struct mrt_etcd_call *call)
{
    call->reply.length = 0;
    if (!send_or_hold(call))
        end_badly(call, MRT_ETCD_REFUSED, MORTISE_ENOMEM, "no memory", "");
}

/* libcurl has not had a whole reply. */
static void broken(struct mrt_etcd_call *call, CURLcode code)
{
    long sent = 0;
    bool twice = code == CURLE_ABORTED_BY_CALLBACK;
    const char *what = twice ? "the connection broke before the answer" : curl_easy_strerror(code);
    curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
    bool tls = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    next_host(call);
    if (call->excess)
        end_badly(call, MRT_ETCD_UNKNOWN, MORTISE_ESTORE, "the reply is too large", "");
    else if (twice || sent > 0)
        end_badly(call, MRT_ETCD_UNKNOWN, MORTISE_EUNREACHABLE, what, "");
    else if (++call->tried < call->wire->address->host_count)
        begin_again(call);
    else if (tls)
        end_badly(call, MRT_ETCD_AWAY, MORTISE_EUNREACHABLE, what,
                  "; tls=verify checks the certificate against tls_ca= and the host's name");
    else
        end_badly(call, MRT_ETCD_AWAY, MORTISE_EUNREACHABLE, what, "");
}

static void refused(struct mrt_etcd_call *call, const char *text)
{
    int error;
    const char *advice;
    struct mrt_etcd_wire *wire = call->wire;
    enum mrt_etcd_class class = mrt_etcd_classify(text, &error, &advice);
    if (class == MRT_ETCD_IS_TOKEN && !call->again) {
        call->again = true;
        explicit_bzero(wire->token, sizeof wire->token);
        begin_again(call);
        return;
    }
    if (class == MRT_ETCD_IS_UNKNOWN)
        next_host(call);
    end_badly(call, class == MRT_ETCD_IS_UNKNOWN ? MRT_ETCD_UNKNOWN : MRT_ETCD_REFUSED, error, text,
              advice);
}

/* The text of an error; NULL: the reply reports none. */
static const char *error_text(struct json_object *json)
{
    const char *message = mrt_etcd_string(json, "message");
    struct json_object *error = mrt_etcd_member(json, "error");
    if (!*message)
        message = mrt_etcd_string(error, "message");
    if (!*message && error)
        message = json_object_get_string(error);
    return *message ? message : NULL;
}

void mrt_etcd_call_ended(struct mrt_etcd_call *call, CURLcode code)
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
    const char *text = error_text(json);
    if (text) {
        refused(call, text);
    } else if (status == 200 && (json_object_is_type(json, json_type_object) || call->line)) {
        const struct mrt_etcd_reply reply = {.outcome = MRT_ETCD_DONE, .json = json};
        end(call, &reply);
    } else if (status == 404) {
        refused(call, "Not Found");
    } else {
        next_host(call);
        end_badly(call, MRT_ETCD_UNKNOWN, MORTISE_ESTORE, "the answer is not etcd's", "");
    }
    json_object_put(json);
    if (parser)
        json_tokener_free(parser);
}

/* ------------------------------------------------------------------ logging in */

/* Begins calls that were held. */
void mrt_etcd_release(struct mrt_etcd_wire *wire)
{
    struct mrt_etcd_call *call;
    while ((call = TAILQ_FIRST(&wire->held)) && may_begin(call)) {
        take_out(call);
        begin_again(call);
    }
}

static void logged_in(void *argument, const struct mrt_etcd_reply *reply)
{
    struct mrt_etcd_wire *wire = argument;
    struct mrt_etcd_calls held = TAILQ_HEAD_INITIALIZER(held);
    struct mrt_etcd_call *call;
    const char *token = mrt_etcd_string(reply->json, "token");
    bool fine = reply->outcome == MRT_ETCD_DONE && *token && strlen(token) < sizeof wire->token &&
                !strpbrk(token, "\r\n");
    wire->login = NULL;
    wire->late_logins = reply->outcome == MRT_ETCD_UNKNOWN ? wire->late_logins + 1 : 0;
    wire->open = reply->outcome == MRT_ETCD_REFUSED && reply->error == MORTISE_ENOTSUPPORTED;
    if (fine)
        snprintf(wire->token, sizeof wire->token, "%s", token);
    if (fine || wire->open) {
        mrt_etcd_release(wire);
        return;
    }
    TAILQ_CONCAT(&held, &wire->held, link);
    while ((call = TAILQ_FIRST(&held))) {
        TAILQ_REMOVE(&held, call, link);
        /* The call itself has not been sent. A failed login is never the end of a session: the
           call's owner would cancel calls that are in this list. */
        struct mrt_etcd_reply failed = *reply;
        bool is_away = reply->outcome != MRT_ETCD_REFUSED || reply->error == MORTISE_ELOST;
        failed.outcome = is_away ? MRT_ETCD_AWAY : reply->outcome;
        failed.error = is_away ? MORTISE_EUNREACHABLE : reply->error;
        failed.text = failed.text ? failed.text : "no token";
        end(call, &failed);
    }
}

static void log_in(struct mrt_etcd_wire *wire)
{
    struct mrt_etcd_text body = {0};
    if (wire->login)
        return;
    mrt_etcd_add(&body, "{");
    mrt_etcd_add_string(&body, "name", wire->address->user);
    mrt_etcd_add(&body, ",");
    mrt_etcd_add_string(&body, "password", wire->secret);
    mrt_etcd_add(&body, "}");
    struct mrt_etcd_call *call = make_call(wire, "auth/authenticate", &body);
    if (!call)
        return; /* the next call tries it again */
    call->limit = wire->address->connect
                  << (wire->late_logins < LATE_MAX ? wire->late_logins : LATE_MAX);
    call->urgent = true;
    call->done = logged_in;
    call->argument = wire;
    wire->login = call;
    if (!start_call(call))
        wire->login = NULL;
}
