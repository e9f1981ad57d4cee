/*
 * Claims: a lock that promises no order is one key, exactly as the usual programs keep it
 * (redis-py's Lock, node-redlock): SET key token NX PX, compare and delete, compare and
 * extend. With an empty namespace the lock's name is the key, and all exclude each other.
 *
 * An attempt is SET and, in the same write, INCR of the counter of fences. If an earlier
 * attempt's outcome is unknown, a compare and extend goes before: the key may be ours.
 * The token is 160 bits: 48 of the ticket, so that a list knows a claim at each member of a quorum,
 * and 112 of the system's entropy, drawn for each acquire. A client that finds the key there
 * looks once what it is: SET does not say that it can be nobody's lock.
 *
 * Who waits asks again after a random time of 50 to 150 ms, for other programs tell nobody;
 * and at once when one of ours has given the key back, for ours publish it.
 *
 * Each renewal of the session extends its claims first: the session's reply comes behind
 * theirs, and proves them too, unless one of them failed or was ours no more. The end of the
 * session deletes them first. A claim whose release has been sent is not extended, nor does a
 * renewal have to prove it, whatever the release is answered: renewing ends before releasing
 * begins, or a release that is refused would give the key a new lease.
 *
 * A key does not say whose it is. So behind each extension of one that is held, and with each look
 * at it, that is written beside it, for operators, and their requests are read there. A
 * release leaves that to expire: without the token in the key it says nothing.
 */
#include "store/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ------------------------------------------------------------------- claims */

struct mrt_redis_claim *mrt_redis_claim_find(struct mrt_redis_store *store, struct mrt_id ticket)
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

