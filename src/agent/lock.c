/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of connections: LOCK, UNLOCK, HELD, CANCEL on the engine.
 *
 * A connection has a name at most once: a second LOCK of it is refused, never nested, because two
 * tasks of a program that share a connection would both be let in. UNLOCK names the fence, so a
 * task that was refused cannot give back what another one has.
 *
 * A waiter is nobody's (owner 0) and does not compete: the engine hands the lock on in the order of
 * the LOCKs.
 *
 * Invariant: a lock is in its peer's table from its LOCK until its reply is an error, it is
 * released, or its peer is closed; its queue is referenced as long.
 */
#include "agent/lock.h"
#include "agent/process.h"
#include "agent/rights.h"
#include "base/error.h"
#include "base/name.h"
#include "store/kit/refusal.h"

#include <stdlib.h>
#include <string.h>

bool mrt_lock_name(const struct mrt_peer *peer, const struct mrt_resp_word *name,
                   char full[MRT_FULL_NAME_SIZE], struct mrt_reply *reply)
{
    char text[MORTISE_NAME_MAX + 1];
    size_t space = strlen(peer->space), most = MORTISE_NAME_MAX - space;
    if (name->size > most || memchr(name->text, '\0', name->size)) {
        mrt_reply_error(reply, "BADNAME a name has at most %zu bytes, and no NUL", most);
        return false;
    }
    memcpy(text, name->text, name->size);
    text[name->size] = '\0';
    if (mrt_name_check(text) != MORTISE_OK) {
        mrt_reply_error(reply, "BADNAME %s", mortise_error_detail());
        return false;
    }
    size_t prefix = strlen(peer->agent->prefix);
    memcpy(full, peer->agent->prefix, prefix);
    memcpy(full + prefix, peer->space, space);
    memcpy(full + prefix + space, text, name->size + 1);
    return true;
}

/* A lock of the connection, or of its process: the one of this fence; 0: any. */
static struct mrt_lock *find_lock(const struct mrt_peer *peer, const struct mrt_resp_word *name,
                                  uint64_t fence, struct mrt_reply *reply)
{
    char full[MRT_FULL_NAME_SIZE];
    struct mrt_lock *lock = NULL, *next;
    if (!mrt_lock_name(peer, name, full, reply))
        return NULL;
    HASH_FIND(hh, peer->locks, full, strlen(full), lock);
    const struct mrt_peer *process = lock ? NULL : mrt_process_find(peer);
    if (process)
        HASH_ITER (hh, process->locks, lock, next)
            if (strcmp(mrt_queue_name(lock->queue), full) == 0 &&
                (fence == 0 || lock->hold->fence == fence))
                break;
    if (!lock)
        mrt_reply_error(reply, "NOTHELD this connection does not have the lock");
    return lock;
}

static void count(struct mrt_times *times, mrt_time time)
{
    uint64_t us = time < 0 ? 0 : (uint64_t)time / 1000;
    size_t bits = us == 0 ? 0 : 64 - (size_t)__builtin_clzll(us);
    times->counts[bits < MRT_TIMES ? bits : MRT_TIMES - 1]++;
    times->count++;
    times->sum_us += us;
}

static void forget(struct mrt_lock *lock)
{
    struct mrt_peer *peer = lock->peer;
    if (peer->waiting == lock)
        peer->waiting = NULL;
    mrt_driver_unpost(&peer->agent->driver, &lock->upcall);
    if (lock->hold)
        count(&peer->agent->holds, mrt_time_now() - lock->since);
    if (!lock->answer) {
        if (lock->hh.tbl) /* else it is on its way to a process, and there was no memory */
            HASH_DEL(peer->locks, lock);
        mrt_queue_put(lock->queue);
        mrt_user_give_back(peer->user, lock->usage, !lock->hold);
    }
    free(lock->answer);
    free(lock->value);
    free(lock);
}

/* Replies with an error whose particulars are noted. */
static void reply_noted(int error, struct mrt_reply *reply)
{
    const char *detail = mortise_error_detail();
    const char *word = error == MORTISE_EBUSY        ? "BUSY"
                       : error == MORTISE_ETIMEOUT   ? "TIMEOUT"
                       : error == MORTISE_ECANCELLED ? "CANCELLED"
                       : error == MORTISE_ELOST      ? "LOST"
                       : error == MORTISE_ENOTHELD   ? "NOTHELD"
                       : error == MORTISE_EMISMATCH  ? "MISMATCH"
                       : error == MORTISE_EFULL      ? "FULL"
                       : error == MORTISE_ECONFLICT  ? "CONFLICT"
                       : error == MORTISE_ESTALE     ? "STALE"
                       : error == MORTISE_ECLOSED    ? "AGAIN"
                                                     : "STORE";
    mrt_reply_error(reply, "%s %s", word, *detail ? detail : mortise_error_text(error));
}

