/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim: a lock that promises no order, by the oldest of ZooKeeper's recipes. The client
 * that makes the one ephemeral node `lock` in the lock's directory holds. All others watch that
 * node and try again when it is deleted: each release wakes all who wait, and one of them,
 * or a newcomer, is next.
 *
 *   APPEND   claim + look                  one round trip
 *            it is there: wait for it; try: BLOCKED, and nothing is left
 *            after an unknown outcome: barrier + look; adopt what we made, or claim
 *   REFRESH  of one that waits: claim + look; look alone while its watch is set
 *            of one that holds: sync + look
 *   REMOVE   release; of one that waits nothing; after a doubt sync or barrier, and look first
 *
 *   claim    one transaction: set the directory's data, create `lock`
 *   look     list the directory, read `lock`
 *   barrier  a write that is always refused (ticket/seek.c)
 *   release  one transaction: check the version of the directory's data, delete `lock`
 *
 * So the directory's version counts the claims. It is read before `lock` is found to be
 * ours, and as long as it is the same nobody has made another `lock`: a release does not delete
 * another's node, even if somebody deleted ours. The count starts anew with the directory, which
 * the server deletes some time after it has become empty; so a holder watches its own node too, and
 * after that event does not release without a new look.
 *
 * A node is ours if this session owns it and it is the one we know, or holds this ticket's
 * UUID. It grants only once the list behind its creation has shown no ticket of a lock that
 * keeps an order: such a ticket looks for `lock` itself, so at least one of two kinds that
 * meet is refused. A child called `lock` that is not ephemeral is the directory of another lock.
 */
#include "store/zookeeper/ticket/claim.h"

#include "base/assert.h"
#include "core/recipe.h"
#include "store/zookeeper/ticket/directory.h"
#include "store/zookeeper/ticket/refuse.h"
#include "store/zookeeper/ticket/ticket.h"
#include "store/zookeeper/watch/watch.h"

#include <string.h>

#define TRIES_MAX 8

static mrt_zk_payload carry_claim, carry_release;
static mrt_zk_ticket_reply claimed, listed, seen, released, checked;
/* Creates a claim's node, and counts it: by the version of the directory's data. */
static const struct mrt_zk_step claim_step = {
    .send = mrt_zk_send_multi, .payload = carry_claim, .ticket_reply = claimed};
static const struct mrt_zk_step list_step = {.send = mrt_zk_send_list, .ticket_reply = listed};
static const struct mrt_zk_step read_step = {.send = mrt_zk_send_get, .ticket_reply = seen};
/* Deletes a claim's node, if nobody has claimed since. */
static const struct mrt_zk_step release_step = {
    .send = mrt_zk_send_multi, .payload = carry_release, .ticket_reply = released};
/* Whether the child called as a claim is one. */
static const struct mrt_zk_step check_step = {.send = mrt_zk_send_exists, .ticket_reply = checked};

/* ---------------------------------------------------------------- requests */

static bool send_to_node(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         const struct mrt_zk_step *step)
{
    return mrt_zk_ticket_send_node(session, ticket, step, MRT_ZK_CLAIM_NODE);
}

static void carry_claim(struct mrt_zk_outgoing *request)
{
    request->length = snprintf(request->text, sizeof request->text, MRT_ZK_CLAIM_DATA "%s\n%s",
                               request->ticket->uuid, request->session->store->label);
    zoo_set_op_init(mrt_zk_next_part(request), request->ticket->path, "", 0, -1, NULL);
    zoo_create_op_init(mrt_zk_next_part(request), request->path, request->text, request->length,
                       request->rights, ZOO_EPHEMERAL, NULL, 0);
}

static void carry_release(struct mrt_zk_outgoing *request)
{
    zoo_check_op_init(mrt_zk_next_part(request), request->ticket->path, request->ticket->version);
    zoo_delete_op_init(mrt_zk_next_part(request), request->path, -1);
}

static void inspect(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, bool fresh)
{
    ticket->attempt++;
    if (fresh && !mrt_zk_ticket_catch_up(session, ticket))
        return;
    if (mrt_zk_ticket_send(session, ticket, &list_step, ticket->path))
        send_to_node(session, ticket, &read_step);
}

static void claim(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + 8];
    ticket->attempt++;
    if (!send_to_node(session, ticket, &claim_step))
        return;
    snprintf(path, sizeof path, "%s/" MRT_ZK_CLAIM_NODE, ticket->path);
    if (mrt_zk_send(session, &list_step, ticket, 0, ticket->path) == ZOK &&
        mrt_zk_send(session, &read_step, ticket, 0, path) == ZOK)
        return;
    ticket->outcome_unknown = true;
    mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
}

