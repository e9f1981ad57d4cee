/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that may not stand after their first view: a try that is blocked, one too many in the
 * queue, one among tickets of another kind of lock or of another layout. Their nodes are deleted
 * before the command is answered.
 *
 * Invariant: a refusal is answered only once the node is known to be gone; else UNKNOWN is.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/ticket/refuse.h"

#include "base/assert.h"
#include "store/zookeeper/ticket/ticket.h"

static mrt_zk_ticket_reply undone;
/* Deletes the node of a failed try, or of a refused acquire. */
static const struct mrt_zk_step undo_step = {.send = mrt_zk_send_delete, .ticket_reply = undone};

int mrt_zk_refusal(const struct mrt_zk_ticket *ticket, const struct mrt_command *command,
                   const struct mrt_zk_view *view, const struct String_vector *names)
{
    bool waits = command->type == MRT_REFRESH && !ticket->held;
    bool appends = command->type == MRT_APPEND && !command->adopt;
    if (view->misplaced >= 0 && (waits || appends))
        return MRT_ZK_MISPLACED;
    if (!appends)
        return ZOK;
    if (view->other.family != MRT_ZK_FOREIGN)
        return MRT_ZK_OTHER;
    if (mrt_zk_ticket_fits(ticket, view->ahead))
        return ZOK;
    if (command->try_only)
        return MRT_ZK_BLOCKED;
    bool full = command->queue_max > 0 && mrt_zk_crowded(ticket, view, names, command->queue_max);
    return full ? MRT_ZK_FULL : ZOK;
}

static void undone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    int code = reply->code;
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_note_no_delete(session, ticket, code);
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN); /* it may be there */
        return;
    }
    ticket->created = ticket->outcome_unknown = false;
    if (mrt_zk_ticket_command(ticket)->type != MRT_APPEND)
        mrt_zk_ticket_gone(session, ticket); /* and its next APPEND is told why */
    else if (ticket->refusal == MRT_ZK_BLOCKED)
        mrt_zk_ticket_answer(session, ticket, MRT_BLOCKED);
    else
        mrt_zk_ticket_fail(session, ticket, ticket->refusal);
}

void mrt_zk_undo(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int refusal)
{
    MRT_ASSERT(refusal != ZOK);
    ticket->refusal = refusal;
    mrt_zk_ticket_send_node(session, ticket, &undo_step, ticket->node);
}
