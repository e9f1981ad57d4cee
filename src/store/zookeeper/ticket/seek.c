/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of an earlier create, of unknown outcome.
 *
 *   an "exists" of each node of the list that has the ticket's UUID, or the shape that its create
 *   gives (layout=recipe), and that no other ticket of this session is known to have
 *
 * A node that this session does not own is not this ticket's, whatever its name. One
 * that this session owns is this ticket's; or, as `lock-N` (layout=recipe) does not say whose it
 * is, of another ticket whose create is of unknown outcome too. Either may have it, as long as only
 * one does: so what is known is compared again when the answer comes, right before a node is
 * adopted or deleted. A ticket that has none creates one. The server answers in order: a create
 * that was sent before the list is answered before it.
 *
 * The list comes behind a write (MRT_ZK_BARRIER). A sync would do in most cases, but it is no vote:
 * a leader that is cut off from the others answers it, and its list lacks what they have. A node
 * that was not found would then be in everybody's way for as long as the session lives.
 */
#include "store/zookeeper/ticket/seek.h"

#include "base/assert.h"
#include "store/zookeeper/ticket/ticket.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mrt_zk_ticket_reply looked_at;
static const struct mrt_zk_step seek_step = {.send = mrt_zk_send_exists, .ticket_reply = looked_at};

/* Whether a ticket has this node; if known nodes are sought too, another ticket. */
static bool is_known(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                     const char *node)
{
    const struct mrt_zk_ticket *other, *next;
    HASH_ITER (hh, session->tickets, other, next)
        if (other->created && !(other == ticket && ticket->seeker->known_too) &&
            strcmp(other->node, node) == 0 && strcmp(other->path, ticket->path) == 0)
            return true;
    return false;
}

/* Whether the ticket may have made it: by its UUID, or by its shape. */
static bool is_suspect(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                       const char *name)
{
    char node[MRT_ZK_NODE_SIZE];
    struct mrt_zk_place place = ticket->place;
    place.sequence = mrt_zk_place_of(name).sequence;
    if (ticket->uuid[0])
        return strstr(name, ticket->uuid) && strlen(name) < MRT_ZK_NODE_SIZE &&
               !is_known(session, ticket, name);
    mrt_zk_node(ticket->uuid, &place, node);
    return strcmp(node, name) == 0 && !is_known(session, ticket, name);
}

void mrt_zk_seek(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct mrt_zk_seeker *seeker, const struct String_vector *names)
{
    int count = 0;
    ticket->seeker = seeker;
    free(ticket->suspects);
    ticket->suspect_at = 0;
    ticket->suspects = calloc((size_t)names->count + 1, sizeof *ticket->suspects);
    for (int i = 0; ticket->suspects && i < names->count; i++)
        if (is_suspect(session, ticket, names->data[i]))
            memcpy(ticket->suspects[count++], names->data[i], strlen(names->data[i]) + 1);
    ticket->suspect_count = count;
    if (!ticket->suspects) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    for (int i = 0; i < count; i++)
        if (!mrt_zk_ticket_send_node(session, ticket, &seek_step, ticket->suspects[i]))
            return;
    if (count == 0)
        ticket->seeker->end(session, ticket);
}

static void looked_at(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                      const struct mrt_zk_reply *reply)
{
    MRT_ASSERT(ticket->suspect_at < ticket->suspect_count);
    const char *node = ticket->suspects[ticket->suspect_at++];
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    if (outcome == MRT_ZK_DONE && reply->stat->ephemeralOwner == session->server_id &&
        !is_known(session, ticket, node) &&
        !ticket->seeker->found(session, ticket, node, reply->stat))
        return;
    if (ticket->suspect_at == ticket->suspect_count)
        ticket->seeker->end(session, ticket);
}
