/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replica that becomes the master lacks the newest writes of the last one. So behind sentinels,
 * and in a cluster, three things follow when a connection has ended, the first two before anything
 * else on the next one:
 *
 *   - The numbers, and so the fences, go on above those that this client has seen, and above where
 *     the clock of the last server was when that was last heard: the clock of this one may be
 *     behind it (scripts/forward.lua).
 *   - A ticket of a session of this client that the client does not have is taken out: the removal
 *     is lost, and the ticket would stay as long as the session lives.
 *   - All tickets are refreshed, which connection.c begins: one whose APPEND is lost is GONE, and
 *     the hold is lost then. Its session may be there, so renewals would tell nothing.
 *
 * A new master may refuse to write until it has replicas of its own. Then the first two are
 * repeated before the next commands, until they are done.
 *
 * So the store keeps the identities of the tickets that the client may have: from their APPEND to
 * the answer that they are gone, or that the server has refused the APPEND. A refused adoption is
 * kept: the hold may be here by an earlier attempt, and would not come back. One that is kept too
 * long, at most until its session ends, only delays the second of the three.
 * Claims need nothing of this: each is a key with a lease of its own, which each renewal compares.
 */
#include "store/redis/resume.h"

#include "core/uthash.h"
#include "store/redis/command.h"
#include "store/redis/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_MS INT64_C(1577836800000) /* 2020: as head.lua counts */
#define PER_MS 128

struct mrt_redis_ticket {
    UT_hash_handle hh;
    struct mrt_id id, session;
};

/* ------------------------------------------------------------------ tickets */

static struct mrt_redis_ticket *find_ticket(const struct mrt_redis_store *store, struct mrt_id id)
{
    struct mrt_redis_ticket *ticket;
    HASH_FIND(hh, store->tickets, &id, sizeof id, ticket);
    return ticket;
}

static void forget_ticket(struct mrt_redis_store *store, struct mrt_redis_ticket *ticket)
{
    if (!ticket)
        return;
    HASH_DEL(store->tickets, ticket);
    free(ticket);
}

static void forget_session(struct mrt_redis_store *store, struct mrt_id session)
{
    struct mrt_redis_ticket *ticket, *next;
    HASH_ITER (hh, store->tickets, ticket, next)
        if (mrt_id_equal(ticket->session, session))
            forget_ticket(store, ticket);
}

void mrt_redis_resume_free(struct mrt_redis_store *store)
{
    struct mrt_redis_ticket *ticket, *next;
    HASH_ITER (hh, store->tickets, ticket, next)
        forget_ticket(store, ticket);
}

void mrt_redis_resume_submitted(struct mrt_redis_store *store, const struct mrt_command *command)
{
    struct mrt_redis_ticket *ticket;
    if (store->address.way == MRT_REDIS_DIRECT || command->type != MRT_APPEND)
        return;
    ticket = find_ticket(store, command->ticket);
    if (!ticket && (ticket = calloc(1, sizeof *ticket))) {
        ticket->id = command->ticket;
        HASH_ADD(hh, store->tickets, id, sizeof ticket->id, ticket);
    }
    if (ticket)
        ticket->session = command->session;
}

void mrt_redis_resume_delivered(struct mrt_redis_store *store, const struct mrt_command *command,
                                const struct mrt_event *event)
{
    int64_t number = (int64_t)(event->fence >> MRT_REDIS_FENCE_BITS);
    if (store->address.way == MRT_REDIS_DIRECT)
        return;
    if (event->type == MRT_VIEW && number > store->newest)
        store->newest = number;
    if (command->type == MRT_STOP || event->type == MRT_SESSION_LOST)
        forget_session(store, event->session);
    else if (event->type == MRT_REMOVED || event->type == MRT_GONE || event->type == MRT_BLOCKED ||
             (event->type == MRT_VIEW && command->type == MRT_DETACH) ||
             (event->type == MRT_FAILED && command->type == MRT_APPEND && !command->adopt &&
              event->error != MORTISE_EUNREACHABLE))
        forget_ticket(store, find_ticket(store, event->ticket));
}

/* ------------------------------------------------------------------ another server */

/* Where the clock of the last server was when that was last heard, as a number. */
static int64_t number_of_clock(const struct mrt_redis_store *store)
{
    if (store->server_ms <= EPOCH_MS)
        return 0;
    mrt_time since = store->server_heard - store->server_seen;
    return (store->server_ms - EPOCH_MS + (since > 0 ? since / MRT_MILLISECOND : 0) + 1) * PER_MS;
}

static void forward_numbers(struct mrt_redis_store *store)
{
    char number[24];
    int64_t clock = number_of_clock(store);
    int64_t least = store->newest > clock ? store->newest : clock;
    if (least <= 0 || least >= MRT_REDIS_NUMBER_MAX)
        return;
    if (!mrt_redis_job_add(store, MRT_REDIS_RAISE, NULL)) {
        store->resume_due = true;
        return;
    }
    snprintf(number, sizeof number, "%" PRId64, least);
    const struct mrt_redis_text arguments[] = {mrt_redis_text_of(""), mrt_redis_text_of("0"),
                                               mrt_redis_text_of(number)};
    mrt_redis_script_put(store, &store->wire, MRT_REDIS_FORWARD, true, NULL, "", arguments, 3);
}

void mrt_redis_resume_begin(struct mrt_redis_store *store)
{
    const struct mrt_redis_session *session;
    char text[MRT_ID_TEXT_SIZE], key[MRT_REDIS_KEY_MAX];
    bool resumes = store->resumes;
    store->resumes = true;
    store->resume_due = false;
    if (!resumes)
        return;
    forward_numbers(store);
    TAILQ_FOREACH (session, &store->sessions, link) {
        struct mrt_redis_job *job = mrt_redis_job_add(store, MRT_REDIS_HAS, NULL);
        if (!job) {
            store->resume_due = true;
            return;
        }
        job->command.session = session->id;
        mrt_id_format(session->id, text);
        mrt_redis_key(store, "s:", text, key);
        mrt_redis_wire_words(&store->wire, "HGETALL", key, NULL);
    }
}

/* `field`: "NUMBER:QUEUE", with "=" where it may have a value, and a delay before that. */
static void take_out(struct mrt_redis_store *store, struct mrt_id session, struct mrt_id ticket,
                     const char *field)
{
    const char *queue = strpbrk(field, ":=");
    struct mrt_redis_job *job = queue && strlen(queue) <= MORTISE_NAME_MAX
                                    ? mrt_redis_job_add(store, MRT_REDIS_PURGE, NULL)
                                    : NULL;
    if (!job)
        return;
    job->command.session = session;
    job->command.ticket = ticket;
    job->command.queue = queue + 1;
    mrt_redis_remove_put(store, job);
    job->command.queue = ""; /* the text is the reply's */
}

void mrt_redis_resume_reply(struct mrt_redis_store *store, const struct mrt_redis_job *job,
                            const redisReply *reply)
{
    struct mrt_id ticket;
    if (reply->type != REDIS_REPLY_ARRAY)
        return;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *name = reply->element[i], *field = reply->element[i + 1];
        if (name->type == REDIS_REPLY_STRING && field->type == REDIS_REPLY_STRING &&
            mrt_id_parse(name->str, &ticket) && !find_ticket(store, ticket))
            take_out(store, job->command.session, ticket, field->str);
    }
}
