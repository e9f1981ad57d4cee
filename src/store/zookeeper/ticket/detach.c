/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ticket that changes hands: a persistent node, while it is nobody's.
 *
 *   _c_UUID-lock-N              its session's: ephemeral
 *   _c_HEIR-d-CZXID-lock-N      nobody's: persistent, under the identity that is its token
 *   _c_HEIR-a-CZXID-lock-N      adopted: ephemeral again
 *
 *   DETACH             set the one's data (rule 12 of watch/pass.c), create the other, delete
 *                      the one, in one transaction
 *   APPEND, `adopt`    sync + list to find it; the same, if nothing unread is in it; list
 *   either again, or of unknown outcome    sync + list, and what is left to do
 *
 * A deletion and a creation in one transaction are one step, so no client sees the lock
 * free, and of two clients that adopt one fails. Place and sequence stay, so Curator and kazoo,
 * which order by what comes after `lock-`, go on queueing behind it. The fence is that of the first
 * node: a ticket that queued meanwhile has a larger one, and gets the lock later. The name shows
 * the state, because other programs may overwrite a node's data.
 *
 * So names tell everything: a detached node in a list belongs to nobody, and an adopted node is
 * ours if this session owns it. Neither kind is ever passed on: the marker of a ticket that was
 * detached would have another name than the node that a waiter knows.
 */
#include "store/zookeeper/ticket/detach.h"

#include "store/zookeeper/ticket/refresh.h"
#include "store/zookeeper/ticket/ticket.h"
#include "store/zookeeper/watch/watch.h"

#include <string.h>

#define TRIES_MAX 8

static mrt_zk_payload carry_change_of_hands;
static mrt_zk_ticket_reply listed, owner_read, was_read, changed_hands;
/* Lists to find a ticket that has changed hands, or has to. */
static const struct mrt_zk_step list_step = {.send = mrt_zk_send_list, .ticket_reply = listed};
static const struct mrt_zk_step owner_step = {.send = mrt_zk_send_exists,
                                              .ticket_reply = owner_read};
static const struct mrt_zk_step read_step = {.send = mrt_zk_send_get, .ticket_reply = was_read};
/* Makes the node anew: persistent, and called otherwise; or such a one this session's. */
static const struct mrt_zk_step detach_step = {
    .send = mrt_zk_send_multi, .payload = carry_change_of_hands, .ticket_reply = changed_hands};
static const struct mrt_zk_step adopt_step = {
    .send = mrt_zk_send_multi, .payload = carry_change_of_hands, .ticket_reply = changed_hands};

/* ---------------------------------------------------------------- beginning */

/* The name of the node once the command is done. */
static void heir_node(const struct mrt_zk_ticket *ticket, char node[MRT_ZK_NODE_SIZE])
{
    char uuid[MRT_ZK_UUID_SIZE];
    const struct mrt_command *command = mrt_zk_ticket_command(ticket);
    bool adopts = command->type == MRT_APPEND;
    struct mrt_zk_place place = adopts ? ticket->place : mrt_zk_ticket_lighter_place(ticket);
    place.hands = adopts ? MRT_ZK_ADOPTED : MRT_ZK_DETACHED;
    place.czxid = ticket->czxid;
    mrt_zk_uuid(adopts ? command->ticket : command->detached_id, &place, uuid);
    mrt_zk_node(uuid, &place, node);
}

/* The data of a node that is adopted must have been read. */
static void carry_change_of_hands(struct mrt_zk_outgoing *request)
{
    char node[MRT_ZK_NODE_SIZE];
    bool adopts = mrt_zk_ticket_command(request->ticket)->type == MRT_APPEND;
    heir_node(request->ticket, node);
    mrt_zk_ticket_carry_rename(request, node,
                               adopts ? mrt_zk_ticket_data_version(request->ticket) : -1,
                               adopts ? ZOO_EPHEMERAL : ZOO_PERSISTENT);
}

/* Where the ticket is now. */
static void locate(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (++ticket->tries > TRIES_MAX)
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    else
        mrt_zk_ticket_list(session, ticket, &list_step, true);
}

void mrt_zk_detach_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    if (ticket->created && !ticket->outcome_unknown)
        mrt_zk_ticket_send_node(session, ticket, &detach_step, ticket->node);
    else
        locate(session, ticket);
}

void mrt_zk_adopt_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->created)
        mrt_zk_refresh(session, ticket, true);
    else
        locate(session, ticket);
}

/* ---------------------------------------------------------------- the end */

/* It is not there to be adopted, or not for this one. */
static void refuse(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    ticket->created = ticket->outcome_unknown = false;
    mrt_zk_ticket_fail(session, ticket, code);
}

/* It is nobody's. */
static void detached(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    ticket->created = ticket->outcome_unknown = false;
    mrt_zk_ticket_show(session, ticket, 0);
}

/* It is this session's, under that name. */
static void adopted(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node)
{
    ticket->created = mrt_zk_ticket_keep(ticket, node);
    ticket->czxid = ticket->place.czxid;
    ticket->outcome_unknown = false;
    if (!ticket->created)
        refuse(session, ticket, MRT_ZK_OTHER_HEIR);
    else if (mrt_zk_ticket_command(ticket)->type == MRT_DETACH)
        mrt_zk_ticket_send_node(session, ticket, &detach_step, ticket->node);
    else
        mrt_zk_refresh(session, ticket, false);
}

/* ---------------------------------------------------------------- where it is */

