/* SPDX-License-Identifier: Apache-2.0 */
/* See ask.h. The server's description, init, and the rights that a user needs. */
#include "store/nats/ask.h"

#include "base/listen.h"
#include "store/nats/code.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int mrt_nats_operation_open(struct mrt_nats_operation *operation,
                            const struct mrt_nats_address *address, const char *secret,
                            mrt_time timeout)
{
    *operation = (struct mrt_nats_operation){.address = address, .timeout = timeout};
    return mrt_nats_wire_open(&operation->wire, address, secret);
}

void mrt_nats_operation_close(struct mrt_nats_operation *operation)
{
    json_object_put(operation->json);
    mrt_nats_wire_flush(&operation->wire);
    mrt_nats_wire_close(&operation->wire);
}

void mrt_nats_operation_answered(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_operation *operation = argument;
    operation->ended = true;
    operation->unknown = reply->outcome == MRT_NATS_UNKNOWN;
    operation->code = reply->code;
    operation->sequence = reply->sequence;
    operation->json = json_object_get(reply->json);
    operation->error = MORTISE_OK;
    if (reply->outcome != MRT_NATS_DONE)
        operation->error =
            mrt_error(reply->error, "NATS: %s", reply->text ? reply->text : "a malformed answer");
}

void mrt_nats_operation_end_wire(struct mrt_nats_operation *operation)
{
    const char *secret = operation->wire.secret;
    mrt_nats_wire_close(&operation->wire);
    mrt_nats_wire_open(&operation->wire, operation->address, secret);
}

static void wait_a_while(struct mrt_nats_operation *operation)
{
    mrt_time now = mrt_time_now();
    mrt_time until = mrt_time_min(operation->deadline, mrt_nats_wire_next(&operation->wire));
    mrt_time left = until > now ? until - now : 0;
    const struct timespec pause = {left / MRT_SECOND, left % MRT_SECOND};
    struct pollfd poller = {.fd = operation->wire.epoll, .events = POLLIN};
    ppoll(&poller, 1, &pause, NULL);
    mrt_nats_wire_process(&operation->wire, mrt_time_now());
}

int mrt_nats_operation_wait(struct mrt_nats_operation *operation, bool begun)
{
    if (!begun)
        return MORTISE_ENOMEM;
    json_object_put(operation->json);
    operation->json = NULL;
    operation->ended = operation->unknown = false;
    mrt_nats_wire_flush(&operation->wire);
    operation->deadline = mrt_time_add(mrt_time_now(), operation->timeout);
    while (!operation->ended && mrt_time_now() < operation->deadline)
        wait_a_while(operation);
    if (operation->ended)
        return operation->error;
    operation->unknown = true;
    return mrt_error(MORTISE_EUNREACHABLE, "NATS: %s: no answer in time",
                     operation->address->servers.shown);
}

int mrt_nats_ask(struct mrt_nats_operation *operation, const char *subject, int64_t expected,
                 const void *bytes, size_t size)
{
    return mrt_nats_operation_wait(operation,
                                   mrt_nats_publish(&operation->wire, subject, expected, bytes,
                                                    size, operation->address->connect,
                                                    mrt_nats_operation_answered, operation));
}

/* ------------------------------------------------------------------ reading */

int mrt_nats_take_message(struct mrt_nats_operation *operation, int error,
                          struct mrt_nats_message *message)
{
    const struct mrt_nats_reply reply = {
        .outcome = error ? MRT_NATS_REFUSED : MRT_NATS_DONE,
        .json = operation->json,
        .code = operation->code,
    };
    if (mrt_nats_message_read(&reply, message))
        return MORTISE_OK;
    return error ? error : mrt_error(MORTISE_ESTORE, "NATS: the reply to a read is malformed");
}

int mrt_nats_read_next(struct mrt_nats_operation *operation, uint64_t sequence, const char *subject,
                       struct mrt_nats_message *message)
{
    bool begun = mrt_nats_get_next(&operation->wire, operation->address->tickets, sequence, subject,
                                   mrt_nats_operation_answered, operation);
    return mrt_nats_take_message(operation, mrt_nats_operation_wait(operation, begun), message);
}

static void judged(void *argument, enum mrt_nats_verdict verdict,
                   const struct mrt_nats_reply *reply)
{
    static const struct mrt_nats_reply done = {.outcome = MRT_NATS_DONE};
    struct mrt_nats_operation *operation = argument;
    operation->is_dead = verdict == MRT_NATS_IS_DEAD;
    mrt_nats_operation_answered(operation, verdict == MRT_NATS_NO_VERDICT ? reply : &done);
}

bool mrt_nats_judge(struct mrt_nats_operation *operation, struct mrt_nats_grave *grave)
{
    grave->done = judged;
    grave->argument = operation;
    operation->is_dead = false;
    operation->ended = false;
    mrt_nats_grave_begin(grave);
    bool failed = mrt_nats_operation_wait(operation, true) != MORTISE_OK;
    if (!operation->ended) /* its callback would come too late */
        mrt_nats_operation_end_wire(operation);
    return !failed && operation->is_dead;
}

