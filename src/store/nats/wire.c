/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. A callback may publish, so lists are walked anew after each. */
#include "store/nats/wire.h"

#include "base/backoff.h"
#include "base/epoll.h"
#include "base/error.h"
#include "store/nats/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAUSE (50 * MRT_MILLISECOND)
#define PAUSE_MAX (2 * MRT_SECOND)
#define EVENTS_MAX 4
#define CLOSE_PATIENCE (100 * MRT_MILLISECOND)
#define REPLY_SIZE 96
#define READS_MAX 1024 /* of at most 16 KiB each, by TLS, without an answer */

int mrt_nats_wire_open(struct mrt_nats_wire *wire, const struct mrt_nats_address *address,
                       const char *secret)
{
    struct mrt_id id;
    char text[MRT_ID_TEXT_SIZE];
    *wire = (struct mrt_nats_wire){.address = address, .secret = secret, .epoll = -1, .event = -1};
    TAILQ_INIT(&wire->calls);
    TAILQ_INIT(&wire->held);
    if (!mrt_id_random(&id))
        return mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    mrt_id_format(id, text);
    snprintf(wire->inbox, sizeof wire->inbox, "_INBOX.%s.", text);
    wire->chance = id.low;
    wire->epoll = epoll_create1(EPOLL_CLOEXEC);
    wire->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wire->epoll < 0 || wire->event < 0 ||
        !mrt_epoll_watch(wire->epoll, wire->event, EPOLLIN, &wire->event))
        return mrt_error(MORTISE_ENOMEM, "no descriptor left for NATS");
    return MORTISE_OK;
}

static void free_call(struct mrt_nats_call *call)
{
    free(call->subject);
    free(call->bytes);
    free(call);
}

static void drop_link(struct mrt_nats_wire *wire)
{
    if (wire->link)
        mrt_nats_link_drop(wire->link);
    wire->link = NULL;
    wire->polls_writes = false;
}

static void drop_calls(struct mrt_nats_calls *calls)
{
    struct mrt_nats_call *call;
    while ((call = TAILQ_FIRST(calls))) {
        TAILQ_REMOVE(calls, call, link);
        free_call(call);
    }
}

void mrt_nats_wire_close(struct mrt_nats_wire *wire)
{
    drop_calls(&wire->calls);
    drop_calls(&wire->held);
    if (wire->connecting)
        mrt_nats_connecting_drop(wire->connecting, CLOSE_PATIENCE);
    wire->connecting = NULL;
    drop_link(wire);
    if (wire->event >= 0)
        close(wire->event);
    if (wire->epoll >= 0)
        close(wire->epoll);
    wire->event = wire->epoll = -1;
}

void mrt_nats_wire_abandon(struct mrt_nats_wire *wire)
{
    if (wire->link)
        mrt_nats_link_abandon(wire->link);
    close(wire->event);
    close(wire->epoll);
}

/* ------------------------------------------------------------------ sending */

static void set_expected(natsMsg *message, int64_t expected)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, expected);
    if (expected != MRT_NATS_ANY)
        natsMsgHeader_Set(message, "Nats-Expected-Last-Subject-Sequence", text);
}

/* The address of a request's answer. */
static void set_reply(const struct mrt_nats_wire *wire, const struct mrt_nats_call *call,
                      char reply[REPLY_SIZE])
{
    snprintf(reply, REPLY_SIZE, "%s%" PRIu64, wire->inbox, call->number);
}

static natsStatus publish(struct mrt_nats_wire *wire, const struct mrt_nats_call *call)
{
    char reply[REPLY_SIZE];
    natsMsg *message = NULL;
    set_reply(wire, call, reply);
    natsStatus status =
        natsMsg_Create(&message, call->subject, reply, call->bytes, (int)call->size);
    if (status != NATS_OK)
        return status;
    set_expected(message, call->expected);
    atomic_store(&wire->link->inside, true);
    status = natsConnection_PublishMsg(wire->link->connection, message);
    atomic_store(&wire->link->inside, false);
    natsMsg_Destroy(message);
    return status;
}

static void take_out(struct mrt_nats_wire *wire, struct mrt_nats_call *call)
{
    if (!call->sent) {
        TAILQ_REMOVE(&wire->held, call, link);
        return;
    }
    TAILQ_REMOVE(&wire->calls, call, link);
    wire->under_way -= !call->urgent;
    mrt_traffic_answered(&wire->traffic);
}

