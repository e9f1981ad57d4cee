/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing the lock on, and the other events of watches.
 *
 * A waiter watches the node just ahead. If others are ahead of that node, its deletion says little:
 * its client may have held the lock, or have given up waiting for it. So a list follows each
 * deletion, with a reply that grows with the queue. A holder of ours therefore says more. It
 * releases by one transaction that creates a marker named like its node, deletes the marker and
 * deletes the node. A waiter that watches the marker gets "created", before the "deleted" of the
 * node. Only a holder does that, so the event is the grant: nothing is listed, however long the
 * queue. A marker never outlives its transaction. Other programs only see a deletion.
 *
 * It is sound by these rules; each has tests called pass_rule_N and seeded defects.
 *
 *  1 A pass says that what passed, and all that was ahead of it, is gone. The weight of the
 *    newest view without these is the new weight ahead, and the rule of the core decides.
 *  2 A holder may pass if the view that granted showed nothing ahead. This is not worked out
 *    again at the release. A waiter that gives up, and a try that was blocked, delete.
 *  3 A marker is called exactly as the node (UUID and sequence), so that no other lock's can
 *    be taken for it. The directory is in the chroot, not a container, which would be reaped,
 *    and as readable as the tickets. If it is missing it is made, for the next time. Where locks
 *    are not open to all, a pass is believed only after the directory's ACL has shown that nobody
 *    may make markers who may not do the same in a lock.
 *  4 Watches are set in this order, back to back: own node, marker, node ahead. A release in
 *    between is then seen by the marker, or finds the node gone when its watch is set.
 *  5 The own node is watched too. A ticket behind it waits for the same holder from the moment it
 *    is deleted, so from then on no pass is believed: the ticket is viewed again. A watch that was
 *    used up by a change of data is set anew, and until that is answered nothing is believed
 *    either. A refusal to set one leads to a list.
 *  6 A node that is gone when its watch is set says nothing, even if it was the only one
 *    ahead: a holder that was detached, or made lighter, goes on under another name. So a list
 *    follows.
 *  7 A pass proves nothing of the lease. The core compares the lease with the clock before
 *    it takes any event; a pass that comes too late is for a session that has ended.
 *  8 A ticket whose removal has begun gets no pass. Numbers tell watches from earlier
 *    ones: an event whose number is unknown belongs to no ticket.
 *  9 A pass that was refused becomes a deletion. "No node" may be the marker's directory or
 *    the ticket, which the deletion finds out. A pass of unknown outcome is sent again. That is
 *    harmless, because without the node the transaction does nothing.
 * 10 A node that went without a pass leaves the watch on its marker behind, on the server
 *    too. The client removes it there when the watch of the node ends; its waiters share the one
 *    watch. Nodes of other programs have no markers, and none is watched.
 * 11 A marker that exists when its watch is set is none of ours and no grant.
 * 12 If only the node ahead is in the way, by the newest list, its deletion is the grant, by any
 * client: the tickets ahead never become more. Then its marker is not watched. A node that goes on
 * under another name is still ahead. So the transaction that renames it first sets its data, which
 * uses up its watches: a waiter is told of a change, reads the node, and finds it gone by rule 6.
 * Rule 5 holds here too. A watch that outlived its connection would be told of a deletion in any
 * case; none does.
 */
#include "store/zookeeper/watch/pass.h"

#include "store/zookeeper/answer.h"
#include "store/zookeeper/ticket/semaphore.h"
#include "store/zookeeper/watch/watch.h"

#include <string.h>

static void on_own_event(zhandle_t *handle, int type, int state, const char *path, void *context);
static mrt_zk_number_reply marker_answered, own_answered;
/* Nodes are watched by reading them (watch/watch.c); markers before they exist. */
const struct mrt_zk_step mrt_zk_watch_step = {
    .send = mrt_zk_send_get, .event = mrt_zk_watch_event, .number_reply = mrt_zk_watch_answered};
const struct mrt_zk_step mrt_zk_watch_marker_step = {
    .send = mrt_zk_send_exists, .event = mrt_zk_watch_event, .number_reply = marker_answered};
const struct mrt_zk_step mrt_zk_watch_own_step = {
    .send = mrt_zk_send_get, .event = on_own_event, .number_reply = own_answered};

static struct mrt_zk_watch *find_watch(const struct mrt_zk_session *session, uint64_t number)
{
    struct mrt_zk_watch *watch;
    HASH_FIND(by_id, session->watches_by_id, &number, sizeof number, watch);
    return watch;
}

static struct mrt_zk_ticket *find_by_own(const struct mrt_zk_session *session, uint64_t number)
{
    struct mrt_zk_ticket *ticket;
    HASH_FIND(by_own, session->tickets_by_own, &number, sizeof number, ticket);
    return ticket;
}

/* ---------------------------------------------------------------- grants */

/* So much is left ahead of it. */
static void take_over(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    ticket->ahead = 0;
    mrt_zk_unwait(ticket);
    mrt_zk_ticket_report(session->store, ticket, ahead);
    if (ticket->lingers)
        mrt_zk_wake(session->store, ticket->id); /* to list, and watch that */
}

/* The marker was created: what was waited for, and all ahead of that, is gone. The node's own event
   follows, and finds nobody. */
static void passed(struct mrt_zk_session *session, struct mrt_zk_watch *watch)
{
    struct mrt_zk_ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (ticket, &watch->tickets, watch_link, next)
        if (ticket->own_known)
            take_over(session, ticket, ticket->after);
    watch->marker = false;
    mrt_zk_watch_drop(session, watch);
}

