/*
 * OBSERVE: who is first in a queue, and a watch that tells when it is another.
 *
 *   sync + list                  the newest, not what a follower has
 *     one is first: get + watch  its end and its new values are told, and nothing else
 *     none: list + watch on the directory
 *     no directory: exists + watch
 *
 * Who observes a leader is not woken by candidates that come and go. A node that is gone by
 * the time it is read is looked for again. The value is the node's data as it is, so leaders of
 * Curator and kazoo show theirs.
 */
#include "store/zookeeper/internal.h"

#include <string.h>

#define TRIES_MAX 8

static void list(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    if (++look->tries > TRIES_MAX) {
        mrt_zk_query_answer(session, look, MRT_UNKNOWN);
        return;
    }
    mrt_zk_query_send(session, look, MRT_ZK_LOOK_LIST, look->path);
}

void mrt_zk_observe_begin(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    if (mrt_zk_send_watch(session, MRT_ZK_LOOK_SYNC, look->number, look->path))
        list(session, look);
    else
        mrt_zk_query_answer(session, look, MRT_UNKNOWN);
}

/* Index of the first contender; -1: none. */
static int find_first(const struct String_vector *names)
{
    int found = -1;
    int32_t lowest = 0;
    for (int i = 0; i < names->count; i++) {
        struct mrt_zk_place place = mrt_zk_place_of(names->data[i]);
        if (place.family == MRT_ZK_FOREIGN ||
            (found >= 0 && !mrt_zk_before(place.sequence, lowest)))
            continue;
        found = i;
        lowest = place.sequence;
    }
    return found;
}

static void answer(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    look->job->event.recheck = MRT_ZK_RECHECK;
    mrt_zk_query_answer(session, look, MRT_HOLDER);
}

static void listed(struct mrt_zk_session *session, struct mrt_zk_query *look, bool watching,
                   const struct mrt_zk_reply *reply)
{
    int first = find_first(reply->names);
    if (first >= 0) {
        snprintf(look->node, sizeof look->node, "%s/%.250s", look->path, reply->names->data[first]);
        mrt_zk_query_send(session, look, MRT_ZK_LOOK_FIRST, look->node);
    } else if (watching || look->job->command.once) {
        answer(session, look);
    } else {
        mrt_zk_query_send(session, look, MRT_ZK_LOOK_WATCHING, look->path);
    }
}

static void no_node(struct mrt_zk_session *session, struct mrt_zk_query *look,
                    enum mrt_zk_request_kind kind)
{
    if (kind == MRT_ZK_LOOK_FIRST)
        list(session, look);
    else if (kind == MRT_ZK_LOOK_MISSING || look->job->command.once)
        answer(session, look);
    else
        mrt_zk_query_send(session, look, MRT_ZK_LOOK_MISSING, look->path);
}

static void first_read(struct mrt_zk_session *session, struct mrt_zk_query *look,
                       const struct mrt_zk_reply *reply)
{
    if (!mrt_zk_query_keep(session, look, reply->text, reply->length))
        return;
    const struct mrt_zk_place place = mrt_zk_place_of(strrchr(look->node, '/') + 1);
    look->job->event.fence = (uint64_t)mrt_zk_first_czxid(&place, reply->stat) * MRT_ZK_FENCE_SPAN;
    answer(session, look);
}

void mrt_zk_observe_reply(struct mrt_zk_session *session, struct mrt_zk_query *look,
                          enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_NO_NODE)
        no_node(session, look, kind);
    else if (outcome != MRT_ZK_DONE)
        mrt_zk_query_answer_code(session, look, reply->code);
    else if (kind == MRT_ZK_LOOK_FIRST)
        first_read(session, look, reply);
    else if (kind == MRT_ZK_LOOK_MISSING)
        list(session, look); /* it has been made meanwhile */
    else
        listed(session, look, kind == MRT_ZK_LOOK_WATCHING, reply);
}