/* Ends a call without a reply of the server's. */
static void end(struct mrt_nats_wire *wire, struct mrt_nats_call *call,
                enum mrt_nats_outcome outcome, int error, const char *text)
{
    const struct mrt_nats_reply reply = {.outcome = outcome, .error = error, .text = text};
    take_out(wire, call);
    call->done(call->argument, &reply);
    free_call(call);
}

/* All that has been sent is lost, and so is the connection. */
static void break_off(struct mrt_nats_wire *wire, const char *why)
{
    char text[320], host[MRT_HOST_TEXT_SIZE];
    struct mrt_nats_call *call;
    mrt_host_format(&wire->address->servers.hosts[wire->host], host);
    snprintf(text, sizeof text, "%.180s: %.120s", host, why);
    drop_link(wire);
    wire->host = (wire->host + 1) % wire->address->servers.host_count;
    while ((call = TAILQ_FIRST(&wire->calls)))
        end(wire, call, MRT_NATS_UNKNOWN, MORTISE_EUNREACHABLE, text);
}

/* Sends a call whose turn it is. A connection that has broken shows when it is read. */
static bool send_call(struct mrt_nats_wire *wire, struct mrt_nats_call *call)
{
    if (!wire->link || (!call->urgent && wire->under_way >= MRT_NATS_CALLS_MAX) ||
        publish(wire, call) != NATS_OK)
        return false;
    TAILQ_REMOVE(&wire->held, call, link);
    TAILQ_INSERT_TAIL(&wire->calls, call, link);
    call->sent = true;
    call->deadline = mrt_time_add(mrt_time_now(), call->limit);
    wire->under_way += !call->urgent;
    mrt_traffic_sent(&wire->traffic);
    return true;
}

static void send_held(struct mrt_nats_wire *wire)
{
    struct mrt_nats_call *call = TAILQ_FIRST(&wire->held), *next;
    for (; call; call = next) {
        next = TAILQ_NEXT(call, link);
        if (!send_call(wire, call) && !call->urgent)
            break;
    }
}

static void begin_connecting(struct mrt_nats_wire *wire, mrt_time now)
{
    if (wire->link || wire->connecting || now < wire->again)
        return;
    wire->connecting = mrt_nats_connect(wire->address, wire->secret, wire->host, wire->inbox,
                                        wire->epoll, wire->event);
    if (!wire->connecting)
        wire->again = now + PAUSE_MAX;
    mrt_time each = wire->address->connect;
    wire->patience = mrt_time_add(now, each * (mrt_time)(wire->address->servers.host_count + 1));
}

bool mrt_nats_publish(struct mrt_nats_wire *wire, const char *subject, int64_t expected,
                      const void *bytes, size_t size, mrt_time limit, mrt_nats_done *done,
                      void *argument)
{
    struct mrt_nats_call *call = calloc(1, sizeof *call);
    mrt_time now = mrt_time_now();
    if (call) {
        call->subject = strdup(subject);
        call->bytes = malloc(size + 1);
    }
    if (!call || !call->subject || !call->bytes) {
        if (call)
            free_call(call);
        return false;
    }
    if (size > 0)
        memcpy(call->bytes, bytes, size);
    call->bytes[size] = '\0';
    call->size = size;
    call->expected = expected;
    call->number = ++wire->numbers;
    call->limit = limit < 0 ? -limit : limit;
    call->urgent = limit < 0;
    call->deadline = mrt_time_add(now, call->limit);
    call->done = done;
    call->argument = argument;
    TAILQ_INSERT_TAIL(&wire->held, call, link);
    send_call(wire, call);
    begin_connecting(wire, now);
    return true;
}

void mrt_nats_tell(struct mrt_nats_wire *wire, const char *subject, const char *text)
{
    if (!wire->link)
        return;
    atomic_store(&wire->link->inside, true);
    natsConnection_Publish(wire->link->connection, subject, text, (int)strlen(text));
    atomic_store(&wire->link->inside, false);
}

