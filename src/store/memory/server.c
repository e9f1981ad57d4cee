/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory store's server. Tickets are found by identity, queues by name,
 * sessions by identity; lists keep the order, so a walk never depends on a hash.
 *
 * Only what can be granted is walked: a walk stops where the weight ahead exceeds
 * the capacity, so a command costs the same whatever the length of its queue.
 */
#include "store/memory/server.h"

#include "base/assert.h"
#include "core/rule.h"
#include "store/kit/refusal.h"
#include "store/memory/server_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mrt_memory_server *mrt_memory_server_new(const struct mrt_memory_config *config)
{
    struct mrt_memory_server *server = calloc(1, sizeof *server);
    if (!server)
        return NULL;
    server->config = *config;
    server->next_fence = config->first_fence;
    TAILQ_INIT(&server->sessions);
    TAILQ_INIT(&server->queues);
    TAILQ_INIT(&server->observers);
    TAILQ_INIT(&server->nobody.tickets);
    server->nobody.expires = MRT_TIME_NEVER;
    return server;
}

/* ------------------------------------------------------------- parts */

struct session *mrt_memory_find_session(const struct mrt_memory_server *server, struct mrt_id id)
{
    struct session *session = NULL;
    HASH_FIND(hh, server->sessions_by_id, &id, sizeof id, session);
    return session;
}

/* A ticket of this session; NULL for a ticket of another one. */
struct ticket *mrt_memory_find_ticket(const struct mrt_memory_server *server,
                                      const struct mrt_command *command)
{
    struct ticket *ticket = NULL;
    HASH_FIND(hh, server->tickets_by_id, &command->ticket, sizeof command->ticket, ticket);
    if (!ticket || !mrt_id_equal(ticket->session->id, command->session))
        return NULL;
    return strcmp(ticket->queue->name, command->queue) == 0 ? ticket : NULL;
}

struct queue *mrt_memory_find_queue(const struct mrt_memory_server *server, const char *name)
{
    struct queue *queue = NULL;
    HASH_FIND_STR(server->queues_by_name, name, queue);
    return queue;
}

static void free_queue(struct queue *queue)
{
    free(queue->name);
    free(queue->kind);
    free(queue);
}

static struct queue *make_queue(struct mrt_memory_server *server, const struct mrt_command *command)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    TAILQ_INIT(&queue->tickets);
    queue->capacity = command->capacity;
    queue->name = strdup(command->queue);
    queue->kind = strdup(command->kind);
    struct queue *added = queue;
    if (queue->name && queue->kind)
        HASH_ADD_KEYPTR(hh, server->queues_by_name, queue->name, strlen(queue->name), added);
    else
        added = NULL;
    if (!added) {
        free_queue(queue);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&server->queues, queue, link);
    return queue;
}

static void drop_queue_if_empty(struct mrt_memory_server *server, struct queue *queue)
{
    if (!TAILQ_EMPTY(&queue->tickets))
        return;
    HASH_DEL(server->queues_by_name, queue);
    TAILQ_REMOVE(&server->queues, queue, link);
    free_queue(queue);
}

uint64_t mrt_memory_weight_ahead(const struct ticket *ticket)
{
    uint64_t sum = 0;
    const struct ticket *ahead;
    TAILQ_FOREACH (ahead, &ticket->queue->tickets, link) {
        if (ahead == ticket || sum > ticket->queue->capacity)
            break;
        if (__builtin_add_overflow(sum, ahead->weight, &sum))
            return UINT64_MAX;
    }
    return sum;
}

static uint64_t tickets_ahead(const struct ticket *ticket)
{
    uint64_t count = 0;
    while ((ticket = TAILQ_PREV(ticket, ticket_list, link)))
        count++;
    return count;
}

/* ------------------------------------------------------------- events */

static void emit(const struct mrt_memory_sink *sink, void *peer, const struct mrt_event *event)
{
    sink->emit(sink->context, peer, event);
}

static void answer(const struct mrt_memory_sink *sink, void *peer,
                   const struct mrt_command *command, enum mrt_event_type type)
{
    struct mrt_event event = mrt_answer_to(command, type);
    emit(sink, peer, &event);
}

