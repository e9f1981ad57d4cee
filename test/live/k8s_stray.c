/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See k8s_stray.h. The store never has an answer before its call has begun: one that does not reach
 * the server is answered when another request, of the server's version, is.
 */
#include "live/k8s_stray.h"

#include "cmocka_all.h"
#include "store/rest/ask.h"
#include "store/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWERS 64 /* under way at the same time */
#define PATIENCE (20 * MRT_SECOND)

static struct {
    enum stray kind;
    const struct mrt_rest_wire *wire;
    const char *method;
    stray_changer *change;
    unsigned left, count;
} stray;

static struct {
    char method[8], path[MRT_K8S_TARGET_SIZE];
    struct mrt_rest_text body;
} late;

/* A call whose answer does not go straight to the store. */
static struct answer {
    enum stray kind;
    mrt_rest_done *done;
    void *argument;
    stray_changer *change;
} answers[ANSWERS];

static struct {
    struct answer to;
    struct json_object *json;
    bool has_come;
} held;

static struct {
    const struct mrt_rest_wire *wire;
    mrt_rest_done *line;
    void *argument;
    bool begins_late;
    unsigned count;
} watch;

struct mrt_rest_call *__real_mrt_rest_send(struct mrt_rest_wire *wire,
                                           const struct mrt_rest_request *request,
                                           struct mrt_rest_text *body);
struct mrt_rest_call *__wrap_mrt_rest_send(struct mrt_rest_wire *wire,
                                           const struct mrt_rest_request *request,
                                           struct mrt_rest_text *body);
int __wrap_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops);

/* The store is linked here, and no module. */
int __wrap_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops)
{
    (void)of;
    *ops = &mrt_k8s_store;
    return MORTISE_OK;
}

struct mrt_k8s_store *store_of(struct port_client *client)
{
    return (struct mrt_k8s_store *)client->store;
}

/* ------------------------------------------------------------ the answers */

static void answer_changed(const struct answer *to, const struct mrt_rest_reply *reply)
{
    struct mrt_rest_reply changed = *reply;
    struct json_object *copy = NULL;
    if (reply->json)
        assert_int_equal(json_object_deep_copy(reply->json, &copy, NULL), 0);
    if (copy)
        to->change(copy);
    changed.json = copy;
    to->done(to->argument, &changed);
    json_object_put(copy);
}

static void has_answer(void *argument, const struct mrt_rest_reply *reply)
{
    static const struct mrt_rest_reply lost = {
        .outcome = MRT_REST_UNKNOWN, .error = MORTISE_EUNREACHABLE, .text = "lost by the test"};
    static const struct mrt_rest_reply refused = {
        .outcome = MRT_REST_REFUSED, .error = MORTISE_ECONFLICT, .text = "refused by the test"};
    struct answer to = *(struct answer *)argument;
    if (to.kind == STRAY_HELD) {
        assert_int_equal(reply->outcome, MRT_REST_DONE);
        held.to = to;
        held.json = json_object_get(reply->json);
        held.has_come = true;
    } else if (to.kind == STRAY_CHANGED) {
        answer_changed(&to, reply);
    } else {
        to.done(to.argument, to.kind == STRAY_REFUSED ? &refused : &lost);
    }
}

void stray_release(void)
{
    assert_true(held.has_come);
    const struct mrt_rest_reply reply = {.outcome = MRT_REST_DONE, .json = held.json};
    held.has_come = false;
    held.to.done(held.to.argument, &reply);
    json_object_put(held.json);
    held.json = NULL;
}

/* ------------------------------------------------------------ the calls */

static bool is_astray(const struct mrt_rest_wire *wire, const struct mrt_rest_request *request)
{
    if (stray.left == 0 || wire != stray.wire || request->line ||
        strcmp(request->method, stray.method) != 0 || !strstr(request->path, "/leases"))
        return false;
    stray.left--;
    stray.count++;
    return stray.kind != STRAY_NOT;
}

static void keep_late(const struct mrt_rest_request *request, struct mrt_rest_text *body)
{
    bool first = stray.kind == STRAY_LATE && !late.path[0];
    if (first) {
        snprintf(late.method, sizeof late.method, "%s", request->method);
        snprintf(late.path, sizeof late.path, "%s", request->path);
        late.body = body ? *body : (struct mrt_rest_text){0};
    } else if (body) {
        mrt_rest_text_free(body);
    }
}

/* One that has no version begins when all has happened, so it watches a Lease that is not there. */
static struct mrt_rest_call *send_watch(struct mrt_rest_wire *wire,
                                        const struct mrt_rest_request *request)
{
    char path[MRT_K8S_TARGET_SIZE];
    struct mrt_rest_request other = *request;
    watch.count++;
    watch.wire = wire;
    watch.line = request->line;
    watch.argument = request->argument;
    const struct mrt_k8s_wire *owner = wire->owner;
    mrt_k8s_target(owner->address, NULL, "watch=1&fieldSelector=metadata.name%3Dnothing", path);
    if (watch.begins_late && !strstr(request->path, "resourceVersion="))
        other.path = path;
    return __real_mrt_rest_send(wire, &other, NULL);
}

