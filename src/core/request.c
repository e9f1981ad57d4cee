/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the store that need no ticket: reading the first ticket of a queue, and reading and
 * writing cells. A request has a waiter, which gets one answer. An observer has no waiter: it
 * looks until it is ended, and gets each answer that brings news.
 *
 *   WANTED -> SENT -> (done)            -> PAUSED -> WANTED       it failed, or its outcome is
 * unknown SENT -> IDLE -> WANTED ...          an observer: CHANGED came, or its recheck is due
 *
 * Invariants:
 *  - A request needs a session, but not always the same: it outlives the session that it was sent
 * in.
 *  - A write keeps its identity however often it is sent, so the store recognises a write that
 *    has been done. If the store cannot (another client has written since), or no caller waits for
 *    the answer any longer, the outcome is reported as unknown.
 *  - The memory of a fetched command stays until it is answered (ended).
 *  - An observer that is not sent has a timer or waits for a session: it always looks again after
 *    what it saw last.
 */
#include "core/request.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/outbox.h"
#include "core/session.h"
#include "core/waiter.h"

#include <stdlib.h>
#include <string.h>

static struct mrt_request *request_of(struct mrt_command *command)
{
    return (struct mrt_request *)((char *)command - offsetof(struct mrt_request, command));
}

static struct mrt_request *make(struct mrt_engine *engine, const struct mrt_command *wanted)
{
    size_t name = strlen(wanted->queue) + 1;
    struct mrt_request *request = calloc(1, sizeof *request + name + wanted->value_size);
    if (!request)
        return NULL;
    request->engine = engine;
    request->timer.kind = MRT_TIMER_REQUEST;
    request->state = MRT_REQUEST_WANTED;
    request->command = *wanted;
    request->command.ticket = mrt_engine_identity(engine);
    memcpy(request->bytes, wanted->queue, name);
    request->command.queue = request->bytes;
    if (wanted->value) {
        memcpy(request->bytes + name, wanted->value, wanted->value_size);
        request->command.value = request->bytes + name;
    }
    TAILQ_INSERT_TAIL(&engine->requests, request, link);
    return request;
}

static void discard(struct mrt_request *request)
{
    MRT_ASSERT(!request->telling && !request->command.queued && !request->command.outstanding);
    struct mrt_engine *engine = request->engine;
    mrt_heap_clear(&engine->timers, &request->timer);
    TAILQ_REMOVE(&engine->requests, request, link);
    free(request);
}

/* Its waiter or observer has ended. */
static void give_up(struct mrt_request *request)
{
    MRT_ASSERT(!request->ended);
    if (request->telling)
        TAILQ_REMOVE(&request->engine->observed, request, observed_link);
    request->telling = false;
    request->waiter = NULL;
    request->ended = true;
    mrt_engine_unsend(request->engine, &request->command);
    if (!request->command.outstanding)
        discard(request);
}

/* ------------------------------------------------------------------ sending */

static void serve(struct mrt_request *request)
{
    struct mrt_engine *engine = request->engine;
    if (request->state != MRT_REQUEST_WANTED || engine->closing)
        return;
    if (engine->session.state != MRT_SESSION_LIVE) {
        mrt_session_need(engine);
        return;
    }
    mrt_heap_clear(&engine->timers, &request->timer);
    request->state = MRT_REQUEST_SENT;
    request->command.session = engine->session.id;
    mrt_engine_send(engine, &request->command, request->command.type);
}

void mrt_requests_serve(struct mrt_engine *engine)
{
    struct mrt_request *request;
    TAILQ_FOREACH (request, &engine->requests, link)
        serve(request);
}

void mrt_requests_recall(struct mrt_engine *engine)
{
    struct mrt_request *request;
    TAILQ_FOREACH (request, &engine->requests, link)
        if (mrt_engine_unsend(engine, &request->command) || request->state == MRT_REQUEST_IDLE)
            request->state =
                MRT_REQUEST_WANTED; /* an observer of that session gets no CHANGED any more */
        else
            request->again =
                request->state == MRT_REQUEST_SENT; /* nor after the answer that is still to come */
}

