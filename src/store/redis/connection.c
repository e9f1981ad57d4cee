/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection for commands. It is made when the first command comes. When it has ended, it is
 * made again if a command waits, after a pause that grows; an idle client has none.
 *
 * A command is sent as soon as the connection is ready, and replies come in the order of
 * sending. When the connection breaks, or an answer takes longer than a quarter of the
 * lease, the commands that were sent have an unknown outcome: the engine refreshes, and each
 * command may be repeated. The server refuses commands of the old connection that it had not
 * read by then, because the new connection has a higher epoch.
 *
 * When a connection has ended, the server's name is resolved again, beside the loop: the server
 * may have moved. Until that is done the client tries the old address.
 *
 * NOSCRIPT: the command was not executed, and is sent again immediately as a whole script, unless
 * a command for the same ticket has been sent behind it, which it must not overtake.
 */
#include "store/redis/connection.h"

#include "base/assert.h"
#include "store/redis/check.h"
#include "store/redis/claim.h"
#include "store/redis/command.h"
#include "store/redis/copies.h"
#include "store/redis/error.h"
#include "store/redis/push.h"
#include "store/redis/referral.h"
#include "store/redis/reply.h"
#include "store/redis/resume.h"
#include "store/redis/seek.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MIN (10 * MRT_MILLISECOND)
#define PAUSE_DOUBLINGS 6

/* ------------------------------------------------------------------- the end */

static void fail_unreachable(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    const char *why = *store->seek.fault         ? store->seek.fault
                      : store->servers.count > 0 ? mrt_redis_wire_trouble(&store->wire)
                                                 : mrt_resolver_fault(&store->resolver);
    mrt_redis_fail(store, job, MORTISE_EUNREACHABLE, "%s: %s", store->address.shown, why);
}

/* A START behind a refused login may have been done under another user: it dies of itself. */
static void end_jobs(struct mrt_redis_store *store, struct mrt_redis_jobs *jobs, bool sent)
{
    struct mrt_redis_job *job;
    while ((job = TAILQ_FIRST(jobs))) {
        TAILQ_REMOVE(jobs, job, link);
        if (job->command.claim && sent)
            mrt_redis_claim_unknown(store, job);
        if (job->work != MRT_REDIS_COMMAND)
            free(job);
        else if (store->refusal && (!sent || job->command.type == MRT_START))
            mrt_redis_fail(store, job, store->refusal, "%s", store->refusal_text);
        else if (sent)
            mrt_redis_answer(store, job, MRT_UNKNOWN);
        else
            fail_unreachable(store, job);
    }
}

/* Once each address of the server has been tried in vain. */
static void report_unreachable(struct mrt_redis_store *store)
{
    struct mrt_redis_job *job;
    if (store->heard || store->refusal || store->failures < mrt_redis_seek_attempts(store) ||
        !(job = calloc(1, sizeof *job)))
        return;
    fail_unreachable(store, job);
}

static void break_connection(struct mrt_redis_store *store, mrt_time now)
{
    mrt_redis_wire_close(&store->wire);
    TAILQ_CONCAT(&store->moved, &store->waiting, link);
    TAILQ_CONCAT(&store->waiting, &store->moved, link);
    if (store->seek.confirmed) { /* the next server may be another one */
        mrt_redis_push_close(store, now);
        mrt_redis_wake_all(store);
    }
    if (mrt_redis_seek_end(store)) {
        store->again = now;
        end_jobs(store, &store->sent, true);
        return;
    }
    mrt_resolver_begin(&store->resolver, store->address.hosts, store->address.host_count, now);
    unsigned doublings = store->failures < PAUSE_DOUBLINGS ? store->failures : PAUSE_DOUBLINGS;
    store->failures++;
    store->again = mrt_time_add(now, PAUSE_MIN << doublings);
    end_jobs(store, &store->sent, true);
    report_unreachable(store);
}

/* --------------------------------------------------------------- beginning */

/* A claim that is tried late, by what the server has not read yet of the last connection,
   would stand until its lease ends: scripts refuse it by the epoch, a SET cannot. */
static bool has_earlier(const struct mrt_redis_store *store)
{
    return store->earlier.id != 0 && !TAILQ_EMPTY(&store->claims);
}

/* Numbers of connections begin again in each server: on another one, or the same after a restart,
   this number is somebody else's connection. */