static void reply_failure(const struct mrt_driver *driver, int error, struct mrt_reply *reply)
{
    mrt_error_clear();
    reply_noted(mrt_driver_error(driver, error), reply);
}

/* A lock that is held becomes its process's; false: the process has ended. */
static bool move_to_process(struct mrt_lock *lock)
{
    struct mrt_peer *peer = lock->peer, *process = mrt_process_find(peer);
    if (!process)
        return false;
    const char *name = mrt_queue_name(lock->queue);
    HASH_DEL(peer->locks, lock);
    lock->peer = process;
    HASH_ADD_KEYPTR(hh, process->locks, name, strlen(name), lock);
    if (lock->hh.tbl)
        return true;
    lock->peer = peer;
    HASH_ADD_KEYPTR(hh, peer->locks, name, strlen(name), lock);
    return false;
}

static void hold(struct mrt_lock *lock)
{
    mrt_time now = mrt_time_now();
    count(&lock->peer->agent->waits, now - lock->since);
    lock->hold = lock->call.waiter.hold;
    lock->generation = lock->hold->generation;
    lock->since = now;
    mrt_usage_settle(lock->usage);
}

void mrt_lock_finish(struct mrt_lock *lock, struct mrt_reply *reply)
{
    struct mrt_peer *peer = lock->peer;
    const struct mrt_waiter *waiter = &lock->call.waiter;
    if (peer->waiting == lock)
        peer->waiting = NULL;
    if (waiter->error != MORTISE_OK) {
        mrt_error_clear();
        reply_noted(mrt_driver_outcome(&peer->agent->driver, waiter), reply);
        forget(lock);
        return;
    }
    if (lock->answer) {
        lock->reply(lock->answer, reply);
        forget(lock);
        return;
    }
    hold(lock);
    if (lock->binds && !move_to_process(lock)) {
        mrt_lock_drop(lock);
        mrt_reply_error(reply, "LOST the process of this connection has ended");
        return;
    }
    peer->agent->counters.grants++;
    mrt_reply_integer(reply, (int64_t)lock->hold->fence);
}

/* An upcall: the acquire of a LOCK that waited has ended. */
static void settled(struct mrt_upcall *upcall)
{
    struct mrt_lock *lock = (struct mrt_lock *)((char *)upcall - offsetof(struct mrt_lock, upcall));
    struct mrt_peer *peer = lock->peer;
    if (lock->hold || lock->call.waiter.state != MRT_WAITER_DONE)
        return;
    mrt_lock_finish(lock, &peer->output);
    mrt_peer_has_output(peer);
}

/* A queue for the lock; NULL: the reply says why there is none. */
static struct mrt_queue *open_queue(struct mrt_agent *agent, const char *full,
                                    const struct mrt_recipe *recipe, mrt_time now,
                                    struct mrt_reply *reply)
{
    struct mrt_queue *queue;
    int error = mrt_engine_queue(agent->driver.engine, full, recipe, &queue);
    if (error == MORTISE_EMISMATCH) {
        const struct mrt_recipe *used = mrt_queue_recipe(queue);
        mrt_error(error, MRT_REFUSAL_MISMATCH, full + strlen(agent->prefix), used->kind,
                  used->capacity, recipe->kind, recipe->capacity);
        mrt_reply_error(reply, "MISMATCH %s", mortise_error_detail());
        return NULL;
    }
    if (error != MORTISE_OK) {
        reply_failure(&agent->driver, error, reply);
        return NULL;
    }
    const mortise_capabilities *can = &agent->driver.ops->capabilities;
    if (can->linger && !recipe->shared)
        mrt_queue_linger(queue, MRT_SECOND);
    if (can->lock_delay && !agent->has_lease)
        mrt_queue_delay(queue, agent->lease, now);
    return queue;
}

/* How long the hold lasts at most, as the client wishes and the policy allows. */
static mrt_time longest_hold(const struct mrt_peer *peer, mrt_time wished)
{
    mrt_time most = peer->user->limits ? peer->user->limits->hold : 0;
    if (most == 0 || wished == 0)
        return most + wished;
    return mrt_time_min(most, wished);
}

/* One of this connection whose call has not begun. */
static struct mrt_lock *new_call(struct mrt_peer *peer)
{
    struct mrt_lock *lock = calloc(1, sizeof *lock);
    if (!lock)
        return NULL;
    lock->peer = peer;
    lock->since = mrt_time_now();
    lock->upcall.run = settled;
    lock->call.kind = MRT_CALL_UPCALL;
    lock->call.upcall = &lock->upcall;
    return lock;
}

