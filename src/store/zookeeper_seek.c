/*
 * Nodes of an earlier create, of unknown outcome, whose names do not say whose they are: `lock-N`
 * (layout=recipe).
 *
 *   an "exists" of each `lock-N` of the list that no other ticket of this session is known to have
 *
 * A node that this session owns is then of this ticket, or of another whose create is of unknown
 * outcome too. Either may have it, as long as only one does: so what is known is compared again
 * when the answer comes, right before a node is adopted or deleted. A ticket that has none creates
 * one. The server answers in order: a create that was sent before the list is answered before it.
 */
#include "store/zookeeper_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_known(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                     const char *node)
{
    const struct mrt_zk_ticket *other, *next;
    HASH_ITER(hh, session->tickets, other, next)
    if (other != ticket && other->created && strcmp(other->node, node) == 0 &&
        strcmp(other->path, ticket->path) == 0)
        return true;
    return false;
}

static void name_suspect(const struct mrt_zk_ticket *ticket, int index, char node[MRT_ZK_NODE_SIZE])
{
    struct mrt_zk_place place = ticket->place;
    place.sequence = ticket->suspects[index];
    mrt_zk_node(ticket->uuid, &place, node);
}

static void end(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (TAILQ_FIRST(&ticket->jobs)->command.type == MRT_APPEND)
        mrt_zk_append_sought(session, ticket);
    else if (ticket->deletes == 0)
        mrt_zk_remove_done(session, ticket);
}

void mrt_zk_seek_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct String_vector *names)
{
    char node[MRT_ZK_NODE_SIZE];
    free(ticket->suspects);
    ticket->suspect_count = ticket->suspect_at = 0;
    ticket->suspects = calloc((size_t)names->count + 1, sizeof *ticket->suspects);
    for (int i = 0; ticket->suspects && i < names->count; i++) {
        ticket->suspects[ticket->suspect_count] = mrt_zk_place_of(names->data[i]).sequence;
        name_suspect(ticket, ticket->suspect_count, node);
        ticket->suspect_count +=
            strcmp(node, names->data[i]) == 0 && !is_known(session, ticket, node);
    }
    if (!ticket->suspects) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    int count = ticket->suspect_count;
    for (int i = 0; i < count; i++) {
        name_suspect(ticket, i, node);
        if (!mrt_zk_ticket_send_node(session, ticket, MRT_ZK_SEEK, node))
            return;
    }
    if (count == 0)
        end(session, ticket);
}

/* False: the command has ended. */
static bool found(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node,
                  const struct Stat *stat)
{
    if (TAILQ_FIRST(&ticket->jobs)->command.type != MRT_APPEND) {
        ticket->deletes++;
        return mrt_zk_ticket_send_node(session, ticket, MRT_ZK_DELETE, node);
    }
    if (!ticket->created && mrt_zk_ticket_keep(ticket, node)) {
        ticket->created = true; /* `maybe` stays: REMOVE looks for more */
        ticket->czxid = stat->czxid;
    }
    return true;
}

void mrt_zk_seek_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply)
{
    char node[MRT_ZK_NODE_SIZE];
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    name_suspect(ticket, ticket->suspect_at++, node);
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    if (outcome == MRT_ZK_DONE && reply->stat->ephemeralOwner == session->server_id &&
        !is_known(session, ticket, node) && !found(session, ticket, node, reply->stat))
        return;
    if (ticket->suspect_at == ticket->suspect_count)
        end(session, ticket);
}
