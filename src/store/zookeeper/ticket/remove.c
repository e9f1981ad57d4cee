/*
 * REMOVE: taking a ticket out, until that is proven.
 *
 *   granted in a contest         pass: one transaction that wakes the next with the grant
 *                                itself (watch/pass.c); delete if that is refused
 *   granted at once, or waiting  delete
 *   there may be a node that is not known    barrier + list + deletes (ticket/seek.c)
 */
#include "store/zookeeper/internal.h"

#include <string.h>

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
        mrt_zk_ticket_list(session, ticket, MRT_ZK_PURGE, true);
    else if (!ticket->created)
        mrt_zk_ticket_answer(session, ticket, MRT_REMOVED);
    else if (may_pass(session, ticket))
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_PASS, ticket->node);
    else
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_DELETE, ticket->node);
}

void mrt_zk_note_no_delete(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                           int code)
{
    if (code == ZNOAUTH)
        mrt_note(&session->store->notes, MRT_ZK_NOTE_NO_DELETE,
                 "the ACL of %.150s lets us create but not delete: what is acquired there stays "
                 "taken until the client is closed",
                 ticket->path);
}

void mrt_zk_remove_done(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
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
    mrt_zk_remove_done(session, ticket);
}

static void purge(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                  const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
        return;
    }
    if (outcome == MRT_ZK_DONE)
        mrt_zk_seek_begin(session, ticket, reply->names);
    else
        deleted(session, ticket, ZOK);
}

/* What could not be passed on is deleted, and the reason mended or kept in mind. */
static void delete_plainly(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    char markers[MRT_ZK_PATH_MAX + 32];
    int ignored;
    if (code == ZNONODE) {
        snprintf(markers, sizeof markers, "%s/" MRT_ZK_MARKERS_NAME,
                 session->store->address.chroot);
        mrt_zk_send(session, MRT_ZK_MARKERS, NULL, markers, &ignored);
    }
    session->store->no_markers |= code == ZNOAUTH || code == ZUNIMPLEMENTED;
    mrt_zk_ticket_send_node(session, ticket, MRT_ZK_DELETE, ticket->node);
}

static void passed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome == MRT_ZK_DONE)
        deleted(session, ticket, ZOK);
    else if (outcome == MRT_ZK_NOT_DONE || outcome == MRT_ZK_NO_NODE)
        delete_plainly(session, ticket, code);
    else
        mrt_zk_ticket_answer_code(session, ticket, code);
}

void mrt_zk_remove_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    switch (kind) {
    case MRT_ZK_PURGE:
        purge(session, ticket, reply);
        break;
    case MRT_ZK_PASS:
        passed(session, ticket, reply->code);
        break;
    default:
        deleted(session, ticket, reply->code);
    }
}
