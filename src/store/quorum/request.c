/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to members. A member is never called from inside its deliver, so its answer is kept in
 * the request until that call has returned; this needs no memory, so no answer is ever lost.
 *
 * The end of a session and the removal of a claim must be proven: they are repeated until they are.
 * Invariant: a request is in the store's list from its sending until it is acted upon, and owns its
 * texts.
 */
#include "store/quorum/request.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_PAUSE (100 * MRT_MILLISECOND)
#define PATIENCE (5 * MRT_MILLISECOND)
#define ANSWER_DEFAULT (50 * MRT_MILLISECOND) /* at most a fiftieth of the lease */
#define ANSWER_LEAST (5 * MRT_MILLISECOND)    /* but by default no less */

/* Waiting for members that do not answer eats into what a lock is valid for. The lease is not known
   before a session is. */
mrt_time mrt_quorum_limit(const struct mrt_quorum_store *store)
{
    if (store->limit > 0)
        return store->limit;
    mrt_time part = store->lease / 50;
    if (part == 0 || part > ANSWER_DEFAULT)
        return ANSWER_DEFAULT;
    return part > ANSWER_LEAST ? part : ANSWER_LEAST;
}

struct mrt_quorum_request *mrt_quorum_request_new(struct mrt_quorum_member *member,
                                                  const char *queue)
{
    size_t size = queue ? strlen(queue) + 1 : 0;
    struct mrt_quorum_request *request = calloc(1, sizeof *request + size);
    if (!request)
        return NULL;
    request->member = member;
    if (size > 0)
        memcpy(request->queue, queue, size);
    return request;
}

void mrt_quorum_request_drop(struct mrt_quorum_store *store, struct mrt_quorum_request *request)
{
    TAILQ_REMOVE(&store->requests, request, link);
    free(request);
}

static void add(struct mrt_quorum_request *request, const struct mrt_command *command)
{
    request->command = *command;
    if (command->queue)
        request->command.queue = request->queue;
    TAILQ_INSERT_TAIL(&request->member->quorum->requests, request, link);
}

static bool submit(struct mrt_quorum_request *request)
{
    struct mrt_quorum_member *member = request->member;
    MRT_ASSERT(!request->is_answered && !request->is_forgotten);
    request->again = MRT_TIME_NEVER;
    request->command.serial = ++member->quorum->serial;
    request->command.session = member->session;
    return member->ops->submit(member->store, &request->command, mrt_time_now() + PATIENCE);
}

bool mrt_quorum_request_send(struct mrt_quorum_request *request, const struct mrt_command *command,
                             struct mrt_id ticket, uint64_t round)
{
    request->ticket = ticket;
    request->round = round;
    add(request, command);
    if (submit(request))
        return true;
    mrt_quorum_request_drop(request->member->quorum, request);
    return false;
}

void mrt_quorum_request_insist(struct mrt_quorum_request *request,
                               const struct mrt_command *command)
{
    add(request, command);
    if (!submit(request))
        request->again = mrt_time_now() + AGAIN_PAUSE;
}

void mrt_quorum_request_repeat(struct mrt_quorum_request *request, mrt_time now)
{
    request->is_answered = false;
    request->again = now + AGAIN_PAUSE;
}

bool mrt_quorum_request_removes(const struct mrt_quorum_request *request)
{
    return request->command.type == MRT_REMOVE && mrt_id_none(request->ticket) &&
           !request->is_forgotten;
}

bool mrt_quorum_is_removing(const struct mrt_quorum_member *member, struct mrt_id token)
{
    const struct mrt_quorum_request *request;
    TAILQ_FOREACH (request, &member->quorum->requests, link)
        if (request->member == member && mrt_quorum_request_removes(request) &&
            mrt_id_equal(request->command.ticket, token))
            return true;
    return false;
}

void mrt_quorum_requests_due(struct mrt_quorum_store *store, mrt_time now)
{
    struct mrt_quorum_request *request, *next;
    TAILQ_FOREACH_SAFE (request, &store->requests, link, next)
        if (request->again <= now && !submit(request))
            request->again = now + AGAIN_PAUSE;
}

mrt_time mrt_quorum_requests_next(const struct mrt_quorum_store *store)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_quorum_request *request;
    TAILQ_FOREACH (request, &store->requests, link)
        next = mrt_time_min(next, request->again);
    return next;
}

void mrt_quorum_requests_forget(struct mrt_quorum_store *store,
                                const struct mrt_quorum_member *member)
{
    struct mrt_quorum_request *request, *next;
    TAILQ_FOREACH_SAFE (request, &store->requests, link, next)
        if (request->member == member && request->again == MRT_TIME_NEVER && !request->is_answered)
            request->is_forgotten = true;
        else if (request->member == member)
            mrt_quorum_request_drop(store, request);
}

void mrt_quorum_requests_free(struct mrt_quorum_store *store)
{
    while (!TAILQ_EMPTY(&store->requests))
        mrt_quorum_request_drop(store, TAILQ_FIRST(&store->requests));
}