/* ------------------------------------------------------------------- server */

static void check_access(const struct mrt_nats_store *store)
{
    struct mrt_notes notes = {
        .from = store->notes.from, .log = store->notes.log, .argument = store->notes.argument};
    bool reachable = false;
    for (size_t i = 0; i < store->address.servers.host_count; i++)
        reachable |= mrt_listens_for_others(store->address.servers.hosts[i].name);
    if (reachable && !store->secret[0])
        mrt_note(&notes, MRT_NATS_NOTE_ACCESS,
                 "no user and password: anyone who reaches the server may break these locks");
    mrt_notes_say(&notes);
}

int mrt_nats_server(struct mrt_store *port, char *text, size_t size)
{
    const struct mrt_nats_store *store = (const struct mrt_nats_store *)port;
    const struct mrt_nats_address *address = &store->address;
    struct mrt_nats_operation operation;
    char subject[MRT_NATS_BASE_SIZE + 64];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", address->tickets);
    int error = mrt_nats_operation_open(&operation, address, store->secret, store->timeout);
    if (error == MORTISE_OK)
        error = mrt_nats_ask(&operation, subject, MRT_NATS_ANY, "", 0);
    if (error == MORTISE_OK) {
        struct json_object *config = mrt_nats_member(operation.json, "config");
        snprintf(text, size, "NATS JetStream, %" PRIu64 " replica(s)%s",
                 mrt_nats_number(config, "num_replicas"),
                 mrt_address_encrypted(address->servers.tls != MRT_ADDRESS_TLS_OFF,
                                       address->servers.tls == MRT_ADDRESS_TLS_VERIFY));
    } else if (operation.code == MRT_NATS_NO_STREAM) {
        snprintf(text, size, "NATS JetStream, without a stream of these locks yet%s",
                 mrt_address_encrypted(address->servers.tls != MRT_ADDRESS_TLS_OFF,
                                       address->servers.tls == MRT_ADDRESS_TLS_VERIFY));
        error = MORTISE_OK;
    }
    if (error == MORTISE_OK)
        check_access(store);
    mrt_nats_operation_close(&operation);
    return error;
}

/* --------------------------------------------------------------------- init */

/* The requests, each as its subject and its body. */
static void print_requests(const struct mrt_nats_address *address, mortise_text_callback print,
                           void *argument)
{
    char subject[MRT_NATS_REQUEST_SIZE], json[MRT_NATS_REQUEST_SIZE];
    char text[2 * MRT_NATS_REQUEST_SIZE + 4];
    for (int sessions = 0; sessions < 2; sessions++) {
        uint64_t replicas = address->replicas > 0 ? address->replicas : 1;
        mrt_nats_stream_request(address, sessions, replicas, subject, json);
        snprintf(text, sizeof text, "%s %s\n", subject, json);
        print(argument, text);
    }
}

int mrt_nats_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    struct mrt_nats_address address;
    char secret[MRT_SECRET_MAX] = "";
    struct mrt_nats_operation operation;
    int error = mrt_nats_uri_parse(uri, &address);
    if (error == MORTISE_OK && print) {
        print_requests(&address, print, argument);
        return MORTISE_OK;
    }
    if (error == MORTISE_OK)
        error = mrt_nats_secret_read(uri, &address, secret);
    if (error != MORTISE_OK)
        return error;
    error = mrt_nats_operation_open(&operation, &address, secret, 4 * address.connect);
    struct mrt_nats_streams streams = {
        .wire = &operation.wire, .done = mrt_nats_operation_answered, .argument = &operation};
    if (error == MORTISE_OK)
        error = mrt_nats_operation_wait(&operation, mrt_nats_streams_check(&streams));
    if (error == MORTISE_OK)
        mrt_nats_sweep(&operation);
    mrt_nats_operation_close(&operation);
    explicit_bzero(secret, sizeof secret);
    return error;
}

/* ------------------------------------------------------------------- rights */

int mrt_nats_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    struct mrt_nats_address address;
    char text[12 * MRT_NATS_BASE_SIZE + 1024];
    int error = mrt_nats_uri_parse(uri, &address);
    if (error)
        return error;
    snprintf(text, sizeof text,
             "permissions: {\n"
             "  publish: { allow: [\n"
             "    \"%s.>\",\n"
             "    \"$JS.API.STREAM.INFO.%s\",\n"
             "    \"$JS.API.STREAM.INFO.%s\",\n"
             "    \"$JS.API.STREAM.MSG.GET.%s\",\n"
             "    \"$JS.API.STREAM.MSG.GET.%s\",\n"
             "    \"$JS.API.STREAM.MSG.DELETE.%s\"\n"
             "  ] }\n"
             "  subscribe: { allow: [\"_INBOX.>\", \"%s.w.>\"] }\n"
             "}\n",
             address.base, address.tickets, address.sessions, address.tickets, address.sessions,
             address.tickets, address.base);
    print(argument, text);
    return MORTISE_OK;
}
