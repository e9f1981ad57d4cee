/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets and their connections:
 *
 *   FREE -> ASKING -> PROVING -> HELD -> LEAVING -> FREE
 *             |  '------------>--'|
 *             v                   v   (the connection ends)
 *           BROKEN -> ASKING     gone
 *
 * TRY tests whether the lock is free. If it is not, the ticket's command is answered, and WAIT then
 * waits for the lock in the server. A client that stops waiting closes the connection, because no
 * request can be sent on it meanwhile. The server notices that by itself, or is told on another
 * connection (KILL), or notices when it grants the lock.
 *
 * After any failure the connection is closed, not mended, so that the client always knows what the
 * connection has on the server.
 */
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/native/native.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/retry.h"
#include "store/sql/send.h"
#include "store/sql/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static enum mrt_native_step step_of(const struct mrt_sql_store *store,
                                    const struct mrt_sql_request *request)
{
    return (enum mrt_native_step)((int)request->kind - (int)store->form->first);
}

static bool is_row(const struct mrt_sql_store *store)
{
    return store->form->first == MRT_SQL_DO_ROW;
}

/* ------------------------------------------------------------------ requests */

static void finish(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    const struct mrt_sql_code *code = request->failed ? mrt_sql_code(request->state) : NULL;
    if (request->kind == mrt_native_kind(store->steps, MRT_NATIVE_SETUP)) {
        mrt_sql_driver_check(store, request);
        mrt_sql_request_free(request);
    } else if (!code) {
        mrt_sql_answer(store, request, MRT_VIEW);
    } else if (code->outcome == MRT_SQL_PERHAPS) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
    } else {
        mrt_sql_fail_with_advice(store, request, code);
    }
}

static void finish_lost(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    if (request->kind == mrt_native_kind(store->steps, MRT_NATIVE_SETUP))
        mrt_sql_request_free(request);
    else
        mrt_sql_answer(store, request, MRT_UNKNOWN);
}

const struct mrt_sql_hooks mrt_native_hooks = {finish, finish_lost};

/* ------------------------------------------------------------------ links */

struct mrt_native_link *mrt_native_link_of(struct mrt_sql_store *store, struct mrt_id ticket)
{
    struct mrt_native_link *link;
    TAILQ_FOREACH (link, &store->form->links, link)
        if (link->state != MRT_NATIVE_FREE && link->state != MRT_NATIVE_LEAVING &&
            mrt_id_equal(link->ticket, ticket))
            return link;
    return NULL;
}

/* A server executes the requests of one connection in order: so a ticket that follows another of
   its queue need not wait until that one has left. */
static struct mrt_native_link *find_free(struct mrt_sql_store *store, const char *queue)
{
    struct mrt_native_link *link;
    TAILQ_FOREACH (link, &store->form->links, link)
        if (link->state == MRT_NATIVE_LEAVING && queue && strcmp(link->queue, queue) == 0)
            return link;
    TAILQ_FOREACH (link, &store->form->links, link)
        if (link->state == MRT_NATIVE_FREE)
            return link;
    return NULL;
}

static struct mrt_native_link *make(struct mrt_sql_store *store)
{
    struct mrt_native_link *link = calloc(1, sizeof *link);
    const struct mrt_store_options options = {
        .label = store->label, .log = store->log, .log_argument = store->log_argument};
    if (!link)
        return NULL;
    link->store.steps = store->form->first;
    link->store.hooks = &mrt_native_hooks;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    if (mrt_sql_init(&link->store, store->uri, &options, store->sink) != MORTISE_OK ||
        epoll_ctl(store->epoll, EPOLL_CTL_ADD, link->store.epoll, &event) < 0) {
        mrt_sql_fini(&link->store);
        free(link);
        return NULL;
    }
    link->store.traffic = store->traffic;
    TAILQ_INSERT_HEAD(&store->form->links, link, link);
    return link;
}

struct mrt_native_link *mrt_native_link_take(struct mrt_sql_store *store, const char *queue)
{
    struct mrt_native_link *link = find_free(store, queue);
    if (!link)
        link = make(store);
    if (!link || !queue || (link->queue && strcmp(link->queue, queue) == 0))
        return link;
    char *copy = strdup(queue);
    if (!copy)
        return NULL;
    free(link->queue);
    link->queue = copy;
    return link;
}