/* The ticket's node under the identity that it is sought by, in whichever layout, NULL: there is
   none. */
static const char *node_under(const struct mrt_zk_reply *reply, struct mrt_id id)
{
    char uuid[MRT_ZK_UUID_SIZE], plain[MRT_ZK_UUID_SIZE];
    mrt_zk_uuid(id, &(struct mrt_zk_place){.layout = MRT_ZK_CURATOR}, uuid);
    mrt_zk_uuid(id, &(struct mrt_zk_place){.layout = MRT_ZK_KAZOO}, plain);
    for (int i = 0; mrt_zk_code(reply->code)->outcome == MRT_ZK_DONE && i < reply->names->count;
         i++)
        if ((strstr(reply->names->data[i], uuid) || strstr(reply->names->data[i], plain)) &&
            mrt_zk_place_of(reply->names->data[i]).family != MRT_ZK_FOREIGN)
            return reply->names->data[i];
    return NULL;
}

static void take(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node)
{
    const struct mrt_zk_place *wanted = &ticket->place, place = mrt_zk_place_beside(node, wanted);
    if (!mrt_zk_same_lock(&place, wanted) || place.weight != wanted->weight) {
        refuse(session, ticket, MRT_ZK_OTHER_HEIR);
        return;
    }
    mrt_zk_ticket_keep(ticket, node); /* the node to adopt */
    ticket->czxid = place.czxid;
    mrt_zk_ticket_send_node(session, ticket, &adopt_step, node);
}

/* It has been adopted: by whom, its owner tells. */
static void check_owner(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const char *node)
{
    snprintf(ticket->node, sizeof ticket->node, "%s", node);
    mrt_zk_ticket_send_node(session, ticket, &owner_step, node);
}

static void listed_to_adopt(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                            const struct mrt_zk_reply *reply)
{
    const char *node = node_under(reply, ticket->id);
    enum mrt_zk_hands hands = node ? mrt_zk_place_of(node).hands : MRT_ZK_NEVER_DETACHED;
    if (hands == MRT_ZK_DETACHED)
        take(session, ticket, node);
    else if (hands == MRT_ZK_ADOPTED)
        check_owner(session, ticket, node);
    else
        refuse(session, ticket, MRT_ZK_NO_HEIR);
}

static void listed_to_detach(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             const struct mrt_zk_reply *reply)
{
    const struct mrt_command *command = mrt_zk_ticket_command(ticket);
    const char *heir = node_under(reply, command->detached_id);
    const char *own = node_under(reply, command->ticket);
    enum mrt_zk_hands hands = heir ? mrt_zk_place_of(heir).hands : MRT_ZK_NEVER_DETACHED;
    if (hands == MRT_ZK_DETACHED) {
        ticket->czxid = mrt_zk_place_of(heir).czxid;
        detached(session, ticket);
    } else if (own && hands == MRT_ZK_ADOPTED && ticket->outcome_unknown) {
        /* Adopting it was given up: it may not have been adopted, or be detached already, and
           another's now under the same name. */
        check_owner(session, ticket, own);
    } else if (own && ticket->created && mrt_zk_ticket_keep(ticket, own)) {
        ticket->outcome_unknown = false;
        mrt_zk_ticket_send_node(session, ticket, &detach_step, ticket->node);
    } else {
        mrt_zk_ticket_gone(session, ticket);
    }
}

/* ---------------------------------------------------------------- answers */

static void owner_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply)
{
    char node[MRT_ZK_NODE_SIZE];
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    memcpy(node, ticket->node, sizeof node);
    if (outcome == MRT_ZK_NO_NODE)
        locate(session, ticket);
    else if (outcome != MRT_ZK_DONE)
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    else if (reply->stat->ephemeralOwner == session->server_id)
        adopted(session, ticket, node);
    else if (mrt_zk_ticket_command(ticket)->type == MRT_APPEND)
        refuse(session, ticket, MRT_ZK_NO_HEIR);
    else
        mrt_zk_ticket_gone(session, ticket);
}

static void changed_hands(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                          const struct mrt_zk_reply *reply)
{
    char node[MRT_ZK_NODE_SIZE];
    int code = reply->code;
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    bool adopts = mrt_zk_ticket_command(ticket)->type == MRT_APPEND;
    if (outcome == MRT_ZK_DONE && adopts) {
        heir_node(ticket, node);
        adopted(session, ticket, node);
    } else if (outcome == MRT_ZK_DONE) {
        detached(session, ticket);
    } else if (code == ZBADVERSION) {
        mrt_zk_ticket_send_node(session, ticket, &read_step, ticket->node);
    } else if (outcome == MRT_ZK_NO_NODE || code == ZNODEEXISTS) {
        locate(session, ticket); /* it has been done, or another was quicker */
    } else {
        ticket->outcome_unknown |= outcome == MRT_ZK_PERHAPS;
        mrt_zk_ticket_answer_code(session, ticket, code);
    }
}

/* An operator requested a ticket that nobody holds: its adopter is told. */
static void was_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                     const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE) {
        mrt_zk_ticket_data_known(session, ticket, reply);
        mrt_zk_ticket_send_node(session, ticket, &adopt_step, ticket->node);
    } else if (outcome == MRT_ZK_NO_NODE) {
        locate(session, ticket);
    } else {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
    }
}

static void listed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE)
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
    else if (mrt_zk_ticket_command(ticket)->type == MRT_APPEND)
        listed_to_adopt(session, ticket, reply);
    else
        listed_to_detach(session, ticket, reply);
}
