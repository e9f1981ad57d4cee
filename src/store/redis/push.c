/*
 * The connection on which the server tells: hiredis 0.14 knows no pushes beside replies.
 * It is made when a ticket of this client has to wait for the first time, so a lock that
 * nobody contends costs one connection; and made anew when one waits and it is not there.
 *
 * What was told before anybody listened is lost. So the answer that a ticket has to wait is
 * held back until the subscription stands, and then the ticket is looked at once more, as it is if
 * that was asked before and answered later, for the two connections are no order; or
 * until the subscription fails. When it breaks later, all tickets look anew. Behind all
 * that each waiter looks by itself from time to time.
 *
 * A push is a view: what a script counted ahead of a ticket when it let it in. Weight ahead
 * only falls, so an old one is still true. It is believed if it is signed (sign.h). What is
 * not, by whoever may publish or by a script of an older version, only wakes: a look decides.
 */
#include "store/redis/internal.h"
#include "store/redis/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHAT_SIZE 100
#define PAUSE (100 * MRT_MILLISECOND)
#define CONNECT_MAX MRT_SECOND /* somebody waits for it who could look for himself */

static void end(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_job *job;
    bool was_subscribed = store->push_subscribed;
    mrt_redis_wire_close(&store->push);
    store->push_subscribed = false;
    store->push_again = mrt_time_add(now, PAUSE);
    mrt_redis_observe_end(store);
    while ((job = TAILQ_FIRST(&store->held))) {
        TAILQ_REMOVE(&store->held, job, link);
        mrt_redis_answer(store, job, MRT_VIEW);
    }
    if (was_subscribed)
        mrt_redis_wake_all(store);
}

void mrt_redis_push_put(struct mrt_redis_store *store, const char *command, const char *channel)
{
    const struct mrt_redis_text words[] = {{command, strlen(command)}, {channel, strlen(channel)}};
    mrt_redis_wire_put(&store->push, words, 2);
}

static void put_key(struct mrt_redis_store *store, const char *command, const char *key)
{
    char channel[MRT_REDIS_CHANNEL_MAX];
    mrt_redis_claim_channel(store, key, channel);
    mrt_redis_push_put(store, command, channel);
}

/* Begins to connect and subscribe. */
static void begin(struct mrt_redis_store *store, mrt_time now)
{
    const struct mrt_redis_servers *servers = &store->servers;
    size_t last = store->server_next + servers->count - 1; /* where commands go */
    if (servers->count == 0 ||
        !mrt_redis_wire_open(&store->push, &servers->at[last % servers->count], store->epoll)) {
        end(store, now);
        return;
    }
    store->push_deadline = mrt_time_add(now, mrt_time_min(store->address.connect, CONNECT_MAX));
    store->push_logins = mrt_redis_wire_login(&store->push, &store->address, store->secret);
    mrt_redis_push_put(store, "SUBSCRIBE", store->channel);
    const struct mrt_redis_claim *claim;
    TAILQ_FOREACH (claim, &store->claims, link)
        if (claim->waits)
            put_key(store, "SUBSCRIBE", claim->key);
    mrt_redis_observe_begin(store);
    if (!mrt_redis_wire_flush(&store->push))
        end(store, now);
}

bool mrt_redis_push_want(struct mrt_redis_store *store, mrt_time now)
{
    if (store->push.state == MRT_REDIS_CLOSED && now >= store->push_again)
        begin(store, now);
    return store->push.state != MRT_REDIS_CLOSED;
}

/* A look at a ticket that is there: whatever this one fails for, the ticket stays. */
static void repeat(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    job->repeated = true;
    TAILQ_INSERT_TAIL(&store->waiting, job, link);
}

bool mrt_redis_push_hold(struct mrt_redis_store *store, struct mrt_redis_job *job, mrt_time now)
{
    if (store->push_subscribed && job->since > store->push_since)
        return false;
    if (store->push_subscribed) {
        repeat(store, job);
        return true;
    }
    job->event.recheck = mrt_time_min(job->event.recheck, MRT_REDIS_RECHECK_MAX); /* deaf yet */
    if (!mrt_redis_push_want(store, now))
        return false;
    job->since = now;
    TAILQ_INSERT_TAIL(&store->held, job, link);
    return true;
}

void mrt_redis_push_listen(struct mrt_redis_store *store, const char *key, mrt_time now)
{
    if (store->push.state == MRT_REDIS_CLOSED) {
        if (now >= store->push_again)
            begin(store, now); /* for all claims that wait */
        return;
    }
    put_key(store, "SUBSCRIBE", key);
    if (!mrt_redis_wire_flush(&store->push))
        end(store, now);
}

void mrt_redis_push_ignore(struct mrt_redis_store *store, const char *key)
{
    if (store->push.state == MRT_REDIS_CLOSED)
        return;
    put_key(store, "UNSUBSCRIBE", key);
    mrt_redis_wire_flush(&store->push); /* if it has broken, that shows when it is read */
}