static struct mrt_redis_claim *make(struct mrt_redis_store *store,
                                    const struct mrt_command *command)
{
    size_t size = strlen(command->queue) + 1;
    struct mrt_redis_claim *claim = calloc(1, sizeof *claim + size);
    if (!claim || !choose_token(command->ticket, claim->token)) {
        free(claim);
        return NULL;
    }
    claim->session = command->session;
    claim->ticket = command->ticket;
    claim->capacity = command->capacity;
    memcpy(claim->key, command->queue, size);
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

void mrt_redis_claim_wait_no_more(struct mrt_redis_store *store, struct mrt_redis_claim *claim)
{
    if (claim->waits && last_to_wait(store, claim))
        mrt_redis_push_ignore(store, claim->key);
    claim->waits = false;
}

void mrt_redis_claim_forget(struct mrt_redis_store *store, struct mrt_redis_claim *claim)
{
    mrt_redis_claim_wait_no_more(store, claim);
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

void mrt_redis_claim_told(struct mrt_redis_store *store, const char *key)
{
    const struct mrt_redis_claim *claim;
    TAILQ_FOREACH (claim, &store->claims, link) {
        if (!claim->waits || strcmp(claim->key, key) != 0)
            continue;
        struct mrt_event *event = mrt_redis_tell(store, MRT_WAKE, claim->session);
        if (event)
            event->ticket = claim->ticket;
    }
}

void mrt_redis_claim_channel(const struct mrt_redis_store *store, const char *key,
                             char channel[MRT_REDIS_CHANNEL_MAX])
{
    snprintf(channel, MRT_REDIS_CHANNEL_MAX, "%sw:%s", store->address.base, key);
}

/* ------------------------------------------------------------------ requests */

static void put_script(struct mrt_redis_store *store, const struct mrt_redis_claim *claim,
                       enum mrt_redis_script_name name, bool whole)
{
    char lease[24], channel[MRT_REDIS_CHANNEL_MAX];
    snprintf(lease, sizeof lease, "%lld", (long long)(store->address.session / MRT_MILLISECOND));
    mrt_redis_claim_channel(store, claim->key, channel);
    const struct mrt_redis_text arguments[] = {
        mrt_redis_text_of(claim->token),
        mrt_redis_text_of(name == MRT_REDIS_CLAIM_EXTEND ? lease : channel)};
    mrt_redis_script_put(&store->wire, name, whole, claim->key, arguments, 2);
}

static void put_show(struct mrt_redis_store *store, const struct mrt_redis_claim *claim, bool whole)
{
    char key[MRT_REDIS_CHANNEL_MAX], number[24], session[MRT_ID_TEXT_SIZE];
    char ticket[MRT_ID_TEXT_SIZE], time[24];
    snprintf(key, sizeof key, "%sn:%s", store->address.base, claim->key);
    snprintf(number, sizeof number, "%llu",
             (unsigned long long)(claim->fence >> MRT_REDIS_FENCE_BITS));
    mrt_id_format(claim->session, session);
    mrt_id_format(claim->ticket, ticket);
    snprintf(time, sizeof time, "%lld", 2 * (long long)(store->address.session / MRT_MILLISECOND));
    const struct mrt_redis_text arguments[] = {
        mrt_redis_text_of(claim->token), mrt_redis_text_of(number), mrt_redis_text_of(session),
        mrt_redis_text_of(ticket),       mrt_redis_text_of(time),   mrt_redis_text_of(claim->key)};
    mrt_redis_script_put(&store->wire, MRT_REDIS_CLAIM_SHOW, whole, key, arguments, 6);
}

/* How many replies there will be. */
static unsigned put_attempt(struct mrt_redis_store *store, const struct mrt_redis_claim *claim)
{
    char lease[24], counter[MRT_REDIS_BASE_MAX + 8];
    int length = snprintf(lease, sizeof lease, "%lld",
                          (long long)(store->address.session / MRT_MILLISECOND));
    bool look = claim->outcome_unknown;
    if (look)
        put_script(store, claim, MRT_REDIS_CLAIM_EXTEND, true);
    const struct mrt_redis_text set[] = {{"SET", 3},
                                         {claim->key, strlen(claim->key)},
                                         {claim->token, strlen(claim->token)},
                                         {"NX", 2},
                                         {"PX", 2},
                                         {lease, (size_t)length}};
    mrt_redis_wire_put(&store->wire, set, 6);
    length = snprintf(counter, sizeof counter, "%sfence", store->address.base);
    const struct mrt_redis_text increase[] = {{"INCR", 4}, {counter, (size_t)length}};
    mrt_redis_wire_put(&store->wire, increase, 2);
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

/* A command for a claim that is not there, and cannot be. */
static bool answer_without(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    TAILQ_REMOVE(&store->sent, job, link);
    if (job->command.type == MRT_REMOVE)
        mrt_redis_answer(store, job, MRT_REMOVED);
    else if (job->command.type != MRT_APPEND)
        mrt_redis_answer(store, job, MRT_GONE);
    else if (session_is_there(store, job))
        mrt_redis_fail(store, job, MORTISE_ENOMEM, "no memory or entropy");
    else
        mrt_redis_fail(store, job, MORTISE_ELOST, "the session has ended");
    return false;
}

static bool is_leaving(const struct mrt_redis_claim *claim)
{
    return claim->leaving;
}

/* Does this to a claim, before `next` or last; false: no memory. */
static bool put_work(struct mrt_redis_store *store, const struct mrt_redis_claim *claim,
                     enum mrt_redis_work work, struct mrt_redis_job *next)
{
    struct mrt_redis_job *job = mrt_redis_link_add(store, work, next);
    if (!job)
        return false;
    job->command.ticket = claim->ticket;
    job->whole = !next;
    mrt_redis_claim_work_put(store, job);
    return true;
}

bool mrt_redis_claim_put(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    if (claim && !mrt_id_equal(claim->session, job->command.session))
        claim = NULL;
    else if (!claim && job->command.type == MRT_APPEND && session_is_there(store, job))
        claim = make(store, &job->command);
    bool ours = claim && (claim->held || claim->outcome_unknown || claim->trying);
    if (!claim || (job->command.type == MRT_REMOVE && !ours)) {
        if (claim)
            mrt_redis_claim_forget(store, claim);
        return answer_without(store, job);
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
    return true;
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