void mrt_zk_claim_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    bool known = ticket->created || ticket->outcome_unknown;
    ticket->tries = 0;
    if (mrt_zk_ticket_command(ticket)->type == MRT_REMOVE) {
        bool in_doubt = !ticket->held || !ticket->own_watch || ticket->outcome_unknown;
        mrt_zk_unwait(ticket);
        mrt_zk_disown(session, ticket);
        ticket->waits = false;
        if (!known)
            mrt_zk_ticket_answer(session, ticket, MRT_REMOVED);
        else if (in_doubt)
            inspect(session, ticket, true);
        else
            send_to_node(session, ticket, &release_step);
    } else if (known || ticket->watch) {
        inspect(session, ticket, known);
    } else {
        claim(session, ticket);
    }
}

/* ------------------------------------------------------------------ the end */

static void forget(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    ticket->created = ticket->outcome_unknown = ticket->held = ticket->waits = false;
}

static void gone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    forget(session, ticket);
    mrt_zk_ticket_answer(session, ticket, MRT_GONE);
}

/* There is no node of ours: the end of a REMOVE, or of a refused claim. */
static void ended(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    forget(session, ticket);
    switch (mrt_zk_ticket_command(ticket)->type) {
    case MRT_REMOVE:
        mrt_zk_ticket_answer(session, ticket, MRT_REMOVED);
        break;
    case MRT_APPEND:
        mrt_zk_ticket_fail(session, ticket, ticket->refusal);
        break;
    default:
        gone(session, ticket); /* and its next APPEND is told why */
    }
}

static void released(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                     const struct mrt_zk_reply *reply)
{
    int code = reply->code;
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome == MRT_ZK_DONE || outcome == MRT_ZK_NO_NODE) {
        ended(session, ticket);
    } else if (code == ZBADVERSION && ++ticket->tries <= TRIES_MAX) {
        inspect(session, ticket, true); /* somebody has written to the directory */
    } else {
        mrt_zk_note_no_delete(session, ticket, code);
        if (mrt_zk_ticket_command(ticket)->type == MRT_REMOVE)
            mrt_zk_ticket_answer_code(session, ticket, code);
        else
            mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN); /* it is there */
    }
}

/* ------------------------------------------------------------------ the look */

/* Held, or, with something ahead, one that waits. */
static void show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    ticket->waits = ahead > 0;
    ticket->behind = true; /* there may be: nobody who waits can be seen */
    mrt_zk_ticket_show(session, ticket, ahead);
}

static void await(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_wait(session, ticket, MRT_ZK_CLAIM_NODE);
    show(session, ticket, 1);
}

/* Whether no other ticket of this session can have made the node of this transaction. */
static bool is_only_one(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                        int64_t czxid)
{
    const struct mrt_zk_ticket *other, *next;
    HASH_ITER (hh, session->tickets, other, next) {
        bool made_it =
            other->created ? other->czxid == 0 || other->czxid == czxid : other->outcome_unknown;
        if (other != ticket && made_it && strcmp(other->path, ticket->path) == 0)
            return false;
    }
    return true;
}

/* A node that was made is known by its transaction, and the one just made by its owner. One
   that may have been made is known by its data; if these have been written over, by the lack
   of anybody else who may have made it. */
static bool is_ours(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    const size_t kind = strlen(MRT_ZK_CLAIM_DATA), uuid = strlen(ticket->uuid);
    if (reply->stat->ephemeralOwner != session->server_id)
        return false;
    if (ticket->created)
        return ticket->czxid == 0 || reply->stat->czxid == ticket->czxid;
    if ((size_t)reply->length < kind + uuid || memcmp(reply->text, MRT_ZK_CLAIM_DATA, kind) != 0)
        return ticket->outcome_unknown && is_only_one(session, ticket, reply->stat->czxid);
    return memcmp(reply->text + kind, ticket->uuid, uuid) == 0;
}

bool mrt_zk_is_claim(const struct Stat *stat)
{
    const int64_t container = INT64_MIN;
    return stat->ephemeralOwner != 0 && stat->ephemeralOwner != container;
}

static bool mixed(const struct mrt_zk_ticket *ticket)
{
    return ticket->other.family != MRT_ZK_FOREIGN;
}

/* The node is ours. If it has not been granted yet, it may have to go again for `refusal`. */
static void ours(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int refusal)
{
    ticket->refusal = ticket->held ? ZOK : refusal;
    ticket->version = ticket->listed_version;
    if (ticket->refusal != ZOK || mrt_zk_ticket_command(ticket)->type == MRT_REMOVE) {
        send_to_node(session, ticket, &release_step);
        return;
    }
    mrt_zk_unwait(ticket);
    memcpy(ticket->node, MRT_ZK_CLAIM_NODE, sizeof MRT_ZK_CLAIM_NODE);
    mrt_zk_attend(session, ticket);
    show(session, ticket, 0);
}