static bool end_earlier(struct mrt_redis_store *store)
{
    char id[24];
    struct mrt_redis_connection *earlier = &store->earlier;
    bool same = *earlier->server && strcmp(earlier->server, store->connection.server) == 0;
    snprintf(id, sizeof id, "%lld", (long long)earlier->id);
    earlier->id = 0;
    if (!same)
        return true;
    mrt_redis_wire_words(&store->wire, "CLIENT", "KILL", "ID", id, NULL);
    return mrt_redis_job_add(store, MRT_REDIS_KILL, NULL) != NULL;
}

/* Before the first claim on a connection. */
static void ask_id(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    if (store->id_asked || !mrt_redis_job_add(store, MRT_REDIS_ID, job))
        return;
    store->id_asked = true;
    mrt_redis_wire_words(&store->wire, "CLIENT", "ID", NULL);
    if (!*store->connection.server)
        mrt_redis_check_server(store, job);
}

/* Notes the last connection, and whether this server has to say first which one it is. */
static bool begin_connection(struct mrt_redis_store *store)
{
    if (store->connection.id != 0)
        store->earlier = store->connection;
    store->connection = (struct mrt_redis_connection){0};
    store->id_asked = false;
    store->role_awaited = store->address.way != MRT_REDIS_DIRECT;
    if (store->role_awaited) {
        if (!mrt_redis_job_add(store, MRT_REDIS_ROLE, NULL))
            return false;
        mrt_redis_referral_check_put(&store->wire, &store->address);
    }
    store->server_awaited = store->address.uptime > 0 || has_earlier(store);
    return !store->server_awaited || mrt_redis_check_server(store, NULL);
}

static void connect_now(struct mrt_redis_store *store, mrt_time now)
{
    const char *name;
    const struct mrt_address *server = mrt_redis_seek_take(store, &name);
    store->epoch++;
    store->refusal = 0;
    store->heard = false;
    store->deadline = mrt_time_add(now, store->address.connect);
    bool begun = server && mrt_redis_wire_open(&store->wire, server, name, store->epoll);
    unsigned logins =
        begun ? mrt_redis_wire_login(&store->wire, &store->address, store->secret) : 0;
    while (begun && logins > 0) {
        begun = mrt_redis_job_add(store, MRT_REDIS_LOGIN, NULL);
        logins--;
    }
    begun = begun && begin_connection(store);
    if (!begun)
        break_connection(store, now);
}

/* Notes a command that is in `sent`; the answer to some is known already. */
static void write_job(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    if (job->command.type == MRT_START || job->command.claim)
        mrt_redis_check_memory(store, job);
    if (job->command.type == MRT_RENEW || job->command.type == MRT_STOP)
        mrt_redis_claims_put(store, job);
    if (mrt_redis_claim_of(store, job)) {
        ask_id(store, job);
        mrt_redis_claim_put(store, job);
    } else {
        mrt_redis_command_put(store, job);
    }
}

static void send_waiting(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_job *job;
    if (store->resume_due)
        mrt_redis_resume_begin(store);
    while ((job = TAILQ_FIRST(&store->waiting))) {
        TAILQ_REMOVE(&store->waiting, job, link);
        if (mrt_redis_push_hold_observe(store, job, now))
            continue;
        TAILQ_INSERT_TAIL(&store->sent, job, link);
        job->since = now;
        write_job(store, job);
    }
    if (!mrt_redis_wire_flush(&store->wire))
        break_connection(store, now);
}

/* Nobody knows yet where the server is. */
static bool is_looking(const struct mrt_redis_store *store)
{
    return store->servers.count == 0 && mrt_resolver_is_busy(&store->resolver);
}

void mrt_redis_connection_send(struct mrt_redis_store *store, mrt_time now)
{
    if (TAILQ_EMPTY(&store->waiting))
        return;
    if (store->wire.state == MRT_REDIS_CLOSED && now >= store->again && !is_looking(store)) {
        store->heard = store->heard && store->address.way == MRT_REDIS_DIRECT;
        if (mrt_redis_seek_begin(store, now))
            connect_now(store, now);
    }
    if (store->wire.state == MRT_REDIS_OPEN && !store->server_awaited && !store->role_awaited &&
        TAILQ_EMPTY(&store->moved))
        send_waiting(store, now);
}

/* ----------------------------------------------------------------- replies */

/* Whether a further command for the ticket of this job, the first, is on its way. */
static bool is_followed(const struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    const struct mrt_redis_job *other;
    if (mrt_id_none(job->command.ticket) || job->work == MRT_REDIS_SHOW)
        return false; /* of its session: an engine waits for its answer; or of no order */
    TAILQ_FOREACH (other, &store->sent, link)
        if (other->work == MRT_REDIS_COMMAND &&
            mrt_id_equal(other->command.ticket, job->command.ticket))
            return true;
    return false;
}