struct mrt_lock *mrt_lock_new_question(struct mrt_peer *peer, mrt_question_reply *reply)
{
    struct mrt_lock *question = new_call(peer);
    if (!question)
        return NULL;
    question->reply = reply;
    question->answer = calloc(1, sizeof *question->answer);
    if (question->answer)
        return question;
    free(question);
    return NULL;
}

/* Copies the label, and the value of a candidate; false: no memory. */
static bool keep_words(struct mrt_lock *lock, const struct mrt_lock_wish *wish)
{
    if (wish->label.size > 0)
        memcpy(lock->label, wish->label.text, wish->label.size); /* which is shorter */
    if (!wish->value.text)
        return true;
    lock->value = malloc(wish->value.size + 1);
    if (!lock->value)
        return false;
    memcpy(lock->value, wish->value.text, wish->value.size);
    lock->call.waiter.value = lock->value;
    lock->call.waiter.value_size = wish->value.size;
    return true;
}

static struct mrt_lock *new_lock(struct mrt_peer *peer, struct mrt_queue *queue,
                                 const struct mrt_lock_wish *wish)
{
    struct mrt_lock *lock = new_call(peer);
    if (!lock || !keep_words(lock, wish)) {
        free(lock);
        return NULL;
    }
    lock->queue = queue;
    lock->binds = wish->binds;
    lock->call.waiter.weight = wish->weight;
    lock->call.waiter.deadline = wish->deadline;
    lock->call.waiter.try_only = wish->try_only;
    lock->call.waiter.hold_max = longest_hold(peer, wish->longest);
    HASH_ADD_KEYPTR(hh, peer->locks, mrt_queue_name(queue), strlen(mrt_queue_name(queue)), lock);
    if (lock->hh.tbl)
        return lock;
    free(lock->value);
    free(lock); /* no memory for the table */
    return NULL;
}

/* A lock of this name, counted as its user's; NULL: the reply says why there is none. */
static struct mrt_lock *begin_lock(struct mrt_peer *peer, const char *full,
                                   const struct mrt_lock_wish *wish, struct mrt_reply *reply)
{
    struct mrt_agent *agent = peer->agent;
    struct mrt_usage *usage = mrt_user_take(agent, peer->user, peer->pid, full);
    if (!usage) {
        reply_noted(MORTISE_EFULL, reply);
        return NULL;
    }
    struct mrt_queue *queue = open_queue(agent, full, &wish->recipe, mrt_time_now(), reply);
    struct mrt_lock *lock = queue ? new_lock(peer, queue, wish) : NULL;
    if (lock) {
        lock->usage = usage;
        return lock;
    }
    mrt_user_give_back(peer->user, usage, true);
    if (queue) {
        mrt_queue_put(queue);
        reply_failure(&agent->driver, MORTISE_ENOMEM, reply);
    }
    return NULL;
}

/* Whether it was held and has ended by the clock. */
static bool is_lost(const struct mrt_lock *lock)
{
    return !mrt_hold_live(lock->hold, lock->generation) ||
           mrt_hold_state(lock->hold, mrt_time_now()) == MORTISE_LOST;
}

void mrt_lock_take(struct mrt_peer *peer, const struct mrt_resp_word *name,
                   const struct mrt_lock_wish *wish, struct mrt_reply *reply)
{
    char full[MRT_FULL_NAME_SIZE];
    struct mrt_agent *agent = peer->agent;
    struct mrt_lock *lock;
    mrt_time now = mrt_time_now();
    if (agent->drains) {
        mrt_reply_error(reply, "AGAIN the agent is ending: connect again");
        return;
    }
    unsigned verbs = MRT_ACCESS_ACQUIRE;
    if (strcmp(wish->recipe.kind, mrt_read_write.kind) == 0 && wish->weight == MRT_READER)
        verbs |= MRT_ACCESS_SHARED;
    if (!mrt_lock_name(peer, name, full, reply) || !mrt_peer_may(peer, verbs, name, reply))
        return;
    HASH_FIND(hh, peer->locks, full, strlen(full), lock);
    if (lock && lock->hold && is_lost(lock)) {
        mrt_lock_drop(lock);
        lock = NULL;
    }
    if (lock) {
        mrt_reply_error(reply, "DEADLOCK this connection has the lock, or waits for it");
        return;
    }
    const struct mrt_peer *process = wish->binds ? mrt_process_open(peer) : NULL;
    if (wish->binds && !process) {
        mrt_reply_error(reply,
                        "BADVALUE BIND PROCESS: the process of this connection has ended, or is "
                        "not seen here, or the agent has no descriptor left to watch it by");
        return;
    }
    if (HASH_COUNT(peer->locks) + (process ? HASH_COUNT(process->locks) : 0) >=
        MRT_PEER_LOCKS_MAX) {
        mrt_reply_error(reply, "FULL a connection has at most %d locks", MRT_PEER_LOCKS_MAX);
        return;
    }
    lock = begin_lock(peer, full, wish, reply);
    if (!lock)
        return;
    mrt_engine_acquire(agent->driver.engine, lock->queue, &lock->call.waiter, now);
    if (lock->call.waiter.state == MRT_WAITER_DONE && !lock->call.waiter.settled)
        mrt_lock_finish(lock, reply);
    else
        peer->waiting = lock; /* until it is told: settled */
}