static void answer_failed(const struct mrt_memory_sink *sink, void *peer,
                          const struct mrt_command *command, int error, const char *detail)
{
    struct mrt_event event = mrt_answer_to(command, MRT_FAILED);
    event.error = error;
    event.detail = detail;
    emit(sink, peer, &event);
}

static void answer_view(const struct mrt_memory_server *server, const struct mrt_memory_sink *sink,
                        void *peer, const struct mrt_command *command, const struct ticket *ticket,
                        mrt_time now)
{
    struct mrt_event event = mrt_answer_to(command, MRT_VIEW);
    event.fence = ticket->fence;
    event.fence_span = server->config.fence_span;
    event.weight_ahead = mrt_memory_weight_ahead(ticket);
    event.others_behind = TAILQ_NEXT(ticket, link) != NULL;
    event.recheck = mrt_memory_recheck(server, ticket, now);
    event.revoked = ticket->revoked;
    event.place = command->wants_place ? tickets_ahead(ticket) : 0;
    emit(sink, peer, &event);
}

static void tell_session_lost(const struct mrt_memory_sink *sink, void *peer, struct mrt_id id)
{
    struct mrt_event event = {.type = MRT_SESSION_LOST, .session = id, .error = MORTISE_ELOST};
    emit(sink, peer, &event);
}

bool mrt_memory_grants_behind(const struct ticket *ticket, uint64_t ahead, uint64_t more)
{
    return !__builtin_add_overflow(ahead, more, &ahead) &&
           mrt_rule_grants(ahead, ticket->weight, ticket->queue->capacity);
}

/* Wakes the tickets that a departure of `weight` at `fence` has made grantable. */
static void wake_followers(const struct queue *queue, uint64_t fence, uint64_t weight,
                           const struct mrt_memory_sink *sink)
{
    uint64_t sum = 0;
    const struct ticket *ticket;
    TAILQ_FOREACH (ticket, &queue->tickets, link) {
        if (ticket->fence > fence && mrt_memory_grants_behind(ticket, sum, 0) &&
            !mrt_memory_grants_behind(ticket, sum, weight)) {
            struct mrt_event event = {
                .type = MRT_WAKE, .session = ticket->session->id, .ticket = ticket->id};
            emit(sink, ticket->session->peer, &event);
        }
        if (__builtin_add_overflow(sum, ticket->weight, &sum) || sum > queue->capacity)
            return;
    }
}

/* ------------------------------------------------------------- changes */

static void free_ticket(struct ticket *ticket)
{
    free(ticket->value);
    free(ticket);
}

static void unlink_ticket(struct mrt_memory_server *server, struct ticket *ticket)
{
    HASH_DEL(server->tickets_by_id, ticket);
    TAILQ_REMOVE(&ticket->queue->tickets, ticket, link);
    TAILQ_REMOVE(&ticket->session->tickets, ticket, session_link);
}

void mrt_memory_remove_ticket(struct mrt_memory_server *server, struct ticket *ticket,
                              const struct mrt_memory_sink *sink)
{
    struct queue *queue = ticket->queue;
    bool first = TAILQ_FIRST(&queue->tickets) == ticket;
    unlink_ticket(server, ticket);
    wake_followers(queue, ticket->fence, ticket->weight, sink);
    if (first)
        mrt_memory_tell_observers(server, queue->name, sink);
    drop_queue_if_empty(server, queue);
    free_ticket(ticket);
}

static void lighten_ticket(struct ticket *ticket, uint64_t weight,
                           const struct mrt_memory_sink *sink)
{
    if (weight >= ticket->weight)
        return;
    uint64_t less = ticket->weight - weight;
    ticket->weight = weight;
    wake_followers(ticket->queue, ticket->fence, less, sink);
}

/* `died`: when; MRT_TIME_NEVER: it was stopped. */
static void end_session(struct mrt_memory_server *server, struct session *session, mrt_time died,
                        const struct mrt_memory_sink *sink)
{
    struct ticket *ticket;
    mrt_memory_forget_observers(server, session);
    if (died != MRT_TIME_NEVER)
        mrt_memory_leave_behind(server, session, died, sink);
    while ((ticket = TAILQ_FIRST(&session->tickets)))
        mrt_memory_remove_ticket(server, ticket, sink);
    MRT_ASSERT(server->sessions_by_id);
    HASH_DEL(server->sessions_by_id, session);
    TAILQ_REMOVE(&server->sessions, session, link);
    free(session);
}