/* It is free, or another's; `there`: what it is, NULL: nothing, or it may not be read. */
static void not_ours(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, bool free_now,
                     const struct Stat *there)
{
    const struct mrt_command *command = mrt_zk_ticket_command(ticket);
    bool other = mixed(ticket) || (there && !mrt_zk_is_claim(there));
    if (other && command->type == MRT_APPEND) {
        forget(session, ticket);
        mrt_zk_ticket_fail(session, ticket, MRT_ZK_OTHER);
    } else if (other) {
        gone(session, ticket);
    } else if (free_now && ++ticket->tries <= TRIES_MAX) {
        claim(session, ticket);
    } else if (command->try_only && command->type == MRT_APPEND) {
        forget(session, ticket);
        mrt_zk_ticket_answer(session, ticket, MRT_BLOCKED);
    } else {
        await(session, ticket);
    }
}

static void seen(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    bool removes = mrt_zk_ticket_command(ticket)->type == MRT_REMOVE;
    if (outcome == MRT_ZK_PERHAPS || outcome == MRT_ZK_SESSION_OVER) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    } else if (outcome == MRT_ZK_DONE && is_ours(session, ticket, reply)) {
        ticket->created = true;
        ticket->czxid = reply->stat->czxid;
        ours(session, ticket,
             ticket->listed != ZOK ? ticket->listed
             : mixed(ticket)       ? MRT_ZK_OTHER
                                   : ZOK);
    } else if (outcome == MRT_ZK_NOT_DONE && ticket->created && !ticket->held) {
        ours(session, ticket, reply->code); /* made, but not to be read by us */
    } else if (outcome == MRT_ZK_NOT_DONE && (removes || ticket->created)) {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
    } else if (removes) {
        ended(session, ticket);
    } else if (ticket->created) {
        gone(session, ticket);
    } else {
        not_ours(session, ticket, outcome == MRT_ZK_NO_NODE, reply->stat);
    }
}

static void listed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    ticket->listed = outcome == MRT_ZK_NO_NODE ? ZOK : reply->code;
    ticket->listed_version = outcome == MRT_ZK_DONE ? reply->stat->version : -1;
    ticket->other = (struct mrt_zk_place){.family = MRT_ZK_FOREIGN};
    if (outcome == MRT_ZK_PERHAPS || outcome == MRT_ZK_SESSION_OVER) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    for (int i = 0; outcome == MRT_ZK_DONE && i < reply->names->count; i++) {
        const struct mrt_zk_place place = mrt_zk_place_of(reply->names->data[i]);
        if (place.family != MRT_ZK_FOREIGN)
            ticket->other = place;
    }
}

static void claimed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    int code = reply->code;
    switch (mrt_zk_code(code)->outcome) {
    case MRT_ZK_DONE:
        ticket->created = true;
        ticket->czxid = 0; /* the look behind shows it */
        return;
    case MRT_ZK_NO_NODE:
        if (mrt_zk_directory_make_again(session, ticket, code))
            claim(session, ticket);
        return;
    case MRT_ZK_PERHAPS:
        ticket->outcome_unknown = true;
        break;
    default:
        if (code == ZNODEEXISTS)
            return;
    }
    mrt_zk_ticket_answer_code(session, ticket, code);
}

/* ---------------------------------------------------------------- other kinds */

bool mrt_zk_claim_check(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_view *view, bool probing,
                        void (*list_again)(struct mrt_zk_session *session,
                                           struct mrt_zk_ticket *ticket))
{
    const struct mrt_command *command = mrt_zk_ticket_command(ticket);
    if (!view->claim || ticket->unclaimed || command->type != MRT_APPEND || command->adopt)
        return false;
    ticket->probing = probing;
    ticket->list_again = list_again;
    send_to_node(session, ticket, &check_step);
    return true;
}

static void checked(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    bool claimed_by = outcome == MRT_ZK_DONE && mrt_zk_is_claim(reply->stat);
    if (claimed_by)
        ticket->other = mrt_zk_place_for(MRT_ZK_CURATOR, mrt_exclusive.kind, 1, 1);
    if ((outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) || ++ticket->tries > TRIES_MAX) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    } else if (claimed_by && ticket->probing) {
        mrt_zk_ticket_fail(session, ticket, MRT_ZK_OTHER);
    } else if (claimed_by) {
        mrt_zk_undo(session, ticket, MRT_ZK_OTHER);
    } else {
        ticket->unclaimed = outcome == MRT_ZK_DONE;
        ticket->list_again(session, ticket);
    }
}
