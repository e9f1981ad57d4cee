/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h: logging in, and what an answer means. */
#include "store/etcd/wire.h"

#include "store/etcd/code.h"

#include <stdio.h>
#include <string.h>

#define LATE_MAX 6 /* how often the time for a login is doubled */

bool mrt_etcd_is_once(const char *path)
{
    return strcmp(path, "kv/txn") == 0;
}

static struct mrt_rest_call *send_to(struct mrt_etcd_wire *wire, const char *path,
                                     struct mrt_rest_request *request, struct mrt_rest_text *body)
{
    char full[MRT_ETCD_PATH_SIZE];
    snprintf(full, sizeof full, MRT_ETCD_ROOT "%s", path);
    request->method = "POST";
    request->path = full;
    request->once = mrt_etcd_is_once(path);
    return mrt_rest_send(&wire->rest, request, body);
}

struct mrt_rest_call *mrt_etcd_send(struct mrt_etcd_wire *wire, const char *path,
                                    struct mrt_rest_text *body, mrt_time limit, mrt_rest_done *done,
                                    void *argument)
{
    struct mrt_rest_request request = {.limit = limit < 0 ? -limit : limit,
                                       .urgent = limit < 0,
                                       .done = done,
                                       .argument = argument};
    return send_to(wire, path, &request, body);
}

struct mrt_rest_call *mrt_etcd_stream(struct mrt_etcd_wire *wire, const char *path,
                                      struct mrt_rest_text *body, mrt_rest_done *line,
                                      mrt_rest_done *done, void *argument)
{
    struct mrt_rest_request request = {
        .urgent = true, .line = line, .done = done, .argument = argument};
    return send_to(wire, path, &request, body);
}

/* ------------------------------------------------------------------ logging in */

static void logged_in(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_wire *wire = argument;
    const char *token = mrt_rest_string(reply->json, "token");
    bool fine = reply->outcome == MRT_REST_DONE && *token && strlen(token) < sizeof wire->token &&
                !strpbrk(token, "\r\n");
    wire->login = NULL;
    wire->late_logins = reply->outcome == MRT_REST_UNKNOWN ? wire->late_logins + 1 : 0;
    wire->open = reply->outcome == MRT_REST_REFUSED && reply->error == MORTISE_ENOTSUPPORTED;
    if (fine)
        snprintf(wire->token, sizeof wire->token, "%s", token);
    if (fine || wire->open) {
        mrt_rest_release(&wire->rest);
        return;
    }
    /* The calls themselves have not been sent. A failed login is never the end of a session: a
       call's owner would cancel calls that are held. */
    struct mrt_rest_reply failed = *reply;
    bool is_away = reply->outcome != MRT_REST_REFUSED || reply->error == MORTISE_ELOST;
    failed.outcome = is_away ? MRT_REST_AWAY : reply->outcome;
    failed.error = is_away ? MORTISE_EUNREACHABLE : reply->error;
    failed.text = failed.text ? failed.text : "no token";
    mrt_rest_refuse_held(&wire->rest, &failed);
}

/* Without memory the next call tries it again. */
static void log_in(struct mrt_etcd_wire *wire)
{
    struct mrt_rest_text body = {0};
    mrt_rest_add(&body, "{");
    mrt_rest_add_string(&body, "name", wire->address->servers.user);
    mrt_rest_add(&body, ",");
    mrt_rest_add_string(&body, "password", wire->secret);
    mrt_rest_add(&body, "}");
    struct mrt_rest_request request = {
        .limit = wire->address->connect
                 << (wire->late_logins < LATE_MAX ? wire->late_logins : LATE_MAX),
        .urgent = true,
        .apart = true,
        .done = logged_in,
        .argument = wire};
    wire->login = send_to(wire, "auth/authenticate", &request, &body);
}

static bool ready(struct mrt_rest_wire *rest)
{
    struct mrt_etcd_wire *wire = rest->owner;
    if (!wire->address->servers.user[0] || wire->token[0] || wire->open)
        return true;
    if (!wire->login)
        log_in(wire);
    return false;
}

static void authorize(const struct mrt_rest_call *call, char text[MRT_REST_TOKEN_MAX])
{
    const struct mrt_etcd_wire *wire = call->wire->owner;
    snprintf(text, MRT_REST_TOKEN_MAX, "%s", call->apart ? "" : wire->token);
}

/* ----------------------------------------------------------------- answers */

static void refused(const struct mrt_rest_call *call, const char *text,
                    struct mrt_rest_verdict *verdict)
{
    struct mrt_etcd_wire *wire = call->wire->owner;
    enum mrt_etcd_class class = mrt_etcd_classify(text, &verdict->error, &verdict->advice);
    verdict->text = text;
    verdict->again = class == MRT_ETCD_IS_TOKEN;
    verdict->next_host = class == MRT_ETCD_IS_UNKNOWN;
    verdict->outcome = class == MRT_ETCD_IS_UNKNOWN ? MRT_REST_UNKNOWN : MRT_REST_REFUSED;
    if (verdict->again && !call->again)
        explicit_bzero(wire->token, sizeof wire->token);
}

/* The text of an error; NULL: the reply reports none. */
static const char *error_text(struct json_object *json)
{
    const char *message = mrt_rest_string(json, "message");
    struct json_object *error = mrt_rest_member(json, "error");
    if (!*message)
        message = mrt_rest_string(error, "message");
    if (!*message && error)
        message = json_object_get_string(error);
    return *message ? message : NULL;
}

static void judge(const struct mrt_rest_call *call, long status, struct json_object *json,
                  struct mrt_rest_verdict *verdict)
{
    const char *text = error_text(json);
    bool fine = status == 200 && (json_object_is_type(json, json_type_object) || call->line);
    if (text || status == 404) {
        refused(call, text ? text : "Not Found", verdict);
    } else if (!fine) {
        verdict->outcome = MRT_REST_UNKNOWN;
        verdict->error = MORTISE_ESTORE;
        verdict->text = "the answer is not etcd's";
        verdict->next_host = true;
    }
}

static struct json_object *take_line(struct json_object *json)
{
    return mrt_rest_member(json, "result");
}

static const struct mrt_rest_family family = {
    .name = "etcd", .ready = ready, .authorize = authorize, .judge = judge, .take_line = take_line};

/* ------------------------------------------------------------------ the wire */

int mrt_etcd_wire_open(struct mrt_etcd_wire *wire, const struct mrt_etcd_address *address,
                       const char *secret)
{
    *wire = (struct mrt_etcd_wire){.address = address, .secret = secret};
    const struct mrt_rest_server server = {.family = &family,
                                           .hosts = address->servers.hosts,
                                           .host_count = address->servers.host_count,
                                           .connect = address->connect,
                                           .tls = address->servers.tls,
                                           .tls_ca = address->servers.tls_ca};
    return mrt_rest_wire_open(&wire->rest, &server, wire);
}

void mrt_etcd_wire_close(struct mrt_etcd_wire *wire)
{
    mrt_rest_wire_close(&wire->rest);
    explicit_bzero(wire->token, sizeof wire->token);
}