static bool open_session(struct mrt_memory_server *server, struct mrt_id id, void *peer)
{
    struct session *session = calloc(1, sizeof *session), *added = session;
    if (!session)
        return false;
    session->id = id;
    session->peer = peer;
    session->expires = MRT_TIME_NEVER;
    TAILQ_INIT(&session->tickets);
    HASH_ADD(hh, server->sessions_by_id, id, sizeof session->id, added);
    if (!added) {
        free(session);
        return false;
    }
    TAILQ_INSERT_TAIL(&server->sessions, session, link);
    return true;
}

static void prove(struct mrt_memory_server *server, struct session *session, mrt_time now)
{
    if (server->config.lease > 0)
        session->expires = mrt_time_add(now, server->config.lease);
}

/* Puts a ticket at the end of its queue. */
static void enqueue(struct queue *queue, struct ticket *ticket)
{
    TAILQ_INSERT_TAIL(&queue->tickets, ticket, link);
}

static struct ticket *add_ticket(struct mrt_memory_server *server, struct queue *queue,
                                 struct session *session, const struct mrt_command *command,
                                 mrt_time now)
{
    struct ticket *ticket = calloc(1, sizeof *ticket), *added = ticket;
    if (!ticket)
        return NULL;
    ticket->id = command->ticket;
    ticket->session = session;
    ticket->queue = queue;
    ticket->weight = command->weight;
    ticket->linger = command->linger;
    ticket->delay = command->delay;
    ticket->since = now;
    if (!command->value || mrt_memory_set_value(ticket, command))
        HASH_ADD(hh, server->tickets_by_id, id, sizeof ticket->id, added);
    else
        added = NULL;
    if (!added) {
        free_ticket(ticket);
        return NULL;
    }
    ticket->fence = server->next_fence;
    server->next_fence += server->config.fence_span;
    enqueue(queue, ticket);
    TAILQ_INSERT_TAIL(&session->tickets, ticket, session_link);
    return ticket;
}

/* ------------------------------------------------------------- commands */

/* Answers a command whose session has ended. */
static void refuse(const struct mrt_memory_sink *sink, void *peer,
                   const struct mrt_command *command)
{
    const struct mrt_event event = mrt_answer_ended(command);
    if (command->type != MRT_REMOVE)
        tell_session_lost(sink, peer, command->session);
    emit(sink, peer, &event);
}

static void start(struct mrt_memory_server *server, const struct mrt_command *command, void *peer,
                  mrt_time now, const struct mrt_memory_sink *sink)
{
    if (!mrt_memory_find_session(server, command->session) &&
        !open_session(server, command->session, peer)) {
        answer_failed(sink, peer, command, MORTISE_ENOMEM, NULL);
        return;
    }
    prove(server, mrt_memory_find_session(server, command->session), now);
    struct mrt_event event = mrt_answer_to(command, MRT_STARTED);
    event.lease = server->config.lease;
    emit(sink, peer, &event);
}

/* Whether `most` tickets wait already, the newest not counted. */
static bool crowded(const struct queue *queue, const struct ticket *newest, uint64_t most)
{
    uint64_t ahead = 0, waiting = 0;
    const struct ticket *ticket;
    TAILQ_FOREACH (ticket, &queue->tickets, link) {
        if (ticket != newest &&
            (waiting > 0 || !mrt_rule_grants(ahead, ticket->weight, queue->capacity)))
            waiting++;
        ahead += ticket->weight;
    }
    return waiting >= most;
}

static void refuse_kind(const struct mrt_memory_sink *sink, void *peer,
                        const struct mrt_command *command, const struct queue *queue)
{
    char detail[MRT_JOB_DETAIL_SIZE];
    snprintf(detail, sizeof detail, MRT_REFUSAL_MISMATCH, queue->name, queue->kind, queue->capacity,
             command->kind, command->capacity);
    answer_failed(sink, peer, command, MORTISE_EMISMATCH, detail);
}

