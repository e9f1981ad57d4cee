/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that the server publishes to this client.
 *
 * A message is a view: the weight ahead of a ticket, counted by a script when it let the ticket
 * in. The weight ahead only falls, so an old message is still true. A message is believed if its
 * signature is right (sign.h). Any client that may publish, or a script of an older version, may
 * send one without it: such a message only wakes the waiter, which then reads the view.
 */
#include "store/redis/claim.h"
#include "store/redis/observe.h"
#include "store/redis/push.h"
#include "store/redis/reply.h"
#include "store/redis/sign.h"

#include <inttypes.h>
#include <stdio.h>

#define WHAT_SIZE 100

/* Of "TICKET WHAT SIGN": WHAT, if a script has signed it. */
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
static void take_own(struct mrt_redis_store *store, const char *text)
{
    char session[33], ticket[33], what[WHAT_SIZE];
    int64_t number, ahead;
    int behind, end_at = 0;
    struct mrt_id session_id, ticket_id;
    if (sscanf(text, "%32[0-9a-f] %n%32[0-9a-f] ", session, &end_at, ticket) != 2 ||
        !mrt_id_parse(session, &session_id) || !mrt_id_parse(ticket, &ticket_id))
        return;
    struct mrt_event *event = mrt_redis_tell(store, MRT_WAKE, session_id, ticket_id);
    if (!event || !is_signed(store, text + end_at, what))
        return;
    if (sscanf(what, "%" SCNd64 " %" SCNd64 " %1d%n", &number, &ahead, &behind, &end_at) == 3 &&
        what[end_at] == '\0' && mrt_redis_view(store, event, number, ahead, behind != 0, 0))
        event->type = MRT_VIEW;
    else if (sscanf(what, "revoked %" SCNu64, &event->revoked) == 1)
        event->type = MRT_REVOKED;
}

/* A subscription to a queue's channel stands, or the queue's first ticket has changed. */
static void take_change(struct mrt_redis_store *store, const char *queue, bool message)
{
    struct mrt_redis_watch *watch = mrt_redis_watch_find(store, queue);
    if (watch && !message) {
        watch->stands = true;
        mrt_redis_observe_release(store, watch->queue);
    } else if (watch && watch->stands && mrt_redis_observers_tell(store, watch->queue) == 0) {
        mrt_redis_push_put(store, "UNSUBSCRIBE", "e:", watch->queue);
        mrt_redis_watch_free(store, watch);
    }
}

/* The name behind the store's base and this kind; NULL: the channel is another's. */
static const char *name_in(const struct mrt_redis_store *store, const char *channel,
                           const char *kind)
{
    size_t base = strlen(store->address.base), length = strlen(kind);
    bool is = strncmp(channel, store->address.base, base) == 0 &&
              strncmp(channel + base, kind, length) == 0;
    return is ? channel + base + length : NULL;
}

/* [message, CHANNEL, TEXT], or [subscribe or unsubscribe, CHANNEL, COUNT]. */
static bool take(void *context, const redisReply *reply, mrt_time now)
{
    struct mrt_redis_store *store = context;
    if (store->push_logins > 0) {
        store->push_logins--;
        return reply->type != REDIS_REPLY_ERROR;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING)
        return false;
    const char *what = reply->element[0]->str, *channel = reply->element[1]->str;
    const char *queue = name_in(store, channel, "e:");
    const redisReply *text = reply->element[2];
    bool own = strcmp(channel, store->channel) == 0, message = strcmp(what, "message") == 0;
    if (queue && strcmp(what, "unsubscribe") != 0)
        take_change(store, queue, message);
    else if (own && strcmp(what, "subscribe") == 0)
        mrt_redis_push_subscribed(store, now);
    else if (message && text->type == REDIS_REPLY_STRING && own)
        take_own(store, text->str);
    else if (message && text->type == REDIS_REPLY_STRING)
        mrt_redis_claim_released(store, text->str);
    return true;
}

void mrt_redis_messages_receive(struct mrt_redis_store *store, mrt_time now)
{
    if (store->push.state != MRT_REDIS_CLOSED &&
        !mrt_redis_wire_read(&store->push, now, take, store))
        mrt_redis_push_close(store, now);
}