struct mrt_rest_call *__wrap_mrt_rest_send(struct mrt_rest_wire *wire,
                                           const struct mrt_rest_request *request,
                                           struct mrt_rest_text *body)
{
    static size_t next;
    if (request->line)
        return send_watch(wire, request);
    if (!is_astray(wire, request))
        return __real_mrt_rest_send(wire, request, body);
    struct answer *answer = &answers[next++ % ANSWERS];
    struct mrt_rest_request other = *request;
    *answer = (struct answer){stray.kind, request->done, request->argument, stray.change};
    other.done = has_answer;
    other.argument = answer;
    if (stray.kind != STRAY_LATE && stray.kind != STRAY_REFUSED)
        return __real_mrt_rest_send(wire, &other, body);
    keep_late(request, body);
    other.method = "GET";
    other.path = "version";
    other.once = false;
    return __real_mrt_rest_send(wire, &other, NULL);
}

void stray_lead(struct port_client *client, const char *method, enum stray kind, unsigned times)
{
    stray.kind = kind;
    stray.wire = &store_of(client)->wire.rest;
    stray.method = method;
    stray.left = times;
    stray.count = 0;
}

void stray_change(struct port_client *client, const char *method, stray_changer *change,
                  unsigned times)
{
    stray_lead(client, method, STRAY_CHANGED, times);
    stray.change = change;
}

unsigned stray_count(void)
{
    return stray.count;
}

void stray_end(void)
{
    stray.left = 0;
    watch.wire = NULL;
    watch.begins_late = false;
    watch.count = 0;
    late.path[0] = '\0';
    mrt_rest_text_free(&late.body);
}

unsigned watch_count(void)
{
    return watch.count;
}

void watches_begin_late(void)
{
    watch.begins_late = true;
}

void watch_shows(struct port_client *client, const char *type, struct json_object *object)
{
    struct json_object *event = json_object_new_object();
    const struct mrt_rest_reply reply = {.outcome = MRT_REST_DONE, .json = event};
    assert_ptr_equal(watch.wire, &store_of(client)->wire.rest);
    json_object_object_add(event, "type", json_object_new_string(type));
    json_object_object_add(event, "object", object);
    watch.line(watch.argument, &reply);
    json_object_put(event);
}

/* ------------------------------------------------------------ an operator's calls */

/* 0 or the code of a refusal; *json is the caller's. */
static int ask(struct port_client *client, const char *method, const char *path,
               struct mrt_rest_text *body, struct json_object **json)
{
    struct mrt_k8s_wire wire;
    const struct mrt_k8s_address *address = &store_of(client)->address;
    struct mrt_rest_operation operation = {.wire = &wire.rest,
                                           .address = address->shown,
                                           .deadline = mrt_time_add(mrt_time_now(), PATIENCE)};
    const struct mrt_rest_request request = {.method = method, .path = path};
    assert_int_equal(mrt_k8s_wire_open(&wire, address), MORTISE_OK);
    int error = mrt_rest_ask(&operation, request, body);
    assert_false(operation.unknown);
    if (json)
        *json = json_object_get(operation.json);
    mrt_rest_operation_end(&operation);
    mrt_k8s_wire_close(&wire);
    return error;
}

const char *late_body(void)
{
    return late.body.bytes ? late.body.bytes : "";
}

int late_arrives(struct port_client *client)
{
    assert_true(late.path[0]);
    int error = ask(client, late.method, late.path, &late.body, NULL);
    late.path[0] = '\0';
    late.body = (struct mrt_rest_text){0};
    return error;
}

struct json_object *lease_read(struct port_client *client, const char *name)
{
    char target[MRT_K8S_TARGET_SIZE];
    struct json_object *json = NULL;
    mrt_k8s_target(&store_of(client)->address, name, "", target);
    int error = ask(client, "GET", target, NULL, &json);
    assert_true(error == MORTISE_OK || error == MORTISE_ENOTHELD);
    return json;
}

static struct json_object *new_lease(const char *name)
{
    struct json_object *json = json_object_new_object(), *metadata = json_object_new_object();
    json_object_object_add(metadata, "name", json_object_new_string(name));
    json_object_object_add(json, "metadata", metadata);
    json_object_object_add(json, "spec", json_object_new_object());
    return json;
}

void lease_write(struct port_client *client, const char *name, const char *spec)
{
    char target[MRT_K8S_TARGET_SIZE];
    struct json_object *json = lease_read(client, name), *more = json_tokener_parse(spec);
    const char *method = json ? "PUT" : "POST";
    assert_non_null(more);
    mrt_k8s_target(&store_of(client)->address, json ? name : NULL, "", target);
    if (!json)
        json = new_lease(name);
    json_object_object_foreach(more, key, value)
        json_object_object_add(mrt_rest_member(json, "spec"), key, json_object_get(value));
    struct mrt_rest_text body = {0};
    mrt_rest_add(&body, "%s", json_object_to_json_string(json));
    assert_int_equal(ask(client, method, target, &body, NULL), MORTISE_OK);
    json_object_put(json);
    json_object_put(more);
}

void lease_delete(struct port_client *client, const char *name)
{
    char target[MRT_K8S_TARGET_SIZE];
    struct mrt_rest_text body = {0};
    mrt_k8s_target(&store_of(client)->address, name, "", target);
    mrt_rest_add(&body, "{}");
    assert_int_equal(ask(client, "DELETE", target, &body, NULL), MORTISE_OK);
}