void mrt_native_link_free(struct mrt_sql_store *store, struct mrt_native_link *link)
{
    TAILQ_REMOVE(&store->form->links, link, link);
    mrt_sql_fini(&link->store);
    free(link->queue);
    free(link);
}

/* ------------------------------------------------------------------ sending */

static void prepare(struct mrt_sql_store *store, struct mrt_native_link *link,
                    struct mrt_sql_request *request, enum mrt_native_step step)
{
    request->kind = mrt_native_kind(store->form->first, step);
    request->command.queue = link->queue;
    request->done = request->failed = false; /* it has had no answer yet */
    link->fresh = true;
}

void mrt_native_link_send(struct mrt_sql_store *store, struct mrt_native_link *link,
                          struct mrt_sql_request *request, enum mrt_native_step step, mrt_time now)
{
    prepare(store, link, request, step);
    mrt_sql_begin(&link->store, request, now);
}

/* Sent behind the statement that ends the transaction. */
static void send_again(struct mrt_sql_store *store, struct mrt_native_link *link,
                       struct mrt_sql_request *request, enum mrt_native_step step, mrt_time now)
{
    prepare(store, link, request, step);
    mrt_sql_retry_behind(&link->store, request, now);
}

bool mrt_native_link_send_own(struct mrt_sql_store *store, struct mrt_native_link *link,
                              enum mrt_command_type type, enum mrt_native_step step, mrt_time now)
{
    struct mrt_sql_request *request = mrt_sql_request_new(store->form->first);
    if (!request)
        return false;
    request->command = (struct mrt_command){.type = type,
                                            .session = store->form->session,
                                            .ticket = link->ticket,
                                            .weight = link->weight,
                                            .capacity = link->capacity};
    mrt_native_link_send(store, link, request, step, now);
    return true;
}

void mrt_native_link_leave(struct mrt_sql_store *store, struct mrt_native_link *link,
                           struct mrt_sql_request *request, mrt_time now)
{
    link->state = MRT_NATIVE_LEAVING;
    request->command.weight = link->weight;
    request->command.capacity = link->capacity;
    mrt_native_link_send(store, link, request, MRT_NATIVE_LEAVE, now);
}

/* ------------------------------------------------------------------ telling */

static void answer(struct mrt_sql_store *store, struct mrt_sql_request *request,
                   enum mrt_event_type type)
{
    if (request->command.serial)
        mrt_sql_answer(store, request, type);
    else
        mrt_sql_request_free(request);
}

static bool deliver_event(struct mrt_sql_store *store, const struct mrt_native_link *link,
                          enum mrt_event_type type)
{
    const struct mrt_event event = {.type = type,
                                    .session = store->form->session,
                                    .ticket = link->ticket,
                                    .fence_span = UINT32_MAX,
                                    .others_behind = true};
    return mrt_sql_tell(store, &event);
}

void mrt_native_link_view(struct mrt_sql_store *store, const struct mrt_native_link *link,
                          struct mrt_sql_request *request, bool granted)
{
    request->event.fence_span = UINT32_MAX;
    request->event.weight_ahead = granted ? 0 : link->capacity;
    request->event.others_behind = granted; /* nobody knows */
    request->event.recheck = granted ? 0 : MRT_SQL_RECHECK_MAX;
    mrt_sql_answer(store, request, MRT_VIEW);
}

/* ------------------------------------------------------------------ ends */

/* The ticket has no lock any more, or never had one. */
static void forget_ticket(struct mrt_sql_store *store, struct mrt_native_link *link)
{
    if (link->removal)
        answer(store, link->removal, MRT_REMOVED);
    link->removal = NULL;
    link->state = MRT_NATIVE_FREE;
    link->ticket = (struct mrt_id){0, 0};
}

/* Closes the connection when the turn ends; its lock ends with it. */
static void sever(struct mrt_native_link *link)
{
    link->store.broken = true;
}

static void lose(struct mrt_sql_store *store, struct mrt_native_link *link)
{
    if (!deliver_event(store, link, MRT_WAKE)) /* the look that follows finds it gone */
        store->form->untold = true;
    forget_ticket(store, link);
    sever(link);
}