/* A lock that is held by this fence; NULL: the reply says why there is none. */
static struct mrt_lock *find_held(struct mrt_peer *peer, const struct mrt_resp_word *name,
                                  uint64_t fence, struct mrt_reply *reply)
{
    struct mrt_lock *lock = find_lock(peer, name, fence, reply);
    if (!lock || (lock->hold && lock->hold->fence == fence))
        return lock;
    mrt_reply_error(reply, "NOTHELD this connection does not have the lock by this fence");
    return NULL;
}

void mrt_lock_release(struct mrt_peer *peer, const struct mrt_resp_word *name, uint64_t fence,
                      struct mrt_reply *reply)
{
    struct mrt_agent *agent = peer->agent;
    struct mrt_lock *lock = find_held(peer, name, fence, reply);
    if (!lock)
        return;
    int error =
        mrt_engine_release(agent->driver.engine, lock->hold, lock->generation, 0, mrt_time_now());
    forget(lock);
    if (error == MORTISE_OK)
        mrt_reply_simple(reply, "OK");
    else
        reply_failure(&agent->driver, error, reply);
}

void mrt_lock_extend(struct mrt_peer *peer, const struct mrt_resp_word *name, uint64_t fence,
                     mrt_time longest, struct mrt_reply *reply)
{
    const struct mrt_lock *lock = find_held(peer, name, fence, reply);
    mrt_time now = mrt_time_now();
    if (!lock)
        return;
    mrt_time most = peer->user->limits ? peer->user->limits->hold : 0;
    if (most > 0)
        longest = mrt_time_min(longest, lock->since + most - now);
    int error = longest > 0 ? mrt_hold_extend(lock->hold, lock->generation, longest, now)
                            : MORTISE_ELOST; /* the policy's time is over */
    if (error == MORTISE_OK)
        mrt_reply_integer(reply, longest / MRT_MILLISECOND);
    else
        reply_failure(&peer->agent->driver, error, reply);
}

void mrt_lock_tell(struct mrt_peer *peer, const struct mrt_resp_word *name, struct mrt_reply *reply)
{
    const struct mrt_lock *lock = find_lock(peer, name, 0, reply);
    if (!lock)
        return;
    if (!lock->hold) {
        mrt_reply_error(reply, "NOTHELD this connection waits for the lock");
        return;
    }
    mrt_time left = 0;
    if (!is_lost(lock)) {
        left = mrt_hold_valid_until(lock->hold) - mrt_time_now();
        if (!peer->agent->has_lease)
            left = mrt_time_min(left, peer->agent->lease); /* what the store keeps if we die */
    }
    mrt_reply_integer(reply, left > 0 ? left / MRT_MILLISECOND : 0);
}

bool mrt_lock_cancel(struct mrt_peer *peer)
{
    struct mrt_driver *driver = &peer->agent->driver;
    struct mrt_waiter *waiter = &peer->waiting->call.waiter;
    bool waits = waiter->state != MRT_WAITER_DONE;
    mrt_engine_cancel(driver->engine, waiter, MORTISE_ECANCELLED, mrt_time_now());
    mrt_driver_settle(driver);
    return waits;
}

void mrt_lock_drop(struct mrt_lock *lock)
{
    struct mrt_driver *driver = &lock->peer->agent->driver;
    mrt_time now = mrt_time_now();
    if (!lock->hold) {
        mrt_engine_cancel(driver->engine, &lock->call.waiter, MORTISE_ECANCELLED, now);
        mrt_driver_settle(driver);
        if (lock->call.waiter.error == MORTISE_OK && !lock->answer)
            hold(lock);
    }
    if (lock->hold)
        mrt_engine_release(driver->engine, lock->hold, lock->generation, 0, now);
    lock->peer->agent->has_dropped = true;
    forget(lock);
}

bool mrt_lock_has_name(const struct mrt_lock *lock, const struct mrt_resp_word *name)
{
    const struct mrt_peer *peer = lock->peer;
    if (lock->answer)
        return false;
    const char *own =
        mrt_queue_name(lock->queue) + strlen(peer->agent->prefix) + strlen(peer->space);
    return strlen(own) == name->size && memcmp(own, name->text, name->size) == 0;
}

bool mrt_lock_any_held(const struct mrt_peer *peer)
{
    const struct mrt_lock *lock, *next;
    HASH_ITER (hh, peer->locks, lock, next)
        if (lock->hold)
            return true;
    return false;
}