/* It was deleted: a ticket with nothing else ahead need not read a list. */
static void ended(struct mrt_zk_session *session, struct mrt_zk_watch *watch)
{
    struct mrt_zk_ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (ticket, &watch->tickets, watch_link, next)
        if (mrt_zk_ticket_waits_for_last(ticket) && ticket->own_known)
            take_over(session, ticket, ticket->before + ticket->after);
    mrt_zk_watch_drop(session, watch);
}

/* ---------------------------------------------------------------- answers */

static void own_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                      const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE && ticket->place.family == MRT_ZK_EXCLUSIVE &&
        reply->stat->czxid != ticket->czxid)
        outcome = MRT_ZK_NO_NODE; /* another's is called so by now */
    if (outcome == MRT_ZK_DONE)
        mrt_zk_ticket_data_known(session, ticket, reply);
    if (outcome == MRT_ZK_DONE) {
        ticket->own_known = true;
        return;
    }
    mrt_zk_disown(session, ticket);
    ticket->unpassed |= outcome == MRT_ZK_NOT_DONE;
    if (outcome == MRT_ZK_NOT_DONE || outcome == MRT_ZK_NO_NODE)
        mrt_zk_wake(session->store, ticket->id);
}

static void marker_reply(struct mrt_zk_session *session, struct mrt_zk_watch *watch, int code)
{
    const struct mrt_zk_ticket *ticket;
    if (mrt_zk_code(code)->outcome != MRT_ZK_NOT_DONE)
        return;
    watch->marker = false;
    TAILQ_FOREACH (ticket, &watch->tickets, watch_link)
        mrt_zk_wake(session->store, ticket->id);
}

static void node_reply(struct mrt_zk_session *session, struct mrt_zk_watch *watch,
                       const struct mrt_zk_reply *reply)
{
    struct mrt_zk_ticket *ticket;
    switch (mrt_zk_code(reply->code)->outcome) {
    case MRT_ZK_DONE:
        watch->set = true;
        if (watch->kind == MRT_ZK_WATCHES_MARK)
            mrt_zk_mark_seen(session, watch, reply->stat);
        break;
    case MRT_ZK_NO_NODE:
        mrt_zk_watch_drop(session, watch); /* it was gone before: all look again */
        break;
    case MRT_ZK_NOT_DONE: /* it may not be read: look from time to time */
        TAILQ_FOREACH (ticket, &watch->tickets, watch_link)
            ticket->unwatched = true;
        mrt_zk_watch_drop(session, watch);
        break;
    default:
        mrt_zk_watch_drop(session, watch);
    }
}

/* The watches of a connection that has ended go together, without their answers. */
static void own_answered(struct mrt_zk_session *session, uint64_t number,
                         const struct mrt_zk_reply *reply)
{
    struct mrt_zk_ticket *ticket = session->connected ? find_by_own(session, number) : NULL;
    if (ticket)
        own_reply(session, ticket, reply);
}

static void marker_answered(struct mrt_zk_session *session, uint64_t number,
                            const struct mrt_zk_reply *reply)
{
    struct mrt_zk_watch *watch = session->connected ? find_watch(session, number) : NULL;
    if (watch)
        marker_reply(session, watch, reply->code);
}

void mrt_zk_watch_answered(struct mrt_zk_session *session, uint64_t number,
                           const struct mrt_zk_reply *reply)
{
    struct mrt_zk_watch *watch = session->connected ? find_watch(session, number) : NULL;
    if (watch)
        node_reply(session, watch, reply);
}

/* ---------------------------------------------------------------- events */

static void own_event(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int type,
                      const char *path)
{
    if (type != ZOO_CHANGED_EVENT) {
        mrt_zk_disown(session, ticket);
        mrt_zk_unwait(ticket);
        mrt_zk_wake(session->store, ticket->id);
    } else {
        ticket->own_known = false;
        if (mrt_zk_send(session, &mrt_zk_watch_own_step, NULL, ticket->own_watch, path) != ZOK)
            mrt_zk_disown(session, ticket);
    }
}

static void marker_event(struct mrt_zk_session *session, struct mrt_zk_watch *watch, int type)
{
    if (type == ZOO_CREATED_EVENT && session->rights.markers == MRT_ZK_MARKERS_OURS)
        passed(session, watch);
    else
        watch->marker = false; /* another's, or one that was there, and is gone or changed */
}

static void node_event(struct mrt_zk_session *session, struct mrt_zk_watch *watch, int type)
{
    bool deleted = type == ZOO_DELETED_EVENT;
    if (deleted && watch->kind == MRT_ZK_WATCHES_NODE) {
        ended(session, watch);
        return;
    }
    if (type != ZOO_CHANGED_EVENT || watch->kind == MRT_ZK_WATCHES_MARK ||
        mrt_zk_send(session, &mrt_zk_watch_step, NULL, watch->id, watch->path) != ZOK) {
        mrt_zk_watch_drop(session, watch);
    }
}

static void on_own_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct mrt_zk_session *session = mrt_zk_event_session(type, path);
    struct mrt_zk_ticket *ticket = session ? find_by_own(session, (uintptr_t)context) : NULL;
    (void)handle, (void)state;
    if (ticket)
        own_event(session, ticket, type, path);
}

void mrt_zk_watch_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct mrt_zk_session *session = mrt_zk_event_session(type, path);
    struct mrt_zk_watch *watch = session ? find_watch(session, (uintptr_t)context) : NULL;
    (void)handle, (void)state;
    if (watch && strcmp(path, watch->path) == 0)
        node_event(session, watch, type);
    else if (watch)
        marker_event(session, watch, type);
}