/* A waiter's place in the server is gone. */
static void lose_place(struct mrt_sql_store *store, struct mrt_native_link *link)
{
    link->state = MRT_NATIVE_BROKEN;
    if (link->removal)
        forget_ticket(store, link);
    sever(link);
}

/* ------------------------------------------------------------------ asking */

/* The grant is sure. */
static void believe(struct mrt_sql_store *store, struct mrt_native_link *link,
                    struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_request *removal = link->removal;
    link->state = MRT_NATIVE_HELD;
    link->removal = NULL;
    if (request->command.serial) {
        mrt_native_link_view(store, link, request, true);
    } else {
        deliver_event(store, link, MRT_VIEW);
        mrt_sql_request_free(request);
    }
    if (removal)
        mrt_native_link_leave(store, link, removal, now);
}

static void granted(struct mrt_sql_store *store, struct mrt_native_link *link,
                    struct mrt_sql_request *request, mrt_time now)
{
    bool shown = store->form->shown || is_row(store);
    if (shown && request->sent >= store->form->renewed) {
        believe(store, link, request, now);
        return;
    }
    link->state = MRT_NATIVE_PROVING;
    mrt_native_link_send(store, link, request, shown ? MRT_NATIVE_PROVE : MRT_NATIVE_LOOK, now);
}

/* It is somebody else's. */
static void refused(struct mrt_sql_store *store, struct mrt_native_link *link,
                    struct mrt_sql_request *request, mrt_time now)
{
    if (request->command.type == MRT_APPEND && request->command.try_only) {
        answer(store, request, MRT_BLOCKED);
        forget_ticket(store, link);
        if (is_row(store) &&
            !mrt_native_link_send_own(store, link, MRT_STOP, MRT_NATIVE_LEAVE, now))
            sever(link);
        return;
    }
    if (request->command.serial)
        mrt_native_link_view(store, link, request, false);
    else
        mrt_sql_request_free(request);
    if (link->removal || !mrt_native_link_send_own(store, link, MRT_REFRESH, MRT_NATIVE_WAIT, now))
        lose_place(store, link); /* it is looked at again after `recheck` */
}

/* It has not been had, for this reason. */
static void failed(struct mrt_sql_store *store, struct mrt_native_link *link,
                   struct mrt_sql_request *request)
{
    bool waited = request->command.type != MRT_APPEND;
    if (request->command.serial == 0)
        deliver_event(store, link, MRT_WAKE);
    answer(store, request, request->event.type);
    if (waited) {
        lose_place(store, link);
    } else {
        forget_ticket(store, link);
        sever(link);
    }
}

static bool may_be_mended(const struct mrt_sql_request *request)
{
    return request->failed && mrt_sql_code(request->state)->outcome == MRT_SQL_AGAIN;
}

/* The wait's time was up, or it was refused, or the row was being made by another: what the
   transaction has come to is ended, and it is tried again. */
static void again(struct mrt_sql_store *store, struct mrt_native_link *link,
                  struct mrt_sql_request *request, mrt_time now)
{
    if (step_of(store, request) == MRT_NATIVE_WAIT)
        request->begun = now;
    if (link->removal || !mrt_sql_may_retry(&link->store, request, now)) {
        failed(store, link, request);
        return;
    }
    request->event = (struct mrt_event){0};
    if (is_row(store) && !mrt_native_link_send_own(store, link, MRT_STOP, MRT_NATIVE_LEAVE, now))
        sever(link);
    send_again(store, link, request, MRT_NATIVE_TRY, now);
}

static void make_row(struct mrt_sql_store *store, struct mrt_native_link *link,
                     struct mrt_sql_request *request, mrt_time now)
{
    if (mrt_sql_may_retry(&link->store, request, now)) {
        send_again(store, link, request, MRT_NATIVE_MAKE, now);
        return;
    }
    request->event = (struct mrt_event){.type = MRT_FAILED, .error = MORTISE_ESTORE};
    snprintf(request->detail, sizeof request->detail, "%s: the row of %.100s cannot be made",
             mrt_sql_product, link->queue);
    failed(store, link, request);
}