/* Who observes waits for a channel of his own, which may have been asked for later. */
static void subscribed(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_job *job, *next;
    store->push_subscribed = true;
    store->push_since = now;
    TAILQ_FOREACH_SAFE (job, &store->held, link, next) {
        if (job->command.type == MRT_OBSERVE)
            continue;
        TAILQ_REMOVE(&store->held, job, link);
        repeat(store, job);
    }
}

/* Of "TICKET WHAT SIGN": what is told, if a script has told it. */
static bool is_signed(const struct mrt_redis_store *store, const char *text, char what[WHAT_SIZE])
{
    char sign[MRT_REDIS_SIGN_SIZE];
    const char *first = strchr(text, ' '), *last = strrchr(text, ' ');
    if (first == last || last - text >= WHAT_SIZE)
        return false;
    mrt_redis_sign(store->key, text, (size_t)(last - text), sign);
    snprintf(what, WHAT_SIZE, "%.*s", (int)(last - first - 1), first + 1);
    return strcmp(last + 1, sign) == 0;
}

/* "SESSION TICKET" and then "NUMBER AHEAD BEHIND", "revoked COUNT" or "gone", as the scripts have
   it, and the sign. */
static void pushed(struct mrt_redis_store *store, const char *text)
{
    char session[33], ticket[33], what[WHAT_SIZE];
    int64_t number, ahead;
    int behind, end_at = 0;
    struct mrt_id session_id, ticket_id;
    if (sscanf(text, "%32[0-9a-f] %n%32[0-9a-f] ", session, &end_at, ticket) != 2 ||
        !mrt_id_parse(session, &session_id) || !mrt_id_parse(ticket, &ticket_id))
        return;
    struct mrt_event *event = mrt_redis_tell(store, MRT_WAKE, session_id);
    if (!event)
        return;
    event->ticket = ticket_id;
    if (!is_signed(store, text + end_at, what))
        return;
    if (sscanf(what, "%" SCNd64 " %" SCNd64 " %1d%n", &number, &ahead, &behind, &end_at) == 3 &&
        what[end_at] == '\0' && mrt_redis_view(store, event, number, ahead, behind != 0, 0))
        event->type = MRT_VIEW;
    else if (sscanf(what, "revoked %" SCNu64, &event->revoked) == 1)
        event->type = MRT_REVOKED;
}

static bool take(struct mrt_redis_store *store, const redisReply *reply, mrt_time now)
{
    if (store->push_logins > 0) {
        store->push_logins--;
        return reply->type != REDIS_REPLY_ERROR;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[0]->type != REDIS_REPLY_STRING)
        return false;
    if (reply->element[1]->type != REDIS_REPLY_STRING)
        return false;
    bool own = strcmp(reply->element[1]->str, store->channel) == 0;
    bool message = strcmp(reply->element[0]->str, "message") == 0;
    const char *channel = reply->element[1]->str;
    if (strcmp(reply->element[0]->str, "unsubscribe") != 0 &&
        mrt_redis_observe_told(store, channel, message))
        return true;
    if (own && strcmp(reply->element[0]->str, "subscribe") == 0)
        subscribed(store, now);
    else if (!message || reply->element[2]->type != REDIS_REPLY_STRING)
        return true;
    else if (own)
        pushed(store, reply->element[2]->str);
    else
        mrt_redis_claim_told(store, reply->element[2]->str);
    return true;
}

static bool take_all(struct mrt_redis_store *store, mrt_time now)
{
    redisReply *reply;
    bool fine = mrt_redis_wire_receive(&store->push);
    for (;;) {
        if (!mrt_redis_wire_next(&store->push, &reply))
            return false;
        if (!reply)
            return fine;
        bool useful = take(store, reply, now);
        freeReplyObject(reply);
        if (!useful)
            return false;
    }
}

void mrt_redis_push_receive(struct mrt_redis_store *store, mrt_time now)
{
    if (store->push.state != MRT_REDIS_CLOSED && !take_all(store, now))
        end(store, now);
}

/* Somebody is held for a subscription; how long at most. */
mrt_time mrt_redis_push_next(const struct mrt_redis_store *store)
{
    const struct mrt_redis_job *job = TAILQ_FIRST(&store->held);
    if (store->push.state == MRT_REDIS_CLOSED)
        return MRT_TIME_NEVER;
    if (!store->push_subscribed)
        return store->push_deadline;
    return job ? mrt_time_add(job->since, CONNECT_MAX) : MRT_TIME_NEVER;
}

void mrt_redis_push_tick(struct mrt_redis_store *store, mrt_time now)
{
    if (now >= mrt_redis_push_next(store))
        end(store, now);
}
