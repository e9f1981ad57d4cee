/*
 * A ticket's commands, step by step. A ticket does one command at a time; each step is
 * one or more requests sent back to back, and the next step follows from the answers.
 *
 *   APPEND   in ticket/append.c
 *   REFRESH  list; sync + list if it was granted, for that must not be an old answer
 *   LIGHTEN, SET_VALUE  in ticket/data.c
 *   DETACH, and APPEND of what is detached, in ticket/detach.c
 *   REMOVE   in ticket/remove.c
 *
 * When a command ends, or takes another course, `attempt` grows: answers to requests of
 * before are dropped.
 */
#include "core/rule.h"
#include "store/kit/refusal.h"
#include "store/zookeeper/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct mrt_zk_ticket *mrt_zk_ticket_find(struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_ticket *ticket;
    HASH_FIND(hh, session->tickets, &id, sizeof id, ticket);
    return ticket;
}

static void begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

/* ------------------------------------------------------------------ the end */

static void free_ticket(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    HASH_DEL(session->tickets, ticket);
    free(ticket->suspects);
    free(ticket);
}

static struct mrt_job *end_job(struct mrt_zk_ticket *ticket)
{
    struct mrt_job *job = TAILQ_FIRST(&ticket->jobs);
    TAILQ_REMOVE(&ticket->jobs, job, link);
    ticket->attempt++;
    ticket->recovering = false;
    return job;
}

static void next_job(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (!TAILQ_EMPTY(&ticket->jobs))
        begin(session, ticket);
    else if (!ticket->created && !ticket->outcome_unknown && !ticket->waits)
        free_ticket(session, ticket);
}

void mrt_zk_ticket_answer(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                          enum mrt_event_type type)
{
    mrt_zk_answer(session->store, end_job(ticket), type);
    next_job(session, ticket);
}

void mrt_zk_ticket_answer_code(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                               int code)
{
    mrt_zk_answer_code(session->store, end_job(ticket), code);
    next_job(session, ticket);
}

/* In the words of every store; a code of the server's has its own. */
static void describe_refusal(const struct mrt_zk_ticket *ticket, struct mrt_job *job, int code)
{
    const struct mrt_zk_place *own = &ticket->place, *other = &ticket->other;
    const struct mrt_command *command = &job->command;
    if (code == MRT_ZK_OTHER && other->family != MRT_ZK_FOREIGN)
        mrt_job_set_detail(job, MRT_REFUSAL_MISMATCH, command->queue, mrt_zk_kind(other->family),
                           other->capacity, mrt_zk_kind(own->family), own->capacity);
    else if (code == MRT_ZK_FULL)
        mrt_job_set_detail(job, MRT_REFUSAL_FULL, command->queue_max, command->queue);
    else if (code == MRT_ZK_NO_HEIR)
        mrt_job_set_detail(job, MRT_REFUSAL_NOT_DETACHED, command->queue);
    else if (code == MRT_ZK_OTHER_HEIR)
        mrt_job_set_detail(job, MRT_REFUSAL_ADOPT);
}

void mrt_zk_ticket_fail(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    const struct mrt_zk_code *why = mrt_zk_code(code);
    struct mrt_job *job = end_job(ticket);
    if (code != MRT_ZK_MISPLACED) /* its detail is kept already */
        describe_refusal(ticket, job, code);
    if (job->detail[0])
        mrt_zk_fail(session->store, job, why->error);
    else
        mrt_zk_fail_with(session->store, job, why->error, why->text);
    next_job(session, ticket);
}

void mrt_zk_ticket_gone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    ticket->created = ticket->outcome_unknown = ticket->held = false;
    mrt_zk_ticket_answer(session, ticket, MRT_GONE);
}

void mrt_zk_ticket_end(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    while (!TAILQ_EMPTY(&ticket->jobs)) {
        struct mrt_job *job = end_job(ticket);
        if (job->command.type == MRT_REFRESH || job->command.type == MRT_SET_VALUE)
            mrt_zk_answer(session->store, job, MRT_GONE);
        else if (job->command.type == MRT_REMOVE)
            mrt_zk_answer(session->store, job, session->over ? MRT_REMOVED : MRT_UNKNOWN);
        else
            mrt_zk_answer(session->store, job, MRT_UNKNOWN);
    }
    free_ticket(session, ticket);
}

/* ----------------------------------------------------------------- requests */

