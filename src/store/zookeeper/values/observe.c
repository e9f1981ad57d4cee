/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OBSERVE: the first ticket of a queue, and a watch that reports when it is another.
 *
 *   sync + list                  the newest, not what a follower has
 *     one is first: get + watch  its end and its new values are told, and nothing else
 *     none: list + watch on the directory
 *     no directory: exists + watch
 *
 * An observer of a leader is not woken by candidates that come and go. A node that is gone by
 * the time it is read is looked for again. The value is the node's data as it is, so leaders of
 * Curator and kazoo show theirs.
 */
#include "store/zookeeper/values/observe.h"

#include "store/zookeeper/names.h"
#include "store/zookeeper/ticket/view.h"
#include "store/zookeeper/values/query.h"

#include <string.h>

#define TRIES_MAX 8

static mrt_zk_payload carry_watch;
static mrt_zk_query_reply list_answered, watched_list_answered, missing_answered, first_answered;
static const struct mrt_zk_step list_step = {.send = mrt_zk_send_list,
                                             .query_reply = list_answered};
/* Lists, and watches the directory. */
static const struct mrt_zk_step watched_list_step = {.send = mrt_zk_send_list,
                                                     .payload = carry_watch,
                                                     .event = mrt_zk_query_event,
                                                     .query_reply = watched_list_answered};
/* Watches for the directory to be made. */
static const struct mrt_zk_step missing_step = {.send = mrt_zk_send_exists,
                                                .payload = carry_watch,
                                                .event = mrt_zk_query_event,
                                                .query_reply = missing_answered};
/* Reads the first node, and watches it. */
static const struct mrt_zk_step first_step = {.send = mrt_zk_send_get,
                                              .payload = carry_watch,
                                              .event = mrt_zk_query_event,
                                              .query_reply = first_answered};

/* A command that is answered once sets no watch. */
static void carry_watch(struct mrt_zk_outgoing *request)
{
    if (request->query->job->command.once)
        request->watch = 0;
}

static void list(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    if (++query->tries > TRIES_MAX) {
        mrt_zk_query_answer(session, query, MRT_UNKNOWN);
        return;
    }
    mrt_zk_query_send(session, query, &list_step, query->path);
}

void mrt_zk_observe_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path)
{
    struct mrt_zk_query *query = mrt_zk_query_new(session, job, path);
    if (!query)
        return;
    if (mrt_zk_query_sync(session, query))
        list(session, query);
    else
        mrt_zk_query_answer(session, query, MRT_UNKNOWN);
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

static void answer(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    query->job->event.recheck = MRT_ZK_RECHECK;
    mrt_zk_query_answer(session, query, MRT_HOLDER);
}

static void listed(struct mrt_zk_session *session, struct mrt_zk_query *query, bool watching,
                   const struct mrt_zk_reply *reply)
{
    int first = find_first(reply->names);
    if (first >= 0) {
        snprintf(query->node, sizeof query->node, "%s/%.250s", query->path,
                 reply->names->data[first]);
        mrt_zk_query_send(session, query, &first_step, query->node);
    } else if (watching || query->job->command.once) {
        answer(session, query);
    } else {
        mrt_zk_query_send(session, query, &watched_list_step, query->path);
    }
}

/* The directory does not exist. */
static void no_directory(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    if (query->job->command.once)
        answer(session, query);
    else
        mrt_zk_query_send(session, query, &missing_step, query->path);
}

static void first_read(struct mrt_zk_session *session, struct mrt_zk_query *query,
                       const struct mrt_zk_reply *reply)
{
    if (!mrt_zk_query_keep(session, query, reply->text, reply->length))
        return;
    const struct mrt_zk_place place = mrt_zk_place_of(strrchr(query->node, '/') + 1);
    query->job->event.fence = (uint64_t)mrt_zk_first_czxid(&place, reply->stat) * MRT_ZK_FENCE_SPAN;
    answer(session, query);
}

static void answer_list(struct mrt_zk_session *session, struct mrt_zk_query *query, bool watching,
                        const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_NO_NODE)
        no_directory(session, query);
    else if (outcome != MRT_ZK_DONE)
        mrt_zk_query_answer_code(session, query, reply->code);
    else
        listed(session, query, watching, reply);
}

static void list_answered(struct mrt_zk_session *session, struct mrt_zk_query *query,
                          const struct mrt_zk_reply *reply)
{
    answer_list(session, query, false, reply);
}

static void watched_list_answered(struct mrt_zk_session *session, struct mrt_zk_query *query,
                                  const struct mrt_zk_reply *reply)
{
    answer_list(session, query, true, reply);
}

static void missing_answered(struct mrt_zk_session *session, struct mrt_zk_query *query,
                             const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_NO_NODE)
        answer(session, query);
    else if (outcome == MRT_ZK_DONE)
        list(session, query); /* it has been made meanwhile */
    else
        mrt_zk_query_answer_code(session, query, reply->code);
}

static void first_answered(struct mrt_zk_session *session, struct mrt_zk_query *query,
                           const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_NO_NODE)
        list(session, query);
    else if (outcome == MRT_ZK_DONE)
        first_read(session, query, reply);
    else
        mrt_zk_query_answer_code(session, query, reply->code);
}
