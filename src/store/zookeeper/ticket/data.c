/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LIGHTEN and SET_VALUE: changes of the own node, which others write to as well.
 *
 * A node is made with its ticket's label or value. A client that asks its owner to release writes
 * over that, as Curator's Revoker does. So a write of ours names the version of the data that was
 * read or written here last, and is refused if somebody has written since: then the node is
 * read, which notes the request, and the write is sent again. No request is lost that came
 * before anybody attended, at the cost of nothing as long as there is none.
 *
 *   LIGHTEN    set the data (rule 12 of watch/pass.c), make a lighter node, delete the old
 *              one, in one transaction; sync + list
 *   SET_VALUE  set; sync + list
 *   the mark of a semaphore's ticket    ticket/semaphore.c
 */
#include "store/zookeeper/ticket/data.h"

#include "base/assert.h"
#include "store/zookeeper/ticket/refresh.h"
#include "store/zookeeper/ticket/ticket.h"

#define TRIES_MAX 8

static mrt_zk_payload carry_lighten, carry_value;
static mrt_zk_ticket_reply lighten_answered, set_answered, was_read;
/* Makes a writer's node a reader's, of the same sequence. */
static const struct mrt_zk_step lighten_step = {
    .send = mrt_zk_send_multi, .payload = carry_lighten, .ticket_reply = lighten_answered};
static const struct mrt_zk_step set_step = {
    .send = mrt_zk_send_set, .payload = carry_value, .ticket_reply = set_answered};
/* Reads what somebody else has written there. */
static const struct mrt_zk_step read_step = {.send = mrt_zk_send_get, .ticket_reply = was_read};

/* ---------------------------------------------------------------- commands */

/* The name of the node after its LIGHTEN; false: it is not heavier than that. */
static bool lighter_node(const struct mrt_zk_ticket *ticket, char node[MRT_ZK_NODE_SIZE])
{
    const struct mrt_zk_place lighter = mrt_zk_ticket_lighter_place(ticket);
    mrt_zk_node(ticket->uuid, &lighter, node);
    return lighter.weight < ticket->place.weight;
}

static void carry_lighten(struct mrt_zk_outgoing *request)
{
    char node[MRT_ZK_NODE_SIZE];
    bool lighter = lighter_node(request->ticket, node);
    MRT_ASSERT(lighter);
    mrt_zk_ticket_carry_rename(request, node, mrt_zk_ticket_data_version(request->ticket),
                               ZOO_EPHEMERAL);
}

static void carry_value(struct mrt_zk_outgoing *request)
{
    const struct mrt_command *command = mrt_zk_ticket_command(request->ticket);
    request->data = command->value;
    request->length = (int)command->value_size;
    request->version = mrt_zk_ticket_data_version(request->ticket);
}

/* A node cannot be called otherwise: a new one takes its place, in one transaction. */
static void begin_lighten(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char lighter[MRT_ZK_NODE_SIZE];
    if (!ticket->created)
        mrt_zk_ticket_gone(session, ticket);
    else if (lighter_node(ticket, lighter))
        mrt_zk_ticket_send_node(session, ticket, &lighten_step, ticket->node);
    else
        mrt_zk_refresh(session, ticket, true);
}

static void begin_set(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->created)
        mrt_zk_ticket_send_node(session, ticket, &set_step, ticket->node);
    else
        mrt_zk_ticket_gone(session, ticket);
}

void mrt_zk_data_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (mrt_zk_ticket_command(ticket)->type == MRT_LIGHTEN)
        begin_lighten(session, ticket);
    else
        begin_set(session, ticket);
}

/* ---------------------------------------------------------------- answers */

/* In any case the list shows which node there is now. Of unknown outcome it is
   asked for again, and until then there may be one more than is known. Done, the node is known
   by its new name at once: the list may be lost. */
static void lightened(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    char lighter[MRT_ZK_NODE_SIZE];
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    ticket->outcome_unknown |= outcome == MRT_ZK_PERHAPS;
    if (outcome == MRT_ZK_DONE && lighter_node(ticket, lighter))
        mrt_zk_ticket_keep(ticket, lighter);
    if (outcome == MRT_ZK_PERHAPS || (outcome == MRT_ZK_NOT_DONE && code != ZNODEEXISTS))
        mrt_zk_ticket_answer_code(session, ticket, code);
    else
        mrt_zk_refresh(session, ticket, true);
}

/* The list shows whether the node is still there. */
static void was_set(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE)
        mrt_zk_ticket_data_known(session, ticket, reply);
    if (outcome == MRT_ZK_DONE || outcome == MRT_ZK_NO_NODE)
        mrt_zk_refresh(session, ticket, true);
    else
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
}

/* Another client has written there, and that is known now. */
static void was_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                     const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE) {
        mrt_zk_ticket_data_known(session, ticket, reply);
        mrt_zk_data_begin(session, ticket);
    } else if (outcome == MRT_ZK_NO_NODE) {
        mrt_zk_refresh(session, ticket, true);
    } else {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
    }
}

/* Whether it is refused because somebody has written there since; then that is read first. */
static bool must_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    if (code != ZBADVERSION || ++ticket->tries > TRIES_MAX)
        return false;
    mrt_zk_ticket_send_node(session, ticket, &read_step, ticket->node);
    return true;
}

static void lighten_answered(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             const struct mrt_zk_reply *reply)
{
    if (!must_read(session, ticket, reply->code))
        lightened(session, ticket, reply->code);
}

static void set_answered(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         const struct mrt_zk_reply *reply)
{
    if (!must_read(session, ticket, reply->code))
        was_set(session, ticket, reply);
}