static void want(struct mrt_request *request)
{
    MRT_ASSERT(!request->ended && !request->command.queued);
    request->state = MRT_REQUEST_WANTED;
    serve(request);
}

static void again_later(struct mrt_request *request, mrt_time now)
{
    MRT_ASSERT(!request->ended && !request->command.queued);
    struct mrt_engine *engine = request->engine;
    mrt_time pause = mrt_engine_pause(engine, request->attempts++);
    request->state = MRT_REQUEST_PAUSED;
    mrt_heap_set(&engine->timers, &request->timer, mrt_time_add(now, pause));
}

void mrt_request_timer(struct mrt_request *request)
{
    MRT_ASSERT(request->state != MRT_REQUEST_SENT);
    want(request);
}

void mrt_request_unsubmitted(struct mrt_engine *engine, struct mrt_command *command)
{
    struct mrt_request *request = request_of(command);
    MRT_ASSERT(request->state == MRT_REQUEST_SENT);
    if (request->ended) {
        mrt_engine_unsend(engine, command);
        discard(request);
    } else if (!mrt_id_equal(command->session, engine->session.id) ||
               engine->session.state != MRT_SESSION_LIVE) {
        mrt_engine_unsend(engine, command);
        want(request);
    }
}

/* ------------------------------------------------------------------ the end */

static void finish(struct mrt_request *request, int error)
{
    MRT_ASSERT(request->waiter && !request->observer);
    struct mrt_waiter *waiter = request->waiter;
    waiter->request = NULL;
    if (error == MORTISE_OK)
        *request->result = request->answer;
    else if (request->outcome_unknown)
        error = MORTISE_EUNKNOWN;
    give_up(request);
    mrt_waiter_end(waiter, error);
}

void mrt_request_cancel(struct mrt_waiter *waiter, int error)
{
    MRT_ASSERT(waiter->request->waiter == waiter);
    struct mrt_request *request = waiter->request;
    request->outcome_unknown |=
        request->command.outstanding && request->command.type == MRT_CELL_SET;
    finish(request, error);
}

void mrt_requests_fail(struct mrt_engine *engine, int error, mrt_time now)
{
    struct mrt_request *request, *next;
    TAILQ_FOREACH_SAFE (request, &engine->requests, link, next) {
        if (request->waiter)
            mrt_request_cancel(request->waiter, error);
        else if (request->state == MRT_REQUEST_WANTED)
            again_later(request, now);
    }
}

void mrt_requests_refused(struct mrt_engine *engine)
{
    struct mrt_request *request, *next;
    TAILQ_FOREACH_SAFE (request, &engine->requests, link, next)
        if (request->waiter && request->command.once)
            mrt_request_cancel(request->waiter, MORTISE_EUNREACHABLE);
}

void mrt_requests_free(struct mrt_engine *engine)
{
    struct mrt_request *request, *next;
    TAILQ_FOREACH_SAFE (request, &engine->requests, link, next)
        free(request);
}

/* ------------------------------------------------------------------ answers */

/* Whether an answer brings nothing new. */
static bool is_known(const struct mrt_request *request, const struct mrt_event *event)
{
    const struct mrt_answer *known = &request->answer;
    return request->known && known->fence == event->fence &&
           known->value_size == event->value_size &&
           memcmp(known->value, event->value ? event->value : "", event->value_size) == 0;
}

static void keep(struct mrt_answer *answer, const struct mrt_event *event)
{
    MRT_ASSERT(event->value_size <= sizeof answer->value);
    answer->version = event->version;
    answer->fence = event->fence;
    answer->value_size = event->value_size;
    if (event->value_size > 0)
        memcpy(answer->value, event->value, event->value_size);
}