static bool lacks_script(const redisReply *reply)
{
    int error;
    const char *advice;
    return reply->type == REDIS_REPLY_ERROR &&
           mrt_redis_classify(reply->str, &error, &advice) == MRT_REDIS_NO_SCRIPT;
}

/* Whether the connection may go on. */
static bool login_reply(struct mrt_redis_store *store, const redisReply *reply)
{
    const char *advice;
    if (reply->type != REDIS_REPLY_ERROR)
        return true;
    int error;
    enum mrt_redis_outcome outcome = mrt_redis_classify(reply->str, &error, &advice);
    snprintf(store->refusal_text, sizeof store->refusal_text, "%.150s%s", reply->str, advice);
    mrt_note(&store->notes, MRT_REDIS_NOTE_REPLY, "%s", store->refusal_text);
    if (outcome == MRT_REDIS_REFUSED)
        store->refusal = error;
    return false;
}

/* The renewal behind an extension does not prove what the extension has not done yet. */
static void send_whole(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    TAILQ_INSERT_TAIL(&store->sent, job, link);
    job->whole = true;
    if (job->work == MRT_REDIS_COMMAND && job->command.claim) {
        mrt_redis_claim_put(store, job);
    } else if (job->work == MRT_REDIS_COMMAND) {
        mrt_redis_command_put(store, job);
    } else if (mrt_redis_claim_work_put(store, job)) {
        store->unproven |= job->work == MRT_REDIS_EXTEND;
    } else {
        TAILQ_REMOVE(&store->sent, job, link);
        free(job);
    }
}

static bool role_reply(struct mrt_redis_store *store, const redisReply *reply, mrt_time now)
{
    if (!mrt_redis_seek_check(store, reply, now))
        return false;
    store->role_awaited = false;
    mrt_redis_resume_begin(store);
    return true;
}

/* Of a request of the store's own. */
static bool own_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      const redisReply *reply, mrt_time now)
{
    bool useful = true, ends = store->server_awaited && has_earlier(store);
    bool resumes =
        job->work == MRT_REDIS_RAISE || job->work == MRT_REDIS_HAS || job->work == MRT_REDIS_PURGE;
    store->resume_due |= resumes && reply->type == REDIS_REPLY_ERROR;
    if (job->work == MRT_REDIS_LOGIN)
        useful = login_reply(store, reply);
    else if (job->work == MRT_REDIS_ROLE)
        useful = role_reply(store, reply, now);
    else if (job->work == MRT_REDIS_HAS)
        mrt_redis_resume_reply(store, job, reply);
    else if (job->work == MRT_REDIS_SERVER)
        useful = mrt_redis_check_server_reply(store, reply) && (!ends || end_earlier(store));
    else if (job->work == MRT_REDIS_MEMORY)
        mrt_redis_check_memory_reply(store, reply);
    else if (job->work == MRT_REDIS_ID && reply->type == REDIS_REPLY_INTEGER)
        store->connection.id = reply->integer;
    else
        mrt_redis_claim_reply(store, job, reply);
    free(job);
    return useful;
}

/* Whether a node of a cluster says that another one keeps the slot; that one is the next server. */
static bool is_referred(struct mrt_redis_store *store, const redisReply *reply, mrt_time now)
{
    struct mrt_host host;
    return store->address.way == MRT_REDIS_CLUSTER &&
           mrt_redis_referral_moved(&store->address, reply, store->seek.name, &host) &&
           (store->seek.referred || mrt_redis_seek_refer(store, &host, now));
}

/* Keeps a job that was not done for the node that was named instead. */
static bool is_moved(struct mrt_redis_store *store, struct mrt_redis_job *job,
                     const redisReply *reply, mrt_time now)
{
    if (job->work != MRT_REDIS_COMMAND || job->command.claim || job->stage != MRT_REDIS_ASKED ||
        !is_referred(store, reply, now))
        return false;
    job->whole = false;
    TAILQ_INSERT_TAIL(&store->moved, job, link);
    return true;
}