bool mrt_zk_ticket_send(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind, const char *path)
{
    int code;
    if (mrt_zk_send(session, kind, ticket, path, &code))
        return true;
    if (mrt_zk_code(code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, code);
    mrt_zk_ticket_answer_code(session, ticket, code);
    return false;
}

bool mrt_zk_ticket_send_node(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             enum mrt_zk_request_kind kind, const char *node)
{
    char path[MRT_ZK_PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/%s", ticket->path, node);
    return mrt_zk_ticket_send(session, ticket, kind, path);
}

bool mrt_zk_ticket_herds(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket)
{
    return session->store->address.wake_all && ticket->place.family != MRT_ZK_SEMAPHORE;
}

enum mrt_zk_request_kind mrt_zk_ticket_view(const struct mrt_zk_session *session,
                                            const struct mrt_zk_ticket *ticket)
{
    bool semaphore = ticket->place.family == MRT_ZK_SEMAPHORE && ticket->waited;
    bool watched = !ticket->held && (semaphore || mrt_zk_ticket_herds(session, ticket));
    return watched || ticket->lingers ? MRT_ZK_WATCH_CHILDREN : MRT_ZK_VIEW;
}

bool mrt_zk_ticket_catch_up(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    enum mrt_zk_request_kind kind = ticket->outcome_unknown ? MRT_ZK_BARRIER : MRT_ZK_SYNC;
    return mrt_zk_ticket_send(session, ticket, kind, ticket->path);
}

void mrt_zk_ticket_list(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind, bool fresh)
{
    ticket->attempt++;
    if (kind == MRT_ZK_VIEW)
        kind = mrt_zk_ticket_view(session, ticket);
    if (fresh && !mrt_zk_ticket_catch_up(session, ticket))
        return;
    if (ticket->created && (!ticket->uuid[0] || (fresh && ticket->held)) &&
        !mrt_zk_ticket_send_node(session, ticket, MRT_ZK_STILL, ticket->node))
        return; /* another's may be called so by now, if ours was deleted */
    mrt_zk_ticket_send(session, ticket, kind, ticket->path);
}

/* ------------------------------------------------------------------ beginning */

static void begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    ticket->tries = 0;
    if (ticket->place.family == MRT_ZK_EXCLUSIVE) {
        mrt_zk_claim_begin(session, ticket);
        return;
    }
    switch (TAILQ_FIRST(&ticket->jobs)->command.type) {
    case MRT_APPEND:
        if (TAILQ_FIRST(&ticket->jobs)->command.adopt)
            mrt_zk_adopt_begin(session, ticket);
        else
            mrt_zk_append_begin(session, ticket);
        break;
    case MRT_DETACH:
        mrt_zk_detach_begin(session, ticket);
        break;
    case MRT_REMOVE:
        mrt_zk_remove_begin(session, ticket);
        break;
    case MRT_LIGHTEN:
    case MRT_SET_VALUE:
        mrt_zk_data_begin(session, ticket);
        break;
    default:
        if (!ticket->created) {
            mrt_zk_ticket_gone(session, ticket);
            break;
        }
        if (TAILQ_FIRST(&ticket->jobs)->command.watch_closely)
            mrt_zk_attend(session, ticket);
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, ticket->held);
    }
}

static struct mrt_zk_ticket *new_ticket(struct mrt_zk_session *session,
                                        const struct mrt_command *command, const char *path)
{
    struct mrt_zk_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->id = command->ticket;
    ticket->place = mrt_zk_place_for(session->store->address.layout, command->kind,
                                     command->capacity, command->weight);
    ticket->lingers = command->linger;
    /* An answer to one of this identity that was freed is not for this one. */
    ticket->attempt = ++session->numbers << 32;
    TAILQ_INIT(&ticket->jobs);
    mrt_zk_uuid(command->ticket, &ticket->place, ticket->uuid);
    memcpy(ticket->path, path, strlen(path) + 1);
    HASH_ADD(hh, session->tickets, id, sizeof ticket->id, ticket);
    if (ticket->hh.tbl)
        return ticket;
    free(ticket);
    return NULL;
}

void mrt_zk_ticket_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path)
{
    struct mrt_store *store = session->store;
    const struct mrt_command *command = &job->command;
    struct mrt_zk_ticket *ticket = mrt_zk_ticket_find(session, command->ticket);
    if (!ticket && command->type != MRT_APPEND && command->type != MRT_DETACH) {
        mrt_zk_answer(store, job, command->type == MRT_REMOVE ? MRT_REMOVED : MRT_GONE);
        return;
    }
    if (!ticket)
        ticket = new_ticket(session, command, path);
    if (!ticket) {
        mrt_zk_fail(store, job, MORTISE_ENOMEM);
        return;
    }
    bool idle = TAILQ_EMPTY(&ticket->jobs);
    TAILQ_INSERT_TAIL(&ticket->jobs, job, link);
    if (idle)
        begin(session, ticket);
}

/* ------------------------------------------------------------------ the view */

bool mrt_zk_ticket_fits(const struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    return mrt_rule_grants(ahead, ticket->place.weight, ticket->place.capacity);
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

void mrt_zk_report_view(struct mrt_store *store, struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    struct mrt_event event = {
        .type = MRT_VIEW, .session = store->session->id, .ticket = ticket->id};
    mrt_zk_ticket_describe(ticket, &event, ahead);
    mrt_outbox_add(&store->outbox, event);
}

void mrt_zk_ticket_show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        uint64_t ahead)
{
    struct mrt_job *job = end_job(ticket);
    mrt_zk_ticket_describe(ticket, &job->event, ahead);
    mrt_zk_answer(session->store, job, MRT_VIEW);
    next_job(session, ticket);
}