static void observed(struct mrt_request *request, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(request->observer && !request->waiter);
    struct mrt_engine *engine = request->engine;
    bool news = !is_known(request, event);
    keep(&request->answer, event);
    request->known = true;
    request->attempts = 0;
    if (news && !request->telling) {
        TAILQ_INSERT_TAIL(&engine->observed, request, observed_link);
        request->telling = true;
    }
    request->state = MRT_REQUEST_IDLE;
    mrt_heap_set(&engine->timers, &request->timer,
                 mrt_time_add(now, mrt_engine_recheck(engine, event->recheck)));
    bool again = request->again;
    request->again = false;
    if (again)
        want(request);
}

static bool is_final(const struct mrt_request *request, const struct mrt_event *event)
{
    return !request->observer && event->type == MRT_FAILED && event->error != MORTISE_ELOST &&
           (mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY ||
            request->attempts >= request->engine->config.attempts_max);
}

void mrt_request_answer(struct mrt_engine *engine, struct mrt_command *command,
                        const struct mrt_event *event, mrt_time now)
{
    struct mrt_request *request = request_of(command);
    bool answered = event->type == MRT_HOLDER || event->type == MRT_CELL;
    MRT_ASSERT(request->engine == engine);
    if (request->ended) {
        discard(request);
    } else if (answered && request->observer) {
        observed(request, event, now);
    } else if (answered) {
        keep(&request->answer, event);
        finish(request, MORTISE_OK);
    } else if (is_final(request, event)) {
        finish(request, event->error);
    } else {
        request->outcome_unknown |= event->type == MRT_UNKNOWN && command->type == MRT_CELL_SET;
        again_later(request, now);
    }
}

void mrt_request_changed(struct mrt_engine *engine, struct mrt_id id)
{
    struct mrt_request *request;
    TAILQ_FOREACH (request, &engine->requests, link)
        if (mrt_id_equal(request->command.ticket, id))
            break;
    if (!request)
        return;
    if (request->state == MRT_REQUEST_SENT)
        request->again = true;
    else if (request->state == MRT_REQUEST_IDLE)
        want(request);
}

/* ------------------------------------------------------------------ beginning */

void mrt_request_begin(struct mrt_engine *engine, const struct mrt_command *wanted,
                       struct mrt_answer *answer, struct mrt_waiter *waiter)
{
    waiter->request = engine->closing ? NULL : make(engine, wanted);
    if (!waiter->request) {
        waiter->state = MRT_WAITER_DONE;
        waiter->error = engine->closing ? MORTISE_ECLOSED : MORTISE_ENOMEM;
        return;
    }
    waiter->request->waiter = waiter;
    waiter->request->result = answer;
    waiter->timer.kind = MRT_TIMER_WAITER;
    if (waiter->deadline != MRT_TIME_NEVER)
        mrt_heap_set(&engine->timers, &waiter->timer, waiter->deadline);
    serve(waiter->request);
}

struct mrt_request *mrt_engine_observe(struct mrt_engine *engine, const char *queue, void *host)
{
    const struct mrt_command wanted = {.type = MRT_OBSERVE, .queue = queue};
    struct mrt_request *observer = make(engine, &wanted);
    if (!observer)
        return NULL;
    observer->observer = true;
    observer->host = host;
    serve(observer);
    return observer;
}

void mrt_observer_end(struct mrt_request *observer)
{
    MRT_ASSERT(observer->observer);
    give_up(observer);
}

void *mrt_observer_host(const struct mrt_request *observer)
{
    return observer->host;
}

const struct mrt_answer *mrt_observer_holder(const struct mrt_request *observer)
{
    return &observer->answer;
}

struct mrt_request *mrt_engine_next_observed(struct mrt_engine *engine)
{
    struct mrt_request *observer = TAILQ_FIRST(&engine->observed);
    if (observer) {
        TAILQ_REMOVE(&engine->observed, observer, observed_link);
        MRT_ASSERT(observer->known && !observer->ended);
        observer->telling = false;
    }
    return observer;
}