/* Tells holders that asked for it that another waits. */
static void tell_lingering(const struct queue *queue, const struct mrt_memory_sink *sink)
{
    const struct ticket *ticket;
    uint64_t ahead = 0;
    TAILQ_FOREACH (ticket, &queue->tickets, link) {
        const struct mrt_event event = {
            .type = MRT_WAKE, .session = ticket->session->id, .ticket = ticket->id};
        if (!mrt_memory_grants_behind(ticket, ahead, 0))
            return;
        if (ticket->linger)
            emit(sink, ticket->session->peer, &event);
        ahead += ticket->weight;
    }
}

static void append_new(struct mrt_memory_server *server, const struct mrt_command *command,
                       struct session *session, mrt_time now, const struct mrt_memory_sink *sink)
{
    struct queue *queue = mrt_memory_find_queue(server, command->queue);
    if (queue &&
        (queue->capacity != command->capacity || strcmp(queue->kind, command->kind) != 0)) {
        refuse_kind(sink, session->peer, command, queue);
        return;
    }
    if (!queue)
        queue = make_queue(server, command);
    struct ticket *ticket = queue ? add_ticket(server, queue, session, command, now) : NULL;
    if (!ticket) {
        if (queue)
            drop_queue_if_empty(server, queue);
        answer_failed(sink, session->peer, command, MORTISE_ENOMEM, NULL);
        return;
    }
    bool waits = !mrt_rule_grants(mrt_memory_weight_ahead(ticket), ticket->weight, queue->capacity);
    bool full = waits && command->queue_max > 0 && crowded(queue, ticket, command->queue_max);
    if (waits && (command->try_only || full)) {
        unlink_ticket(server, ticket); /* it was the last, so nobody needs to be woken */
        drop_queue_if_empty(server, queue);
        free_ticket(ticket);
        if (command->try_only)
            answer(sink, session->peer, command, MRT_BLOCKED);
        else
            answer_failed(sink, session->peer, command, MORTISE_EFULL, NULL);
        return;
    }
    if (TAILQ_FIRST(&queue->tickets) == ticket)
        mrt_memory_tell_observers(server, queue->name, sink);
    if (waits)
        tell_lingering(queue, sink);
    answer_view(server, sink, session->peer, command, ticket, now);
}

static void change_value(struct mrt_memory_server *server, const struct mrt_command *command,
                         struct ticket *ticket, mrt_time now, const struct mrt_memory_sink *sink)
{
    if (!mrt_memory_set_value(ticket, command)) {
        answer_failed(sink, ticket->session->peer, command, MORTISE_ENOMEM, NULL);
        return;
    }
    if (TAILQ_FIRST(&ticket->queue->tickets) == ticket)
        mrt_memory_tell_observers(server, ticket->queue->name, sink);
    answer_view(server, sink, ticket->session->peer, command, ticket, now);
}

/* A ticket changes hands: DETACH, or APPEND with `adopt`. */
static void change_hands(struct mrt_memory_server *server, const struct mrt_command *command,
                         struct session *session, mrt_time now, const struct mrt_memory_sink *sink)
{
    struct ticket *ticket = NULL;
    bool detach = command->type == MRT_DETACH;
    int error = detach ? mrt_memory_detach(server, command, &ticket)
                       : mrt_memory_adopt(server, command, session, &ticket);
    if (detach && error == MORTISE_ENOTHELD) {
        answer(sink, session->peer, command, MRT_GONE);
    } else if (error != MORTISE_OK) {
        answer_failed(sink, session->peer, command, error,
                      error == MORTISE_EMISMATCH ? MRT_REFUSAL_ADOPT : NULL);
    } else {
        if (detach)
            lighten_ticket(ticket, command->weight, sink);
        answer_view(server, sink, session->peer, command, ticket, now);
    }
}