/* Waits for what the view says. False: it is to be listed again first, with a watch. */
static bool wait(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct mrt_zk_view *view, const struct mrt_zk_reply *reply)
{
    ticket->waited = true;
    ticket->before = view->before;
    ticket->after = view->after;
    if (view->blocker < 0 || mrt_zk_ticket_herds(session, ticket))
        return mrt_zk_wait_children(session, ticket);
    mrt_zk_wait(session, ticket, reply->names->data[view->blocker]);
    return true;
}

/* Acts on what the view says, and tells of it. */
static void take_view(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                      const struct mrt_zk_view *view, const struct mrt_zk_reply *reply)
{
    ticket->behind = view->behind;
    ticket->ahead = view->count;
    if (mrt_zk_ticket_fits(ticket, view->ahead)) {
        ticket->mark_due |= mrt_zk_mark_due(ticket, reply->stat);
        mrt_zk_mark(session, ticket);
        mrt_zk_unwait(ticket);
        if (ticket->lingers && !view->behind && !mrt_zk_wait_children(session, ticket)) {
            mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, false);
            return;
        }
    } else if (!wait(session, ticket, view, reply)) {
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, false);
        return;
    }
    mrt_zk_ticket_show(session, ticket, view->ahead);
}

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

static void viewed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    struct mrt_job *job = TAILQ_FIRST(&ticket->jobs);
    if (outcome == MRT_ZK_NOT_DONE && job->command.type == MRT_APPEND && !job->command.adopt) {
        mrt_zk_append_undo(session, ticket, reply->code);
        return;
    }
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
        return;
    }
    struct mrt_zk_view view = {.own = -1, .misplaced = -1};
    if (outcome == MRT_ZK_DONE)
        view = mrt_zk_view_of(session->store, ticket, reply->names);
    if (view.own >= 0 && mrt_zk_claim_asked(session, ticket, &view, false))
        return;
    int refusal =
        view.own < 0 ? ZOK : mrt_zk_append_refusal(ticket, &job->command, &view, reply->names);
    if (view.own < 0) {
        mrt_zk_ticket_gone(session, ticket);
    } else if (refusal != ZOK) {
        ticket->other = view.other;
        if (refusal == MRT_ZK_MISPLACED)
            mrt_zk_keep_misplaced(session->store, job, reply->names->data[view.misplaced]);
        mrt_zk_append_undo(session, ticket, refusal);
    } else if (mrt_zk_ticket_keep(ticket, reply->names->data[view.own])) {
        take_view(session, ticket, &view, reply);
    } else {
        mrt_zk_ticket_gone(session, ticket);
    }
}

/* ------------------------------------------------------------------ answers */

/* One with a UUID may have another node by now, of its session; that is in the list. */
static bool is_still(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                     const struct mrt_zk_reply *reply)
{
    if (ticket->uuid[0])
        return reply->code != ZOK || reply->stat->ephemeralOwner == session->server_id;
    return reply->code != ZNONODE && (reply->code != ZOK || reply->stat->czxid == ticket->czxid);
}

void mrt_zk_ticket_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    switch (kind) {
    case MRT_ZK_SYNC:
        if (reply->code != ZOK)
            mrt_zk_ticket_answer(session, ticket,
                                 MRT_UNKNOWN); /* the list behind it proves nothing */
        break;
    case MRT_ZK_BARRIER:
        if (outcome == MRT_ZK_PERHAPS || outcome == MRT_ZK_SESSION_OVER)
            mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        break;
    case MRT_ZK_STILL:
        ticket->created = is_still(session, ticket, reply);
        break; /* what else it may be, the list behind it is too */
    case MRT_ZK_VIEW:
    case MRT_ZK_WATCH_CHILDREN:
        viewed(session, ticket, reply);
        break;
    case MRT_ZK_CREATE:
    case MRT_ZK_PROBE:
    case MRT_ZK_FIND_CREATED:
    case MRT_ZK_UNDO:
        mrt_zk_append_reply(session, ticket, kind, reply);
        break;
    case MRT_ZK_SEEK:
        mrt_zk_seek_reply(session, ticket, reply);
        break;
    case MRT_ZK_PURGE:
    case MRT_ZK_DELETE:
    case MRT_ZK_PASS:
        mrt_zk_remove_reply(session, ticket, kind, reply);
        break;
    case MRT_ZK_HEIR:
    case MRT_ZK_HEIR_OWNER:
    case MRT_ZK_HEIR_READ:
    case MRT_ZK_DETACH:
    case MRT_ZK_TAKE:
        mrt_zk_heir_reply(session, ticket, kind, reply);
        break;
    case MRT_ZK_CLAIM_CREATE:
    case MRT_ZK_CLAIM_LIST:
    case MRT_ZK_CLAIM_READ:
    case MRT_ZK_CLAIM_DELETE:
    case MRT_ZK_CLAIM_STAT:
        mrt_zk_claim_reply(session, ticket, kind, reply);
        break;
    case MRT_ZK_LIGHTEN:
    case MRT_ZK_SET:
    case MRT_ZK_READ:
        mrt_zk_data_reply(session, ticket, kind, reply);
        break;
    default: /* PARENT, DIRECTORY: the create behind them tells, but not why */
        ticket->barred |= reply->code == ZNOAUTH;
    }
}
