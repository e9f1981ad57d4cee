/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of a semaphore's queue: no departure is missed, and few tickets are told of it. A
 * ticket waits until the weights ahead and its own fit, so any of the holders may be the one to let
 * it in, and a ticket that watches the one N places ahead misses the others.
 *
 *  - Each fourth ticket marks its node when it is granted: it sets its data to what they were.
 *  - A waiter watches the node of the nearest of these that is ahead and does not fit. It cannot
 *    be granted before that one is, or is gone, and is told of both.
 *  - Where there is none, it watches the list of children, as the first waiters do then: four of
 *    them, if all tickets stay. Were each granted ticket to mark, one would watch; but a
 *    mark is a write, which the servers agree on and put on disk, and a list is not.
 *  - A ticket that fits at its first list may not have fitted when it was created: another that
 *    listed in between waits for its mark. So it marks too, unless no child has come or gone
 *    since its creation (the directory's pzxid, in the list's reply, is the own czxid).
 *  - A change that is there when the watch is set came before the list, or after it: so a list
 *    follows. The watch stays, and is not read again.
 *
 * The mark is a hint, and the list decides: a mark that is lost, or somebody else's change of
 * the data, costs time and nothing else. One of unknown outcome is written again.
 * The rule is test/model/semaphore.pml's, which says how it was found.
 */
#include "store/zookeeper/ticket/semaphore.h"

#include "base/assert.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/watch/watch.h"

static mrt_zk_payload carry_mark;
static mrt_zk_ticket_reply marked, mark_read;
static const struct mrt_zk_step mark_step = {
    .send = mrt_zk_send_set, .payload = carry_mark, .ticket_reply = marked, .any_attempt = true};
/* Reads what somebody else has written there. */
static const struct mrt_zk_step read_step = {
    .send = mrt_zk_send_get, .ticket_reply = mark_read, .any_attempt = true};

/* Which tickets mark, by their sequence numbers. */
#define MARK_EVERY 4
#define MARK_FIRST 2

bool mrt_zk_marks(const struct mrt_zk_place *place)
{
    return (uint32_t)place->sequence % MARK_EVERY == MARK_FIRST;
}

bool mrt_zk_mark_due(const struct mrt_zk_ticket *ticket, const struct Stat *directory)
{
    if (ticket->place.family != MRT_ZK_SEMAPHORE || ticket->held || !mrt_zk_marks(&ticket->place))
        return false;
    return ticket->waited || directory->pzxid != ticket->czxid;
}

void mrt_zk_mark(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + 256];
    if (!ticket->mark_due)
        return;
    MRT_ASSERT(ticket->place.family == MRT_ZK_SEMAPHORE && ticket->node[0]);
    snprintf(path, sizeof path, "%s/%s", ticket->path, ticket->node);
    mrt_zk_send(session, &mark_step, ticket, 0, path);
}

/* Somebody else has written there meanwhile: that is read first, and the mark set after it. */
static void read_first(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/%s", ticket->path, ticket->node);
    mrt_zk_send(session, &read_step, ticket, 0, path);
}

static void carry_mark(struct mrt_zk_outgoing *request)
{
    mrt_zk_ticket_carry(request);
    request->version = mrt_zk_ticket_data_version(request->ticket);
}

/* It was neither marked nor read: a mark of unknown outcome stays due. */
static void not_marked(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    if (code == ZBADVERSION)
        read_first(session, ticket);
    else if (mrt_zk_code(code)->outcome != MRT_ZK_PERHAPS)
        ticket->mark_due = false;
}

static void mark_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                      const struct mrt_zk_reply *reply)
{
    if (mrt_zk_code(reply->code)->outcome == MRT_ZK_DONE) {
        mrt_zk_ticket_data_known(session, ticket, reply);
        mrt_zk_mark(session, ticket);
    } else {
        not_marked(session, ticket, reply->code);
    }
}

static void marked(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    if (mrt_zk_code(reply->code)->outcome == MRT_ZK_DONE) {
        mrt_zk_ticket_data_known(session, ticket, reply);
        ticket->mark_due = false;
    } else {
        not_marked(session, ticket, reply->code);
    }
}

void mrt_zk_mark_seen(struct mrt_zk_session *session, struct mrt_zk_watch *watch,
                      const struct Stat *node)
{
    const struct mrt_zk_ticket *ticket;
    if (node->version == 0)
        return;
    TAILQ_FOREACH (ticket, &watch->tickets, watch_link)
        mrt_zk_wake(session->store, ticket->id);
}
