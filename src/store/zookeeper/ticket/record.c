/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of a ticket and its node: its name and place, its newest view, the version of its
 * data. Nothing here sends a request; what follows from a change is its caller's to do.
 *
 * A node is made with its ticket's label or value. A client that asks its owner to release writes
 * over that, as Curator's Revoker does. So a write of ours names the version of the data that was
 * read or written here last (ticket/data.c).
 *
 * Invariant: a request for release is reported once, by the transaction that wrote it.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/ticket/record.h"

#include "base/assert.h"
#include "core/rule.h"
#include "store/zookeeper/answer.h"

#include <string.h>

struct mrt_zk_ticket *mrt_zk_ticket_find(const struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_ticket *ticket;
    HASH_FIND(hh, session->tickets, &id, sizeof id, ticket);
    return ticket;
}

const struct mrt_command *mrt_zk_ticket_command(const struct mrt_zk_ticket *ticket)
{
    const struct mrt_job *job = TAILQ_FIRST(&ticket->jobs);
    MRT_ASSERT(job); /* requests are sent for commands */
    return &job->command;
}

/* ------------------------------------------------------------------ the node */

bool mrt_zk_ticket_keep(struct mrt_zk_ticket *ticket, const char *node)
{
    size_t length = strlen(node);
    const struct mrt_zk_place place = mrt_zk_place_beside(node, &ticket->place);
    if (length >= sizeof ticket->node || !mrt_zk_same_lock(&place, &ticket->place))
        return false;
    if (strcmp(node, ticket->node) != 0)
        ticket->data_version = 0;
    ticket->place = place;
    memcpy(ticket->node, node, length + 1);
    return true;
}

int32_t mrt_zk_ticket_data_version(const struct mrt_zk_ticket *ticket)
{
    return ticket->data_version;
}

/* A node that was made anew by a downgrade says nothing of an earlier one. */
void mrt_zk_ticket_data_known(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
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

struct mrt_zk_place mrt_zk_ticket_lighter_place(const struct mrt_zk_ticket *ticket)
{
    struct mrt_zk_place place = ticket->place;
    const struct mrt_zk_place lighter =
        mrt_zk_place_for(place.layout, mrt_zk_kind(place.family), place.capacity,
                         mrt_zk_ticket_command(ticket)->weight);
    if (lighter.family != MRT_ZK_FOREIGN && lighter.weight < place.weight) {
        place.family = lighter.family;
        place.weight = lighter.weight;
        place.hands = MRT_ZK_ADOPTED; /* so its name says which fence it has kept */
        place.czxid = ticket->czxid;
    }
    return place;
}

void mrt_zk_ticket_carry(struct mrt_zk_outgoing *request)
{
    MRT_ASSERT(request->ticket);
    request->length =
        snprintf(request->text, sizeof request->text, "%s\n%s",
                 mrt_zk_kind(request->ticket->place.family), request->session->store->label);
    request->data = request->text;
}

/* A waiter that watches a node which goes on under another name is told of a change, and not that
   it has gone (rule 12 of watch/pass.c): the change uses its watches up. */
void mrt_zk_ticket_carry_rename(struct mrt_zk_outgoing *request, const char *node, int32_t version,
                                int mode)
{
    snprintf(request->other, sizeof request->other, "%s/%s", request->ticket->path, node);
    mrt_zk_ticket_carry(request);
    zoo_set_op_init(mrt_zk_next_part(request), request->path, "", 0, version, NULL);
    zoo_create_op_init(mrt_zk_next_part(request), request->other, request->data, request->length,
                       request->rights, mode, NULL, 0);
    zoo_delete_op_init(mrt_zk_next_part(request), request->path, -1);
}

/* ------------------------------------------------------------------ the view */

bool mrt_zk_ticket_fits(const struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    return mrt_rule_grants(ahead, ticket->place.weight, ticket->place.capacity);
}

bool mrt_zk_ticket_waits_for_last(const struct mrt_zk_ticket *ticket)
{
    enum mrt_zk_family family = ticket->place.family;
    return family != MRT_ZK_SEMAPHORE && family != MRT_ZK_EXCLUSIVE &&
           mrt_zk_ticket_fits(ticket, ticket->before + ticket->after);
}

bool mrt_zk_ticket_herds(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket)
{
    return session->store->address.wake_all && ticket->place.family != MRT_ZK_SEMAPHORE;
}

void mrt_zk_ticket_describe(struct mrt_zk_ticket *ticket, struct mrt_event *event, uint64_t ahead)
{
    ticket->held = mrt_zk_ticket_fits(ticket, ahead);
    event->fence = (uint64_t)ticket->czxid * MRT_ZK_FENCE_SPAN;
    event->fence_span = MRT_ZK_FENCE_SPAN;
    event->weight_ahead = ahead;
    event->others_behind = ticket->behind;
    event->revoked = (uint64_t)ticket->revoked;
    event->place = ticket->held ? 0 : ticket->ahead;
    event->recheck = ticket->watch || ticket->held ? MRT_ZK_RECHECK : MRT_ZK_RECHECK_UNWATCHED;
}

void mrt_zk_ticket_report(struct mrt_store *store, struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    struct mrt_event event = {
        .type = MRT_VIEW, .session = store->session->id, .ticket = ticket->id};
    mrt_zk_ticket_describe(ticket, &event, ahead);
    mrt_outbox_add(&store->outbox, event);
}
