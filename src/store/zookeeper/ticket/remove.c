/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REMOVE: taking a ticket out, until that is proven.
 *
 *   granted in a contest         pass: one transaction that wakes the next with the grant
 *                                itself (watch/pass.c); delete if that is refused
 *   granted at once, or waiting  delete
 *   there may be a node that is not known    barrier + list + deletes (ticket/seek.c)
 */
#include "store/zookeeper/ticket/remove.h"

#include "store/zookeeper/ticket/seek.h"
#include "store/zookeeper/ticket/ticket.h"
#include "store/zookeeper/watch/watch.h"

static mrt_zk_payload carry_pass, carry_markers;
static mrt_zk_session_reply markers_made;
static mrt_zk_ticket_reply purge, delete_answered, passed;
/* Lists to find what has to be deleted. */
static const struct mrt_zk_step purge_step = {.send = mrt_zk_send_list, .ticket_reply = purge};
static const struct mrt_zk_step delete_step = {
    .send = mrt_zk_send_delete, .ticket_reply = delete_answered, .answer_may_wait = true};
/* Deletes, and says that the node was the holder's. */
static const struct mrt_zk_step pass_step = {.send = mrt_zk_send_multi,
                                             .payload = carry_pass,
                                             .ticket_reply = passed,
                                             .answer_may_wait = true};
/* Makes the markers' directory. It and the markers have the tickets' ACL: a client that may not
   read a marker is not told of it, and one that may make a marker can grant the lock. */
static const struct mrt_zk_step markers_step = {
    .send = mrt_zk_send_create, .payload = carry_markers, .session_reply = markers_made};

/* A container would be reaped whenever it is empty, and it always is. */
static void carry_markers(struct mrt_zk_outgoing *request)
{
    request->mode = ZOO_PERSISTENT;
}

static void carry_pass(struct mrt_zk_outgoing *request)
{
    char *marker = request->other;
    mrt_zk_marker_path(request->session->store, request->path, marker, sizeof request->other);
    zoo_create_op_init(mrt_zk_next_part(request), marker, "", 0, request->rights, ZOO_PERSISTENT,
                       NULL, 0);
    zoo_delete_op_init(mrt_zk_next_part(request), marker, -1);
    zoo_delete_op_init(mrt_zk_next_part(request), request->path, -1);
}

/* A lock that nobody was seen to want is not passed on: that would make the cycle of one
   client alone 18 % slower. So the first release of a contest is a plain one. */
static bool may_pass(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket)
{
    enum mrt_zk_family family = ticket->place.family;
    bool alone = family == MRT_ZK_MUTEX || family == MRT_ZK_WRITER;
    bool granted = ticket->held && alone;
    return granted && (ticket->waited || ticket->behind) && !session->store->no_markers &&
           !mrt_zk_ticket_herds(session, ticket) && mrt_zk_is_ours(ticket->node);
}

void mrt_zk_remove_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    ticket->deletes = 0;
    if (ticket->outcome_unknown)
        mrt_zk_ticket_list(session, ticket, &purge_step, true);
    else if (!ticket->created)
        mrt_zk_ticket_answer(session, ticket, MRT_REMOVED);
    else if (may_pass(session, ticket))
        mrt_zk_ticket_send_node(session, ticket, &pass_step, ticket->node);
    else
        mrt_zk_ticket_send_node(session, ticket, &delete_step, ticket->node);
}

static void done(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    ticket->created = ticket->outcome_unknown = false;
    mrt_zk_ticket_answer(session, ticket, MRT_REMOVED);
}

/* A delete of REMOVE. It is REMOVED when all are proven. */
static void deleted(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_note_no_delete(session, ticket, code);
        mrt_zk_ticket_answer_code(session, ticket, code);
        return;
    }
    if (ticket->deletes > 1) {
        ticket->deletes--;
        return;
    }
    done(session, ticket);
}

static void delete_answered(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                            const struct mrt_zk_reply *reply)
{
    deleted(session, ticket, reply->code);
}

static bool found(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node,
                  const struct Stat *stat)
{
    (void)stat;
    ticket->deletes++;
    return mrt_zk_ticket_send_node(session, ticket, &delete_step, node);
}

static void all_sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->deletes == 0)
        done(session, ticket);
}

static const struct mrt_zk_seeker seeker = {.known_too = true, .found = found, .end = all_sought};

static void purge(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                  const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
        return;
    }
    if (outcome == MRT_ZK_DONE)
        mrt_zk_seek(session, ticket, &seeker, reply->names);
    else
        deleted(session, ticket, ZOK);
}

/* A node that could not be passed on is deleted, and the reason mended or kept in mind. */
static void delete_plainly(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    char markers[MRT_ZK_PATH_MAX + 32];
    if (code == ZNONODE) {
        snprintf(markers, sizeof markers, "%s/" MRT_ZK_MARKERS_NAME,
                 session->store->address.chroot);
        mrt_zk_send(session, &markers_step, NULL, 0, markers);
    }
    session->store->no_markers |= code == ZNOAUTH || code == ZUNIMPLEMENTED;
    mrt_zk_ticket_send_node(session, ticket, &delete_step, ticket->node);
}

static void passed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    int code = reply->code;
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome == MRT_ZK_DONE)
        deleted(session, ticket, ZOK);
    else if (outcome == MRT_ZK_NOT_DONE || outcome == MRT_ZK_NO_NODE)
        delete_plainly(session, ticket, code);
    else
        mrt_zk_ticket_answer_code(session, ticket, code);
}

static void markers_made(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    session->store->no_markers |=
        reply->code != ZNODEEXISTS && mrt_zk_code(reply->code)->outcome == MRT_ZK_NOT_DONE;
}