/* The answer to TRY, MAKE or WAIT. */
static void asked(struct mrt_sql_store *store, struct mrt_native_link *link,
                  struct mrt_sql_request *request, mrt_time now)
{
    enum { GOT, THERE };
    bool waits = step_of(store, request) == MRT_NATIVE_WAIT;
    bool there = waits ? mrt_sql_has_row(request) : mrt_sql_number(request, THERE);
    if (mrt_sql_has_row(request) && mrt_sql_is_null(request, GOT))
        request->event.type = MRT_UNKNOWN; /* GET_LOCK says no more than that it went wrong */
    if (request->event.type != MRT_VIEW) {
        if (may_be_mended(request))
            again(store, link, request, now);
        else
            failed(store, link, request);
    } else if (mrt_sql_number(request, GOT)) {
        granted(store, link, request, now);
    } else if (is_row(store) && !there) {
        make_row(store, link, request, now);
    } else {
        refused(store, link, request, now);
    }
}

/* ------------------------------------------------------------------ the rest */

/* Whether the round trip shows what it should. */
static bool shows(struct mrt_native_link *link, struct mrt_sql_request *request, bool lock)
{
    if (request->event.type != MRT_VIEW)
        return false;
    if (!mrt_sql_driver_writable(request)) {
        request->event.type = MRT_UNKNOWN; /* another server may have it granted by now */
        mrt_sql_reject(&link->store, MORTISE_EUNREACHABLE, "%s: the server is read-only",
                       mrt_sql_product);
        return false;
    }
    if (!mrt_sql_driver_same(&link->store, request)) {
        mrt_sql_reject(&link->store, MORTISE_ENOTSUPPORTED,
                       "%s: a pooler has given the connection to another; locks need one of "
                       "their own",
                       mrt_sql_product);
        return false;
    }
    return !lock || mrt_sql_number(request, 0);
}

static void started(struct mrt_sql_store *store, struct mrt_native_link *link,
                    struct mrt_sql_request *request)
{
    if (request->event.type != MRT_VIEW) {
        if (request->event.type == MRT_UNKNOWN)
            mrt_sql_fail(store, request, MORTISE_EUNREACHABLE, "%s", link->store.fault);
        else
            answer(store, request, request->event.type);
        return;
    }
    store->form->session = request->command.session;
    store->form->started = true;
    request->event.lease = store->address.lease;
    answer(store, request, MRT_STARTED);
}

static void proved(struct mrt_sql_store *store, struct mrt_native_link *link,
                   struct mrt_sql_request *request, mrt_time now)
{
    enum mrt_command_type type = request->command.type;
    bool sure = shows(link, request, type != MRT_START && link->state != MRT_NATIVE_FREE);
    if (type == MRT_START) {
        started(store, link, request);
    } else if (type == MRT_RENEW) {
        if (request->begun >= store->form->renewed) /* not that of one there was no memory for */
            link->proves = false;
        mrt_sql_request_free(request);
        if (!sure && link->state == MRT_NATIVE_HELD)
            lose(store, link);
    } else if (sure) {
        granted(store, link, request, now);
    } else {
        if (request->event.type == MRT_VIEW) /* an answer, but no grant */
            request->event.type = MRT_UNKNOWN;
        failed(store, link, request);
    }
}

/* After the first grant: some servers have the functions, and lock nothing. */
static void seen(struct mrt_sql_store *store, struct mrt_native_link *link,
                 struct mrt_sql_request *request, mrt_time now)
{
    if (shows(link, request, true)) {
        store->form->shown = true;
        granted(store, link, request, now);
        return;
    }
    if (request->event.type == MRT_VIEW && link->store.broken) {
        request->event.type = MRT_UNKNOWN; /* shows has said why */
    } else if (request->event.type == MRT_VIEW) {
        request->event = (struct mrt_event){.type = MRT_FAILED, .error = MORTISE_ENOTSUPPORTED};
        snprintf(request->detail, sizeof request->detail,
                 "%s: the server grants locks of this form and does not show them: it may only "
                 "pretend to lock; use a store without form=",
                 mrt_sql_product);
    }
    failed(store, link, request);
}