/* Takes the reply to the first job; false: the connection is of no use. */
static bool take_job_reply(struct mrt_redis_store *store, const redisReply *reply, mrt_time now)
{
    struct mrt_redis_job *job = TAILQ_FIRST(&store->sent);
    store->heard = true;
    store->server_heard = now;
    if (!job || (job->command.claim && is_referred(store, reply, now)))
        return false; /* a claim has several replies: its outcome is left as unknown */
    TAILQ_REMOVE(&store->sent, job, link);
    if (is_moved(store, job, reply, now))
        return true;
    if (job->work != MRT_REDIS_LOGIN && job->work != MRT_REDIS_SERVER &&
        job->work != MRT_REDIS_ROLE) {
        store->failures = 0;
        mrt_resolver_forget(&store->resolver); /* the server is here */
    }
    if (job->stage != MRT_REDIS_ASKED)
        mrt_redis_copies_reply(store, job, reply);
    else if (!job->whole && lacks_script(reply) && !is_followed(store, job))
        send_whole(store, job);
    else if (job->work != MRT_REDIS_COMMAND)
        return own_reply(store, job, reply, now);
    else if (!job->command.claim)
        mrt_redis_reply(store, job, reply, now);
    else if (!mrt_redis_claim_reply(store, job, reply))
        TAILQ_INSERT_HEAD(&store->sent, job, link); /* more belong to it */
    return true;
}

/* A master that has become a replica, and a node whose slot has gone, are left. */
static bool take_reply(void *context, const redisReply *reply, mrt_time now)
{
    struct mrt_redis_store *store = context;
    bool demoted = store->address.way == MRT_REDIS_SENTINEL && mrt_redis_referral_is_replica(reply);
    return take_job_reply(store, reply, now) && !demoted &&
           (TAILQ_EMPTY(&store->moved) || !TAILQ_EMPTY(&store->sent));
}

void mrt_redis_connection_receive(struct mrt_redis_store *store, mrt_time now)
{
    if (store->wire.state == MRT_REDIS_CLOSED)
        return;
    if (!mrt_redis_wire_read(&store->wire, now, take_reply, store) ||
        !mrt_redis_wire_flush(&store->wire)) {
        break_connection(store, now);
        if (store->refusal)
            end_jobs(store, &store->waiting, false);
    }
}

/* -------------------------------------------------------------------- time */

/* A peer that has said nothing yet is not known to be a server: it is waited for no longer than for
   a connection. */
static mrt_time reply_limit(const struct mrt_redis_store *store)
{
    mrt_time limit = mrt_redis_answer_limit(store);
    return store->heard ? limit : mrt_time_min(limit, store->address.connect);
}

/* When the connection is given up for being slow. */
static mrt_time patience_end(const struct mrt_redis_store *store)
{
    const struct mrt_redis_job *job;
    if (store->wire.state == MRT_REDIS_CONNECTING)
        return store->deadline;
    TAILQ_FOREACH (job, &store->sent, link)
        if (job->work != MRT_REDIS_LOGIN)
            return mrt_time_add(job->since, reply_limit(store));
    return MRT_TIME_NEVER;
}

/* No sentinel has named a server. */
static void fail_seeking(struct mrt_redis_store *store, mrt_time now)
{
    store->refusal = store->seek.error;
    snprintf(store->refusal_text, sizeof store->refusal_text, "%s", store->seek.fault);
    break_connection(store, now);
    if (store->refusal)
        end_jobs(store, &store->waiting, false);
}

void mrt_redis_connection_seek(struct mrt_redis_store *store, mrt_time now)
{
    if (!mrt_redis_seek_receive(store, now))
        fail_seeking(store, now);
}

void mrt_redis_connection_tick(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_job *job = TAILQ_FIRST(&store->waiting);
    if (!mrt_redis_seek_tick(store, now))
        fail_seeking(store, now);
    if (is_looking(store) && job && now >= mrt_time_add(job->since, store->address.connect))
        report_unreachable(store);
    if (now >= patience_end(store)) {
        store->wire.error = ETIMEDOUT;
        break_connection(store, now);
    }
    while ((job = TAILQ_FIRST(&store->waiting)) &&
           now >= mrt_time_add(job->since, store->address.connect)) {
        TAILQ_REMOVE(&store->waiting, job, link);
        fail_unreachable(store, job);
    }
}

mrt_time mrt_redis_connection_next(const struct mrt_redis_store *store)
{
    const struct mrt_redis_job *job = TAILQ_FIRST(&store->waiting);
    mrt_time next = mrt_time_min(patience_end(store), mrt_redis_seek_next(store));
    if (!job)
        return next;
    if (is_looking(store))
        next = mrt_time_min(next, mrt_resolver_next(&store->resolver, mrt_time_now()));
    else if (store->wire.state == MRT_REDIS_CLOSED && !mrt_redis_seek_is_busy(store))
        next = mrt_time_min(next, store->again);
    return mrt_time_min(next, mrt_time_add(job->since, store->address.connect));
}
