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
 * A session's requests are answered in order, so the
 * list sent right behind the create includes the own node and everything that was ahead of it. What
 * that list says is the ticket's view (ticket/ticket.c); a ticket that may not stand after it is
 * taken back. A try is not to be told of a holder who is known elsewhere to have gone, hence its
 * sync.
 */
#include "store/zookeeper/internal.h"

#include <string.h>

#define TRIES_MAX 8

/* ---------------------------------------------------------------- beginning */

void mrt_zk_send_parents(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         const char *path, bool all)
{
    char part[MRT_ZK_PATH_MAX];
    int code;
    size_t length = strlen(path);
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        if (!all && end < length)
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        mrt_zk_send(session, end < length ? MRT_ZK_PARENT : MRT_ZK_DIRECTORY, ticket, part, &code);
    }
}

static void create(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + MRT_ZK_NODE_SIZE], head[MRT_ZK_NODE_SIZE];
    mrt_zk_node_head(ticket->uuid, &ticket->place, head);
    snprintf(path, sizeof path, "%s/%s", ticket->path, head);
    int code;
    ticket->unclaimed = false;
    if (!mrt_zk_ticket_send(session, ticket, MRT_ZK_CREATE, path))
        return;
    if (!mrt_zk_send(session, mrt_zk_ticket_view(session, ticket), ticket, ticket->path, &code)) {
        ticket->outcome_unknown = true;
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    }
}

void mrt_zk_append_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    const struct mrt_command *command = &TAILQ_FIRST(&ticket->jobs)->command;
    ticket->recovering = ticket->outcome_unknown && !ticket->created;
    if (ticket->created)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
    else if (ticket->recovering)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_FIND_CREATED, true);
    else if (command->try_only && !command->expect_free)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_PROBE, true);
    else
        create(session, ticket);
}

/* ---------------------------------------------------------------- what may not stand */

int mrt_zk_append_refusal(const struct mrt_zk_ticket *ticket, const struct mrt_command *command,
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

static void undone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_note_no_delete(session, ticket, code);
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN); /* it may be there */
        return;
    }
    ticket->created = ticket->outcome_unknown = false;
    if (TAILQ_FIRST(&ticket->jobs)->command.type != MRT_APPEND)
        mrt_zk_ticket_gone(session, ticket); /* and its next APPEND is told why */
    else if (ticket->refusal == MRT_ZK_BLOCKED)
        mrt_zk_ticket_answer(session, ticket, MRT_BLOCKED);
    else
        mrt_zk_ticket_fail(session, ticket, ticket->refusal);
}

void mrt_zk_append_undo(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int refusal)
{
    ticket->refusal = refusal;
    mrt_zk_ticket_send_node(session, ticket, MRT_ZK_UNDO, ticket->node);
}

/* ---------------------------------------------------------------- answers */

bool mrt_zk_append_directory(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    ticket->attempt++; /* the list behind the create says nothing */
    if (++ticket->tries > TRIES_MAX) {
        mrt_zk_ticket_answer_code(session, ticket, ticket->barred ? ZNOAUTH : code);
        return false;
    }
    ticket->barred = false;
    mrt_zk_send_parents(session, ticket, ticket->path, ticket->tries > 1); /* mostly just one */
    return true;
}

static void created(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    const char *slash = reply->text ? strrchr(reply->text, '/') : NULL;
    switch (mrt_zk_code(reply->code)->outcome) {
    case MRT_ZK_NO_NODE:
        if (mrt_zk_append_directory(session, ticket, reply->code))
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

static void probed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    struct mrt_zk_view view = {.own = -1, .misplaced = -1};
    if (outcome == MRT_ZK_DONE)
        view = mrt_zk_view_of(session->store, ticket, reply->names);
    if (mrt_zk_claim_asked(session, ticket, &view, true))
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
        mrt_zk_ticket_fail(session, ticket,
                           reply->code); /* whatever it was, a list changes nothing */
}

static void sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    if (outcome == MRT_ZK_DONE)
        mrt_zk_seek_begin(session, ticket, reply->names);
    else
        create(session, ticket);
}

void mrt_zk_append_sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->created)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, false);
    else
        create(session, ticket);
}

void mrt_zk_append_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    switch (kind) {
    case MRT_ZK_CREATE:
        created(session, ticket, reply);
        break;
    case MRT_ZK_PROBE:
        probed(session, ticket, reply);
        break;
    case MRT_ZK_FIND_CREATED:
        sought(session, ticket, reply);
        break;
    default:
        undone(session, ticket, reply->code);
    }
}
