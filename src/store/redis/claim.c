/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims: a lock that promises no order is one key, exactly as the usual programs keep it
 * (redis-py's Lock, node-redlock): SET key token NX PX, compare and delete, compare and
 * extend. With an empty namespace the lock's name is the key, and all exclude each other.
 *
 * An attempt is SET and, in the same write, INCR of the counter of fences. If an earlier
 * attempt's outcome is unknown, a compare and extend goes before: the key may be ours.
 * The token is 160 bits: 48 of the ticket, so that a list knows a claim at each member of a quorum,
 * and 112 of the system's entropy, drawn for each acquire. If SET NX fails, one look at the key
 * checks that it is a string: NX also fails on a key that can be nobody's lock.
 *
 * A waiter tries again after a random time of 50 to 150 ms, because other programs announce
 * nothing. When a client of mortise releases the key, it publishes that, and the waiter tries
 * again immediately.
 *
 * Each renewal of the session extends its claims first. The session's reply comes behind theirs
 * and proves them too, unless one of them failed or found another token. The end of the session
 * deletes them first. A claim whose release has been sent is neither extended nor proven by a
 * renewal, whatever the answer to the release is: renewing ends before releasing begins, because
 * otherwise a release that is refused would give the key a new lease.
 *
 * In a cluster the key has the slot of the others: redis+cluster: adds the namespace's tag to a
 * name without a tag, and redis: at a node of one refuses such a name, whose key would be another.
 *
 * A key does not name its holder. So a second key beside it names the holder, for operators, and
 * carries their requests. It is written behind each extension of a claim that is held, and
 * with each look at it. A release lets that second key expire: it means nothing without the
 * token in the first.
 */
#include "store/redis/claim.h"

#include "base/assert.h"
#include "store/redis/push.h"
#include "store/redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ------------------------------------------------------------------- claims */

struct mrt_redis_claim *mrt_redis_claim_find(const struct mrt_redis_store *store,
                                             struct mrt_id ticket)
{
    struct mrt_redis_claim *claim;
    TAILQ_FOREACH (claim, &store->claims, link)
        if (mrt_id_equal(claim->ticket, ticket))
            return claim;
    return NULL;
}

bool mrt_redis_claim_of(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    if (job->command.type != MRT_APPEND)
        job->command.claim = job->command.type > MRT_APPEND &&
                             mrt_redis_claim_find(store, job->command.ticket) != NULL;
    return job->command.claim;
}

static bool choose_token(struct mrt_id ticket, char token[MRT_REDIS_TOKEN_SIZE])
{
    unsigned char bytes[(MRT_REDIS_TOKEN_SIZE - MRT_CLAIM_SIZE) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    mrt_claim_format(ticket, token);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + MRT_CLAIM_SIZE - 1 + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static struct mrt_redis_claim *new_claim(struct mrt_redis_store *store,
                                         const struct mrt_command *command)
{
    char key[MRT_REDIS_KEY_MAX];
    size_t size = mrt_redis_claim_key(store, command->queue, key) + 1;
    struct mrt_redis_claim *claim = calloc(1, sizeof *claim + size);
    if (!claim || !choose_token(command->ticket, claim->token)) {
        free(claim);
        return NULL;
    }
    claim->session = command->session;
    claim->ticket = command->ticket;
    claim->capacity = command->capacity;
    memcpy(claim->key, key, size);
    TAILQ_INSERT_TAIL(&store->claims, claim, link);
    return claim;
}

/* Nobody else of this client listens for the key. */
static bool last_to_wait(const struct mrt_redis_store *store, const struct mrt_redis_claim *claim)
{
    const struct mrt_redis_claim *other;
    TAILQ_FOREACH (other, &store->claims, link)
        if (other != claim && other->waits && strcmp(other->key, claim->key) == 0)
            return false;
    return true;
}

void mrt_redis_claim_stop_waiting(struct mrt_redis_store *store, struct mrt_redis_claim *claim)
{
    if (claim->waits && last_to_wait(store, claim))
        mrt_redis_push_ignore(store, claim->key);
    claim->waits = false;
}

void mrt_redis_claim_forget(struct mrt_redis_store *store, struct mrt_redis_claim *claim)
{
    mrt_redis_claim_stop_waiting(store, claim);
    TAILQ_REMOVE(&store->claims, claim, link);
    free(claim);
}

void mrt_redis_claims_forget(struct mrt_redis_store *store, struct mrt_id session)
{
    struct mrt_redis_claim *claim, *next;
    TAILQ_FOREACH_SAFE (claim, &store->claims, link, next)
        if (mrt_id_equal(claim->session, session))
            mrt_redis_claim_forget(store, claim);
}

void mrt_redis_claims_free(struct mrt_redis_store *store)
{
    struct mrt_redis_claim *claim;
    while ((claim = TAILQ_FIRST(&store->claims))) {
        TAILQ_REMOVE(&store->claims, claim, link);
        free(claim);
    }
}

/* ------------------------------------------------------------------ requests */

static void put_script(struct mrt_redis_store *store, const struct mrt_redis_claim *claim,
                       enum mrt_redis_script_name name, bool whole)
{
    char channel[MRT_REDIS_KEY_MAX];
    mrt_redis_key(store, "w:", claim->key, channel);
    mrt_redis_claim_script_put(&store->wire, name, whole, claim->key, claim->token,
                               name == MRT_REDIS_CLAIM_EXTEND ? store->lease : channel, NULL);
}

static void put_show(struct mrt_redis_store *store, const struct mrt_redis_claim *claim, bool whole)
{
    char key[MRT_REDIS_KEY_MAX], number[24], session[MRT_ID_TEXT_SIZE];
    char ticket[MRT_ID_TEXT_SIZE], time[24];
    mrt_redis_key(store, "n:", claim->key, key);
    snprintf(number, sizeof number, "%llu",
             (unsigned long long)(claim->fence >> MRT_REDIS_FENCE_BITS));
    mrt_id_format(claim->session, session);
    mrt_id_format(claim->ticket, ticket);
    snprintf(time, sizeof time, "%lld", 2 * (long long)(store->address.session / MRT_MILLISECOND));
    mrt_redis_claim_script_put(&store->wire, MRT_REDIS_CLAIM_SHOW, whole, key, claim->token, number,
                               session, ticket, time, claim->key, NULL);
}

/* How many replies there will be. */
static unsigned put_attempt(struct mrt_redis_store *store, const struct mrt_redis_claim *claim)
{
    char counter[MRT_REDIS_KEY_MAX];
    bool look = claim->outcome_unknown;
    if (look)
        put_script(store, claim, MRT_REDIS_CLAIM_EXTEND, true);
    mrt_redis_wire_words(&store->wire, "SET", claim->key, claim->token, "NX", "PX", store->lease,
                         NULL);
    mrt_redis_key(store, "fence", "", counter);
    mrt_redis_wire_words(&store->wire, "INCR", counter, NULL);
    return look ? 3 : 2;
}

static bool session_is_there(const struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    const struct mrt_redis_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, job->command.session))
            return true;
    return false;
}

/* The key is the lock's name as it stands, and so begin the keys of the store itself. */
static bool is_reserved(const struct mrt_command *command)
{
    return *command->queue == '{';
}

/* A redis: URI names a node of a cluster, which keeps the key by chance, and redis+cluster: uses
   another one. */
bool mrt_redis_claim_is_refused(const struct mrt_redis_store *store, const char *name)
{
    return store->connection.clustered && store->address.way == MRT_REDIS_DIRECT &&
           mrt_redis_claim_is_apart(store, name);
}

void mrt_redis_claim_refuse(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    mrt_redis_fail(store, job, MORTISE_ENOTSUPPORTED,
                   "%.80s: the server is a node of a cluster, where exclusive locks need "
                   "redis+cluster: or a name as %.80sNAME",
                   job->command.queue, store->address.base);
}

/* A command for a claim that is not there, and cannot be. */
static void answer_without(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    TAILQ_REMOVE(&store->sent, job, link);
    if (job->command.type == MRT_REMOVE)
        mrt_redis_answer(store, job, MRT_REMOVED);
    else if (job->command.type != MRT_APPEND)
        mrt_redis_answer(store, job, MRT_GONE);
    else if (is_reserved(&job->command))
        mrt_redis_fail(store, job, MORTISE_ENAME,
                       "%.80s: the name of an exclusive lock does not begin with \"{\"",
                       job->command.queue);
    else if (mrt_redis_claim_is_refused(store, job->command.queue))
        mrt_redis_claim_refuse(store, job);
    else if (session_is_there(store, job))
        mrt_redis_fail(store, job, MORTISE_ENOMEM, "no memory or entropy");
    else
        mrt_redis_fail(store, job, MORTISE_ELOST, "the session has ended");
}

static bool is_leaving(const struct mrt_redis_claim *claim)
{
    return claim->leaving;
}

/* Does this to a claim, before `next` or last; false: no memory. */
static bool put_work(struct mrt_redis_store *store, const struct mrt_redis_claim *claim,
                     enum mrt_redis_work work, struct mrt_redis_job *next)
{
    struct mrt_redis_job *job = mrt_redis_job_add(store, work, next);
    if (!job)
        return false;
    job->command.ticket = claim->ticket;
    job->whole = !next;
    mrt_redis_claim_work_put(store, job);
    return true;
}

void mrt_redis_claim_put(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    if (claim && !mrt_id_equal(claim->session, job->command.session))
        claim = NULL;
    else if (!claim && job->command.type == MRT_APPEND && !is_reserved(&job->command) &&
             !mrt_redis_claim_is_refused(store, job->command.queue) && session_is_there(store, job))
        claim = new_claim(store, &job->command);
    bool ours = claim && (claim->held || claim->outcome_unknown || claim->trying);
    if (!claim || (job->command.type == MRT_REMOVE && !ours)) {
        if (claim)
            mrt_redis_claim_forget(store, claim);
        answer_without(store, job);
        return;
    }
    claim->leaving = job->command.type == MRT_REMOVE;
    job->attempt = job->replies = 0;
    job->taken = job->looks = false;
    if (job->command.type == MRT_REFRESH && claim->held)
        put_work(store, claim, MRT_REDIS_SHOW, job);
    if (job->command.type == MRT_REMOVE)
        put_script(store, claim, MRT_REDIS_CLAIM_DELETE, job->whole);
    else if (claim->held)
        put_script(store, claim, MRT_REDIS_CLAIM_EXTEND, job->whole);
    else
        job->attempt = put_attempt(store, claim);
    claim->trying |= job->attempt > 0;
}

bool mrt_redis_claim_work_put(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    const struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    if (!claim || (job->work != MRT_REDIS_DELETE && is_leaving(claim)))
        return false;
    bool extend = job->work == MRT_REDIS_EXTEND;
    if (job->work == MRT_REDIS_SHOW)
        put_show(store, claim, job->whole);
    else
        put_script(store, claim, extend ? MRT_REDIS_CLAIM_EXTEND : MRT_REDIS_CLAIM_DELETE,
                   job->whole);
    return true;
}

/* Does this to all claims of a session that may be ours, but that EXTEND to none that is leaving,
   before `next` or last. */
static bool put_all(struct mrt_redis_store *store, struct mrt_id session, enum mrt_redis_work work,
                    struct mrt_redis_job *next)
{
    const struct mrt_redis_claim *claim;
    TAILQ_FOREACH (claim, &store->claims, link) {
        if (!mrt_id_equal(claim->session, session) ||
            (!claim->held && !claim->outcome_unknown && !claim->trying) ||
            (work == MRT_REDIS_EXTEND && is_leaving(claim)))
            continue;
        if (!put_work(store, claim, work, next))
            return false;
        if (work == MRT_REDIS_EXTEND && claim->held)
            put_work(store, claim, MRT_REDIS_SHOW, next);
    }
    return true;
}

void mrt_redis_claims_put(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    enum mrt_redis_work work = job->command.type == MRT_RENEW ? MRT_REDIS_EXTEND : MRT_REDIS_DELETE;
    store->unproven = !put_all(store, job->command.session, work, job);
}

void mrt_redis_claims_lose(struct mrt_redis_store *store, struct mrt_id session)
{
    put_all(store, session, MRT_REDIS_DELETE, NULL); /* those that are not sent end by themselves */
    mrt_redis_claims_forget(store, session);
}

bool mrt_redis_claim_undo_put(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    if (!claim)
        return false;
    claim->held = false;
    claim->outcome_unknown = claim->leaving = true;
    put_script(store, claim, MRT_REDIS_CLAIM_DELETE, true);
    return true;
}