natsSubscription *mrt_nats_listen(struct mrt_nats_wire *wire, const char *subject)
{
    natsSubscription *subscription = NULL;
    if (!wire->link)
        return NULL;
    atomic_store(&wire->link->inside, true);
    natsConnection_SubscribeSync(&subscription, wire->link->connection, subject);
    atomic_store(&wire->link->inside, false);
    return subscription;
}

void mrt_nats_wire_flush(struct mrt_nats_wire *wire)
{
    struct mrt_nats_link *link = wire->link;
    if (!link)
        return;
    bool polls = mrt_nats_link_write(link);
    if (polls != wire->polls_writes && !natsConnection_IsClosed(link->connection))
        mrt_epoll_watch(wire->epoll, link->socket, EPOLLIN | (polls ? EPOLLOUT : 0), link);
    wire->polls_writes = polls;
}

/* ------------------------------------------------------------------ replies */

static struct mrt_nats_call *find_call(const struct mrt_nats_wire *wire, const char *subject)
{
    char reply[REPLY_SIZE];
    struct mrt_nats_call *call;
    TAILQ_FOREACH (call, &wire->calls, link) {
        set_reply(wire, call, reply);
        if (strcmp(subject, reply) == 0)
            break;
    }
    return call;
}

static void answered(struct mrt_nats_wire *wire, struct mrt_nats_call *call, natsMsg *message)
{
    struct mrt_nats_reply reply;
    struct json_object *json = mrt_nats_reply_read(call, natsMsg_GetData(message),
                                                   (size_t)natsMsg_GetDataLength(message), &reply);
    take_out(wire, call);
    call->done(call->argument, &reply);
    free_call(call);
    json_object_put(json);
}

/* The library drops the message that nobody takes a request, so it is not known which one: if there
   are several, their outcome is unknown. */
static void nobody_there(struct mrt_nats_wire *wire)
{
    char text[320];
    struct mrt_nats_call *call = TAILQ_FIRST(&wire->calls);
    if (!call || TAILQ_NEXT(call, link)) {
        break_off(wire, "nobody takes one of several requests");
        return;
    }
    snprintf(text, sizeof text,
             "nobody takes %.200s: the server has no JetStream, or no leader now", call->subject);
    end(wire, call, MRT_NATS_AWAY, MORTISE_EUNREACHABLE, text);
}

static void read_inbox(struct mrt_nats_wire *wire)
{
    natsMsg *message = NULL;
    while (wire->link) {
        natsStatus status = natsSubscription_NextMsg(&message, wire->link->inbox, 0);
        if (status == NATS_NO_RESPONDERS)
            nobody_there(wire);
        if (status != NATS_OK)
            break;
        struct mrt_nats_call *call = find_call(wire, natsMsg_GetSubject(message));
        wire->unanswered = 0;
        if (call)
            answered(wire, call, message);
        natsMsg_Destroy(message);
    }
}

/* The request that the user may not publish has no answer. */
static void refuse_violation(struct mrt_nats_wire *wire)
{
    char text[320], advice[400];
    struct mrt_nats_call *call;
    if (!wire->link || !mrt_nats_link_violation(wire->link, text, sizeof text))
        return;
    snprintf(advice, sizeof advice, "%.200s; doc/nats.md has the rights that are enough", text);
    TAILQ_FOREACH (call, &wire->calls, link)
        if (strstr(text, call->subject))
            break;
    if (call)
        end(wire, call, MRT_NATS_REFUSED, MORTISE_EPERMISSION, advice);
}

static void connected(struct mrt_nats_wire *wire)
{
    wire->generation++;
    wire->failures = 0;
    if (!mrt_epoll_watch(wire->epoll, wire->link->socket, EPOLLIN, wire->link)) {
        break_off(wire, "no descriptor can be polled");
        return;
    }
    send_held(wire);
}

/* Nobody can be connected to: what waits has not been sent. */
static void not_connected(struct mrt_nats_wire *wire, int error, const char *text)
{
    struct mrt_nats_calls held = TAILQ_HEAD_INITIALIZER(held);
    struct mrt_nats_call *call;
    mrt_time pause = mrt_backoff(PAUSE, PAUSE_MAX, wire->failures++);
    wire->again = mrt_time_now() + mrt_backoff_spread(pause, wire->chance);
    TAILQ_CONCAT(&held, &wire->held, link);
    while ((call = TAILQ_FIRST(&held))) {
        const struct mrt_nats_reply reply = {
            .outcome = error == MORTISE_EUNREACHABLE ? MRT_NATS_AWAY : MRT_NATS_REFUSED,
            .error = error,
            .text = text};
        TAILQ_REMOVE(&held, call, link);
        call->done(call->argument, &reply);
        free_call(call);
    }
}

