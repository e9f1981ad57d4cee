/*
 * What the own node holds, and what others write there.
 *
 * A node is made with its ticket's label or value. Whoever asks its owner to give up writes over
 * that, as Curator's Revoker does. So a write of ours names the version of the data that was
 * read or written here last, and is refused if somebody has written since: then the node is
 * read, which notes the request, and the write is sent again. No request is lost that came
 * before anybody attended, at the cost of nothing as long as there is none.
 *
 *   LIGHTEN    set the data (rule 12 of watch/pass.c), make a lighter node, delete the old
 *              one, in one transaction; sync + list
 *   SET_VALUE  set; sync + list
 *   the mark of a semaphore's ticket    ticket/semaphore.c
 */
#include "store/zookeeper/internal.h"

#include <string.h>

#define TRIES_MAX 8

/* ---------------------------------------------------------------- what is known */

int32_t mrt_zk_data_version(const struct mrt_zk_ticket *ticket)
{
    return ticket->data_version;
}

/* A node that was made anew by a downgrade says nothing of an earlier one. */
void mrt_zk_data_known(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply)
{
    const int length = (int)strlen(MRT_ZK_REVOKE);
    ticket->data_version = reply->stat->version;
    if (reply->length != length || memcmp(reply->text, MRT_ZK_REVOKE, (size_t)length) != 0 ||
        reply->stat->mzxid <= ticket->revoked)
        return;
    ticket->revoked = reply->stat->mzxid;
    mrt_zk_report_revoked(session->store, ticket->id, ticket->revoked);
}

/* ---------------------------------------------------------------- commands */

struct mrt_zk_place mrt_zk_lighter_place(const struct mrt_zk_ticket *ticket)
{
    struct mrt_zk_place place = ticket->place;
    const struct mrt_zk_place lighter =
        mrt_zk_place_for(place.layout, mrt_zk_kind(place.family), place.capacity,
                         TAILQ_FIRST(&ticket->jobs)->command.weight);
    if (lighter.family != MRT_ZK_FOREIGN && lighter.weight < place.weight) {
        place.family = lighter.family;
        place.weight = lighter.weight;
        place.hands = MRT_ZK_ADOPTED; /* so its name says which fence it has kept */
        place.czxid = ticket->czxid;
    }
    return place;
}

bool mrt_zk_lighter(const struct mrt_zk_ticket *ticket, char node[MRT_ZK_NODE_SIZE])
{
    const struct mrt_zk_place lighter = mrt_zk_lighter_place(ticket);
    mrt_zk_node(ticket->uuid, &lighter, node);
    return lighter.weight < ticket->place.weight;
}

/* A node cannot be called otherwise: a new one takes its place, in one transaction. */
static void begin_lighten(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char lighter[MRT_ZK_NODE_SIZE];
    if (!ticket->created)
        mrt_zk_ticket_gone(session, ticket);
    else if (mrt_zk_lighter(ticket, lighter))
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_LIGHTEN, ticket->node);
    else
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
}

static void begin_set(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->created)
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_SET, ticket->node);
    else
        mrt_zk_ticket_gone(session, ticket);
}

void mrt_zk_data_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (TAILQ_FIRST(&ticket->jobs)->command.type == MRT_LIGHTEN)
        begin_lighten(session, ticket);
    else
        begin_set(session, ticket);
}

/* ---------------------------------------------------------------- answers */

/* Whatever came of it, the list shows which node there is now. Of unknown outcome it is
   asked for again, and until then there may be one more than is known. Done, the node is known
   by its new name at once: the list may be lost. */
static void lightened(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    char lighter[MRT_ZK_NODE_SIZE];
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    ticket->outcome_unknown |= outcome == MRT_ZK_PERHAPS;
    if (outcome == MRT_ZK_DONE && mrt_zk_lighter(ticket, lighter))
        mrt_zk_ticket_keep(ticket, lighter);
    if (outcome == MRT_ZK_PERHAPS || (outcome == MRT_ZK_NOT_DONE && code != ZNODEEXISTS))
        mrt_zk_ticket_answer_code(session, ticket, code);
    else
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
}

/* The list shows whether the node is still there. */
static void was_set(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE)
        mrt_zk_data_known(session, ticket, reply);
    if (outcome == MRT_ZK_DONE || outcome == MRT_ZK_NO_NODE)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
    else
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
}

/* Somebody has written there: whatever that was is known now. */
static void was_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                     const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE) {
        mrt_zk_data_known(session, ticket, reply);
        mrt_zk_data_begin(session, ticket);
    } else if (outcome == MRT_ZK_NO_NODE) {
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
    } else {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
    }
}

void mrt_zk_data_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    if (kind == MRT_ZK_READ)
        was_read(session, ticket, reply);
    else if (reply->code == ZBADVERSION && ++ticket->tries <= TRIES_MAX)
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_READ, ticket->node);
    else if (kind == MRT_ZK_LIGHTEN)
        lightened(session, ticket, reply->code);
    else
        was_set(session, ticket, reply);
}