/* Applies a command that concerns no ticket; false: it concerns one. */
static bool apply_other(struct mrt_memory_server *server, const struct mrt_command *command,
                        struct session *session, mrt_time now, const struct mrt_memory_sink *sink)
{
    struct mrt_event event = mrt_answer_to(command, MRT_CELL);
    switch (command->type) {
    case MRT_RENEW:
        prove(server, session, now);
        answer(sink, session->peer, command, MRT_RENEWED);
        return true;
    case MRT_OBSERVE:
        event.type = MRT_HOLDER;
        mrt_memory_observe(server, command, session, &event);
        emit(sink, session->peer, &event);
        return true;
    case MRT_CELL_GET:
    case MRT_CELL_SET:
        mrt_memory_cell_apply(&server->cells, command, &event);
        emit(sink, session->peer, &event);
        return true;
    default:
        return false;
    }
}

/* Everything but START and STOP of a session that is open. */
static void apply_within(struct mrt_memory_server *server, const struct mrt_command *command,
                         struct session *session, mrt_time now, const struct mrt_memory_sink *sink)
{
    if (apply_other(server, command, session, now, sink))
        return;
    struct ticket *ticket = mrt_memory_find_ticket(server, command);
    if (command->type == MRT_REMOVE) {
        if (ticket)
            mrt_memory_remove_ticket(server, ticket, sink);
        answer(sink, session->peer, command, MRT_REMOVED);
    } else if (command->type == MRT_DETACH || (command->adopt && !ticket)) {
        change_hands(server, command, session, now, sink);
    } else if (ticket && command->type == MRT_SET_VALUE) {
        change_value(server, command, ticket, now, sink);
    } else if (ticket) {
        if (command->type == MRT_LIGHTEN)
            lighten_ticket(ticket, command->weight, sink);
        answer_view(server, sink, session->peer, command, ticket, now);
    } else if (command->type == MRT_APPEND) {
        append_new(server, command, session, now, sink);
    } else {
        answer(sink, session->peer, command, MRT_GONE);
    }
}

void mrt_memory_server_apply(struct mrt_memory_server *server, const struct mrt_command *command,
                             void *peer, mrt_time now, const struct mrt_memory_sink *sink)
{
    struct session *session = mrt_memory_find_session(server, command->session);
    if (command->type == MRT_START) {
        start(server, command, peer, now, sink);
    } else if (command->type == MRT_STOP) {
        if (session)
            end_session(server, session, command->died ? now : MRT_TIME_NEVER, sink);
        answer(sink, peer, command, MRT_STOPPED);
    } else if (session) {
        apply_within(server, command, session, now, sink);
    } else {
        refuse(sink, peer, command);
    }
}

/* ------------------------------------------------------------- time and death */

mrt_time mrt_memory_server_next(const struct mrt_memory_server *server)
{
    mrt_time next = mrt_memory_next_delay(server);
    const struct session *session;
    TAILQ_FOREACH (session, &server->sessions, link)
        next = mrt_time_min(next, session->expires);
    return next;
}

void mrt_memory_server_expire(struct mrt_memory_server *server, mrt_time now,
                              const struct mrt_memory_sink *sink)
{
    struct session *session, *next;
    for (session = TAILQ_FIRST(&server->sessions); session; session = next) {
        next = TAILQ_NEXT(session, link);
        if (session->expires > now)
            continue;
        tell_session_lost(sink, session->peer, session->id);
        end_session(server, session, session->expires, sink);
    }
    mrt_memory_end_delays(server, now, sink);
}

void mrt_memory_server_drop(struct mrt_memory_server *server, const void *peer, mrt_time now,
                            const struct mrt_memory_sink *sink)
{
    struct session *session, *next;
    for (session = TAILQ_FIRST(&server->sessions); session; session = next) {
        next = TAILQ_NEXT(session, link);
        if (session->peer == peer)
            end_session(server, session, now, sink);
    }
}

static void discard(void *context, void *peer, const struct mrt_event *event)
{
    (void)context, (void)peer, (void)event;
}

void mrt_memory_server_free(struct mrt_memory_server *server)
{
    if (!server)
        return;
    const struct mrt_memory_sink nobody = {.emit = discard};
    struct session *session;
    struct ticket *ticket;
    while ((session = TAILQ_FIRST(&server->sessions)))
        end_session(server, session, MRT_TIME_NEVER, &nobody);
    while ((ticket = TAILQ_FIRST(&server->nobody.tickets)))
        mrt_memory_remove_ticket(server, ticket, &nobody);
    mrt_memory_cells_free(&server->cells);
    free(server);
}