static void looked(struct mrt_sql_store *store, struct mrt_native_link *link,
                   struct mrt_sql_request *request, mrt_time now)
{
    if (link->state == MRT_NATIVE_PROVING) {
        seen(store, link, request, now);
        return;
    }
    if (shows(link, request, true)) {
        mrt_native_link_view(store, link, request, true);
        return;
    }
    answer(store, request, MRT_GONE);
    if (link->state == MRT_NATIVE_HELD)
        forget_ticket(store, link);
    sever(link);
}

/* A lock that was released but not found is held by another connection, that of a pooler. */
static void left(struct mrt_sql_store *store, struct mrt_native_link *link,
                 struct mrt_sql_request *request)
{
    bool sure = request->event.type == MRT_VIEW && (is_row(store) || mrt_sql_number(request, 0));
    answer(store, request, MRT_REMOVED);
    if (link->state == MRT_NATIVE_LEAVING)
        forget_ticket(store, link);
    if (!sure)
        sever(link);
}

static void finished(struct mrt_sql_store *store, struct mrt_native_link *link,
                     struct mrt_sql_request *request, mrt_time now)
{
    switch (step_of(store, request)) {
    case MRT_NATIVE_LEAVE:
        left(store, link, request);
        break;
    case MRT_NATIVE_KILL: /* in each case the wait ends */
        link->kills--;
        mrt_sql_request_free(request);
        break;
    case MRT_NATIVE_PROVE:
        proved(store, link, request, now);
        break;
    case MRT_NATIVE_LOOK:
    case MRT_NATIVE_LIGHTEN:
        looked(store, link, request, now);
        break;
    default:
        asked(store, link, request, now);
    }
}

static void drain(struct mrt_sql_store *store, struct mrt_native_link *link, mrt_time now)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(&link->store.outbox))) {
        TAILQ_REMOVE(&link->store.outbox, request, link);
        finished(store, link, request, now);
    }
}

/* ------------------------------------------------------------------ turns */

/* The connection is gone, and with it all that was asked and had. */
static void broke(struct mrt_sql_store *store, struct mrt_native_link *link, mrt_time now)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(&link->store.waiting))) {
        TAILQ_REMOVE(&link->store.waiting, request, link);
        finish_lost(&link->store, request);
    }
    drain(store, link, now);
    if (link->state == MRT_NATIVE_HELD)
        lose(store, link);
    link->connected = link->proves = link->store.broken = false;
    link->store.failures = 0;
}

static void kill_wait(struct mrt_sql_store *store, const struct mrt_native_link *link, mrt_time now)
{
    uint64_t number = mrt_sql_driver_to_kill(&link->store);
    struct mrt_sql_request *request = number ? mrt_sql_request_new(store->form->first) : NULL;
    struct mrt_native_link *other = request ? mrt_native_link_take(store, NULL) : NULL;
    if (!other) {
        mrt_sql_request_free(request);
        return;
    }
    request->number = number;
    other->kills++;
    mrt_native_link_send(store, other, request, MRT_NATIVE_KILL, now);
}

void mrt_native_link_end(struct mrt_sql_store *store, struct mrt_native_link *link, mrt_time now)
{
    const struct mrt_sql_request *asked = TAILQ_FIRST(&link->store.sent);
    if (asked && step_of(store, asked) == MRT_NATIVE_WAIT)
        kill_wait(store, link, now);
    mrt_sql_drop(&link->store, now);
    broke(store, link, now);
    forget_ticket(store, link);
}

void mrt_native_link_turn(struct mrt_sql_store *store, struct mrt_native_link *link, mrt_time now)
{
    unsigned failures = link->store.failures;
    do {
        link->fresh = false;
        mrt_sql_turn(&link->store, now);
        drain(store, link, now);
    } while (link->fresh);
    if (link->store.broken) /* for a reason of ours */
        mrt_sql_drop(&link->store, now);
    if (link->connected && link->store.state != MRT_SQL_READY)
        broke(store, link, now);
    else if (link->store.failures > failures && link->store.error)
        mrt_sql_tell_fault(store, &link->store);
    drain(store, link, now);
    link->connected = link->store.state == MRT_SQL_READY;
}
