/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APPEND: putting a ticket at the end of its queue.
 *
 *   create + list                                  one round trip
 *   no directory: parents + create + list          bounded, then FAILED
 *   try: sync + list; if free create + list; if it was not free after all delete
 *   expect_free try: create + list; if it was not free delete
 *   again after an unknown outcome: barrier + list; adopt what we made, or create
 *   (ticket/seek.c)
 *
 * The server answers a session's requests in order, so the list sent right behind the create
 * includes the own node and everything that was ahead of it. That list gives the ticket's view
 * (ticket/ticket.c); a ticket that must not stay after it is removed again. A try syncs first: a
 * server that lags could show a holder that another server already knows to have gone.
 */
#include "store/zookeeper/ticket/append.h"

#include "store/zookeeper/ticket/claim.h"
#include "store/zookeeper/ticket/directory.h"
#include "store/zookeeper/ticket/refresh.h"
#include "store/zookeeper/ticket/seek.h"
#include "store/zookeeper/ticket/ticket.h"

#include <string.h>

static mrt_zk_payload carry_node;
static mrt_zk_ticket_reply created, probed, sought;
static const struct mrt_zk_step create_step = {
    .send = mrt_zk_send_create_stat, .payload = carry_node, .ticket_reply = created};
/* Lists before a try. */
static const struct mrt_zk_step probe_step = {.send = mrt_zk_send_list, .ticket_reply = probed};
/* Lists to find a node of an earlier create. */
static const struct mrt_zk_step find_created_step = {.send = mrt_zk_send_list,
                                                     .ticket_reply = sought};

/* ---------------------------------------------------------------- beginning */

/* A candidate's node holds its value alone, as Curator's and kazoo's hold their names. */
static void carry_node(struct mrt_zk_outgoing *request)
{
    const struct mrt_command *command = mrt_zk_ticket_command(request->ticket);
    mrt_zk_ticket_carry(request);
    request->mode = ZOO_EPHEMERAL_SEQUENTIAL;
    if (command->value) {
        request->data = command->value;
        request->length = (int)command->value_size;
    }
}

static void create(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + MRT_ZK_NODE_SIZE], head[MRT_ZK_NODE_SIZE];
    mrt_zk_node_head(ticket->uuid, &ticket->place, head);
    snprintf(path, sizeof path, "%s/%s", ticket->path, head);
    ticket->unclaimed = false;
    if (!mrt_zk_ticket_send(session, ticket, &create_step, path))
        return;
    const struct mrt_zk_step *list = mrt_zk_refresh_step(session, ticket);
    if (mrt_zk_send(session, list, ticket, 0, ticket->path) != ZOK) {
        ticket->outcome_unknown = true;
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    }
}

void mrt_zk_append_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    const struct mrt_command *command = mrt_zk_ticket_command(ticket);
    ticket->recovering = ticket->outcome_unknown && !ticket->created;
    if (ticket->created)
        mrt_zk_refresh(session, ticket, true);
    else if (ticket->recovering)
        mrt_zk_ticket_list(session, ticket, &find_created_step, true);
    else if (command->try_only && !command->expect_free)
        mrt_zk_ticket_list(session, ticket, &probe_step, true);
    else
        create(session, ticket);
}

/* ---------------------------------------------------------------- answers */

static void created(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    const char *slash = reply->text ? strrchr(reply->text, '/') : NULL;
    switch (mrt_zk_code(reply->code)->outcome) {
    case MRT_ZK_NO_NODE:
        if (mrt_zk_directory_make_again(session, ticket, reply->code))
            create(session, ticket);
        return;
    case MRT_ZK_DONE:
        if (slash && reply->stat->ephemeralOwner == session->server_id &&
            mrt_zk_ticket_keep(ticket, slash + 1)) {
            ticket->created = true;
            ticket->czxid = reply->stat->czxid;
            return; /* the list follows */
        }
        ticket->outcome_unknown = true;
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    case MRT_ZK_PERHAPS:
        ticket->outcome_unknown = true;
        break;
    default:
        break;
    }
    mrt_zk_ticket_answer_code(session, ticket, reply->code);
}

static void probe_again(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_ticket_list(session, ticket, &probe_step, false);
}

static void probed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    struct mrt_zk_view view = {.own = -1, .misplaced = -1};
    if (outcome == MRT_ZK_DONE)
        view = mrt_zk_view_of(session->store, ticket, reply->names);
    if (mrt_zk_claim_check(session, ticket, &view, true, probe_again))
        return;
    ticket->other = view.other;
    if (view.misplaced >= 0) {
        mrt_zk_keep_misplaced(session->store, TAILQ_FIRST(&ticket->jobs),
                              reply->names->data[view.misplaced]);
        mrt_zk_ticket_fail(session, ticket, MRT_ZK_MISPLACED);
    } else if (view.other.family != MRT_ZK_FOREIGN)
        mrt_zk_ticket_fail(session, ticket, MRT_ZK_OTHER);
    else if (!mrt_zk_ticket_fits(ticket, view.ahead))
        mrt_zk_ticket_answer(session, ticket, MRT_BLOCKED);
    else if (outcome == MRT_ZK_DONE || outcome == MRT_ZK_NO_NODE)
        create(session, ticket);
    else
        mrt_zk_ticket_fail(session, ticket, reply->code); /* a failed list changes nothing */
}

static bool found(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node,
                  const struct Stat *stat)
{
    (void)session;
    ticket->outcome_unknown = true;
    if (!ticket->created && mrt_zk_ticket_keep(ticket, node)) {
        ticket->created = true; /* and REMOVE looks for more */
        ticket->czxid = stat->czxid;
    }
    return true;
}

static void all_sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->created)
        mrt_zk_refresh(session, ticket, false);
    else
        create(session, ticket);
}

static const struct mrt_zk_seeker seeker = {.known_too = false, .found = found, .end = all_sought};

static void sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    if (outcome == MRT_ZK_DONE)
        mrt_zk_seek(session, ticket, &seeker, reply->names);
    else
        create(session, ticket);
}