/* In a handshake of TLS the library waits without a limit. Its thread ends when the server does. */
static void give_up_connecting(struct mrt_nats_wire *wire)
{
    char text[256], host[MRT_HOST_TEXT_SIZE];
    mrt_host_format(&wire->address->servers.hosts[wire->host], host);
    snprintf(text, sizeof text, "%.180s: no connection in time", host);
    mrt_nats_connecting_drop(wire->connecting, 0);
    wire->connecting = NULL;
    wire->host = (wire->host + 1) % wire->address->servers.host_count;
    not_connected(wire, MORTISE_EUNREACHABLE, text);
}

static void tend_connection(struct mrt_nats_wire *wire, mrt_time now)
{
    char text[256];
    int error;
    if (wire->connecting && mrt_nats_connecting_take(wire->connecting, &wire->link, &wire->host,
                                                     &error, text, sizeof text)) {
        wire->connecting = NULL;
        if (wire->link)
            connected(wire);
        else
            not_connected(wire, error, text);
    } else if (wire->connecting && now >= wire->patience) {
        give_up_connecting(wire);
    }
    if (!TAILQ_EMPTY(&wire->held))
        begin_connecting(wire, now);
}

static bool is_late(const struct mrt_nats_calls *calls, mrt_time now)
{
    const struct mrt_nats_call *call;
    TAILQ_FOREACH (call, calls, link)
        if (call->deadline <= now)
            return true;
    return false;
}

/* One that is too late ends the connection, and all that were sent. */
static void end_late(struct mrt_nats_wire *wire, mrt_time now)
{
    if (is_late(&wire->calls, now))
        break_off(wire, "no answer in time");
    while (!wire->link && is_late(&wire->held, now)) {
        struct mrt_nats_call *call = TAILQ_FIRST(&wire->held);
        while (call->deadline > now)
            call = TAILQ_NEXT(call, link);
        end(wire, call, MRT_NATS_AWAY, MORTISE_EUNREACHABLE, "no connection in time");
    }
}

void mrt_nats_wire_process(struct mrt_nats_wire *wire, mrt_time now)
{
    struct epoll_event ready[EVENTS_MAX];
    uint64_t count;
    bool readable = false; /* in a read without it the library waits, if the connection is by TLS */
    const char *fault = NULL;
    int events = epoll_wait(wire->epoll, ready, EVENTS_MAX, 0);
    for (int i = 0; i < events; i++) {
        if (ready[i].data.ptr == &wire->event) {
            ssize_t got = read(wire->event, &count, sizeof count);
            (void)got;
        } else if (wire->link) {
            if (ready[i].events & EPOLLOUT)
                atomic_store(&wire->link->writes, true);
            readable = ready[i].events & ~(uint32_t)EPOLLOUT;
        }
    }
    tend_connection(wire, now);
    if (wire->link && readable) {
        wire->unanswered++;
        fault = mrt_nats_link_read(wire->link);
    }
    read_inbox(wire);
    if (wire->link && wire->link->relay.inner < 0 && wire->unanswered > READS_MAX)
        fault = "the server sends without end";
    refuse_violation(wire);
    if (wire->link && (fault || natsConnection_IsClosed(wire->link->connection))) {
        break_off(wire, fault ? fault : "the connection broke before the answer");
        tend_connection(wire, now);
    }
    end_late(wire, now);
    send_held(wire);
    mrt_nats_wire_flush(wire);
}

mrt_time mrt_nats_wire_next(const struct mrt_nats_wire *wire)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_nats_call *call;
    TAILQ_FOREACH (call, &wire->calls, link)
        next = mrt_time_min(next, call->deadline);
    if (!wire->link)
        TAILQ_FOREACH (call, &wire->held, link)
            next = mrt_time_min(next, call->deadline);
    if (wire->connecting)
        next = mrt_time_min(next, wire->patience);
    else if (!TAILQ_EMPTY(&wire->held) && !wire->link)
        next = mrt_time_min(next, wire->again);
    return next;
}
