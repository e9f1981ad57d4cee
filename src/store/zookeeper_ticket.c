/*
 * A ticket's commands, step by step. A ticket does one command at a time; each step is
 * one or more requests sent back to back, and the next step follows from the answers.
 *
 *   APPEND   create + list                         one round trip
 *     no directory: parents + create + list        bounded, then FAILED
 *     try: list; if free create + list; if it was not free after all delete
 *     again after an unknown outcome: sync + list; adopt what we made, or create
 *   REFRESH  list; sync + list if it was granted, for that must not be an old answer
 *   REMOVE   in zookeeper_remove.c
 *
 * A node is ours if its name has the ticket's UUID and its owner is this session. A
 * session's requests are answered in order, so the list sent right behind the create
 * includes the own node and everything that was ahead of it.
 *
 * When a command ends, or takes another course, `attempt` grows: answers to requests of
 * before are dropped.
 */
#include "core/defect.h"
#include "core/rule.h"
#include "store/zookeeper_internal.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 8

struct mrt_zk_ticket *mrt_zk_ticket_find(struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_ticket *ticket;
    HASH_FIND(hh, session->tickets, &id, sizeof id, ticket);
    return ticket;
}

static void begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
static void undone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code);

/* ------------------------------------------------------------------ the end */

static void free_ticket(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    HASH_DEL(session->tickets, ticket);
    free(ticket);
}

static struct mrt_zk_job *end_job(struct mrt_zk_ticket *ticket)
{
    struct mrt_zk_job *job = TAILQ_FIRST(&ticket->jobs);
    TAILQ_REMOVE(&ticket->jobs, job, link);
    ticket->attempt++;
    ticket->adopting = false;
    return job;
}

static void next_job(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (!TAILQ_EMPTY(&ticket->jobs))
        begin(session, ticket);
    else if (!ticket->created && !ticket->maybe)
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

static void fail(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    const struct mrt_zk_code *why = mrt_zk_code(code);
    mrt_zk_fail(session->store, end_job(ticket), why->error, why->text);
    next_job(session, ticket);
}

static void gone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    ticket->created = ticket->maybe = ticket->held = false;
    mrt_zk_ticket_answer(session, ticket, MRT_GONE);
}

void mrt_zk_ticket_end(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    while (!TAILQ_EMPTY(&ticket->jobs)) {
        struct mrt_zk_job *job = end_job(ticket);
        if (job->command.type == MRT_REFRESH)
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

static void send_parents(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX];
    int code;
    size_t length = strlen(ticket->path);
    for (size_t end = 1; end <= length; end++) {
        if (ticket->path[end] != '/' && ticket->path[end] != '\0')
            continue;
        if (ticket->tries <= 1 && end < length)
            continue; /* mostly only the last is missing */
        memcpy(path, ticket->path, end);
        path[end] = '\0';
        mrt_zk_send(session, end < length ? MRT_ZK_PARENT : MRT_ZK_DIRECTORY, ticket, path, &code);
    }
}

static void create(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/" MRT_ZK_NODE_PREFIX "%s%s", ticket->path, ticket->uuid,
             mrt_zk_mark(ticket->family));
    int code;
    if (!mrt_zk_ticket_send(session, ticket, MRT_ZK_CREATE, path))
        return;
    if (!mrt_zk_send(session, MRT_ZK_VIEW, ticket, ticket->path, &code)) {
        ticket->maybe = true;
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    }
}

void mrt_zk_ticket_list(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind, bool fresh)
{
    ticket->attempt++;
    if (!fresh || mrt_zk_ticket_send(session, ticket, MRT_ZK_SYNC, ticket->path))
        mrt_zk_ticket_send(session, ticket, kind, ticket->path);
}

/* ------------------------------------------------------------------ beginning */

static void begin_append(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    ticket->tries = 0;
    ticket->adopting = ticket->maybe && !ticket->created;
    if (ticket->created)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
    else if (ticket->adopting)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_ADOPT, !MRT_DEFECT(ZK_NO_SYNC_BEFORE_ADOPT));
    else if (TAILQ_FIRST(&ticket->jobs)->command.try_only)
        mrt_zk_ticket_list(session, ticket, MRT_ZK_PROBE, false);
    else
        create(session, ticket);
}

/* A node cannot be called otherwise: a new one takes its place, in one transaction. */
static void begin_lighten(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (!ticket->created)
        gone(session, ticket);
    else if (ticket->family == MRT_ZK_WRITER)
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_LIGHTEN, ticket->node);
    else
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
}

static void begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    switch (TAILQ_FIRST(&ticket->jobs)->command.type) {
    case MRT_APPEND:
        begin_append(session, ticket);
        break;
    case MRT_REMOVE:
        mrt_zk_remove_begin(session, ticket);
        break;
    case MRT_LIGHTEN:
        begin_lighten(session, ticket);
        break;
    default:
        if (ticket->created)
            mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, ticket->held);
        else
            gone(session, ticket);
    }
}

static struct mrt_zk_ticket *new_ticket(struct mrt_zk_session *session,
                                        const struct mrt_command *command, const char *path)
{
    struct mrt_zk_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->id = command->ticket;
    ticket->family = mrt_zk_family_of(command->kind, command->capacity, command->weight);
    ticket->capacity = command->capacity;
    /* An answer to one of this identity that was freed is not for this one. */
    ticket->attempt = ++session->numbers << 32;
    TAILQ_INIT(&ticket->jobs);
    mrt_zk_uuid(command->ticket, ticket->uuid);
    memcpy(ticket->path, path, strlen(path) + 1);
    HASH_ADD(hh, session->tickets, id, sizeof ticket->id, ticket);
    if (ticket->hh.tbl)
        return ticket;
    free(ticket);
    return NULL;
}

void mrt_zk_ticket_submit(struct mrt_zk_session *session, struct mrt_zk_job *job, const char *path)
{
    struct mrt_store *store = session->store;
    const struct mrt_command *command = &job->command;
    struct mrt_zk_ticket *ticket = mrt_zk_ticket_find(session, command->ticket);
    if (!ticket && command->type != MRT_APPEND) {
        mrt_zk_answer(store, job, command->type == MRT_REMOVE ? MRT_REMOVED : MRT_GONE);
        return;
    }
    if (!ticket)
        ticket = new_ticket(session, command, path);
    if (!ticket) {
        mrt_zk_fail(store, job, MORTISE_ENOMEM, NULL);
        return;
    }
    bool idle = TAILQ_EMPTY(&ticket->jobs);
    TAILQ_INSERT_TAIL(&ticket->jobs, job, link);
    if (idle)
        begin(session, ticket);
}

/* ------------------------------------------------------------------ the view */

static bool granted(const struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    return mrt_rule_grants(ahead, mrt_zk_weight(ticket->family), ticket->capacity);
}

void mrt_zk_ticket_describe(struct mrt_zk_ticket *ticket, struct mrt_event *event, uint64_t ahead)
{
    ticket->held = granted(ticket, ahead);
    event->fence = (uint64_t)ticket->czxid * MRT_ZK_FENCE_SPAN;
    if (MRT_DEFECT(ZK_FENCE_FROM_SEQUENCE))
        event->fence = (uint64_t)((int64_t)ticket->sequence - INT32_MIN) * MRT_ZK_FENCE_SPAN;
    event->fence_span = MRT_ZK_FENCE_SPAN;
    event->weight_ahead = ahead;
    event->others_behind = ticket->behind;
    event->recheck = ticket->watch || ticket->held ? MRT_ZK_RECHECK : MRT_ZK_RECHECK_UNWATCHED;
}

static void show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, uint64_t ahead)
{
    struct mrt_zk_job *job = end_job(ticket);
    mrt_zk_ticket_describe(ticket, &job->event, ahead);
    mrt_zk_answer(session->store, job, MRT_VIEW);
    next_job(session, ticket);
}

/* Waits for what the view says, and tells of it. */
static void take_view(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                      const struct mrt_zk_view *view, const struct String_vector *names)
{
    ticket->behind = view->behind;
    if (!granted(ticket, view->ahead)) {
        ticket->waited = true;
        ticket->before = view->before;
        ticket->after = view->after;
        mrt_zk_wait(session, ticket, names->data[view->blocker]);
    } else {
        mrt_zk_unwait(ticket);
    }
    show(session, ticket, view->ahead);
}

/* Why an APPEND may not stand after all; ZOK: it may. */
static int refusal_of(const struct mrt_zk_ticket *ticket, const struct mrt_command *command,
                      const struct mrt_zk_view *view)
{
    if (command->type != MRT_APPEND)
        return ZOK;
    if (view->other)
        return MRT_ZK_OTHER;
    if (command->try_only && !granted(ticket, view->ahead))
        return MRT_ZK_BLOCKED;
    /* One of those ahead at least is not waiting. */
    return command->queue_max > 0 && view->tickets > command->queue_max ? MRT_ZK_FULL : ZOK;
}

/* Keeps the node's name, and what it is now; false: it cannot be one of ours. */
static bool keep_node(struct mrt_zk_ticket *ticket, const char *node)
{
    size_t length = strlen(node);
    enum mrt_zk_family family = mrt_zk_contender(node, &ticket->sequence);
    if (length >= sizeof ticket->node || family == MRT_ZK_FOREIGN ||
        !mrt_zk_same_lock(family, ticket->family))
        return false;
    ticket->family = family;
    memcpy(ticket->node, node, length + 1);
    return true;
}

static void viewed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    const struct mrt_zk_job *job = TAILQ_FIRST(&ticket->jobs);
    if (outcome == MRT_ZK_NOT_DONE && job->command.type == MRT_APPEND) {
        ticket->refusal = reply->code;
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_UNDO, ticket->node);
        return;
    }
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
        return;
    }
    struct mrt_zk_view view = {.own = -1};
    if (outcome == MRT_ZK_DONE)
        view = mrt_zk_look(session->store, ticket, reply->names);
    int refusal = view.own < 0 ? ZOK : refusal_of(ticket, &job->command, &view);
    if (view.own < 0 && (!ticket->held || !MRT_DEFECT(ZK_OWN_NODE_GONE_IGNORED))) {
        gone(session, ticket);
    } else if (view.own < 0) {
        show(session, ticket, view.ahead);
    } else if (refusal != ZOK) {
        ticket->refusal = refusal;
        if (MRT_DEFECT(ZK_TRY_LEAVES_NODE) && refusal == MRT_ZK_BLOCKED)
            undone(session, ticket, ZOK);
        else
            mrt_zk_ticket_send_node(session, ticket, MRT_ZK_UNDO, ticket->node);
    } else if (keep_node(ticket, reply->names->data[view.own])) {
        take_view(session, ticket, &view, reply->names);
    } else {
        gone(session, ticket);
    }
}

/* ------------------------------------------------------------------ answers */

static void no_directory(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    ticket->attempt++; /* the list behind the create says nothing */
    if (++ticket->tries > TRIES_MAX || MRT_DEFECT(ZK_NO_PARENT)) {
        mrt_zk_ticket_answer_code(session, ticket, ticket->barred ? ZNOAUTH : code);
        return;
    }
    ticket->barred = false;
    send_parents(session, ticket);
    create(session, ticket);
}

static void created(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    const char *slash = reply->text ? strrchr(reply->text, '/') : NULL;
    switch (mrt_zk_code(reply->code)->outcome) {
    case MRT_ZK_NO_NODE:
        no_directory(session, ticket, reply->code);
        return;
    case MRT_ZK_DONE:
        if (slash && reply->stat->ephemeralOwner == session->server_id &&
            keep_node(ticket, slash + 1)) {
            ticket->created = true;
            ticket->czxid = reply->stat->czxid;
            return; /* the list follows */
        }
        ticket->maybe = true;
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    case MRT_ZK_PERHAPS:
        ticket->maybe = !MRT_DEFECT(ZK_GHOST_LEFT);
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
    struct mrt_zk_view view = {.own = -1};
    if (outcome == MRT_ZK_DONE)
        view = mrt_zk_look(session->store, ticket, reply->names);
    if (view.other)
        fail(session, ticket, MRT_ZK_OTHER);
    else if (!granted(ticket, view.ahead))
        mrt_zk_ticket_answer(session, ticket, MRT_BLOCKED);
    else if (outcome == MRT_ZK_DONE || outcome == MRT_ZK_NO_NODE)
        create(session, ticket);
    else
        fail(session, ticket, reply->code); /* whatever it was, a list changes nothing */
}

/* The oldest node of an earlier create; -1: none. */
static int find_own(const struct mrt_zk_ticket *ticket, const struct String_vector *names)
{
    int found = -1;
    int32_t sequence, oldest = 0;
    for (int i = 0; i < names->count; i++) {
        if (!strstr(names->data[i], ticket->uuid) ||
            mrt_zk_contender(names->data[i], &sequence) == MRT_ZK_FOREIGN)
            continue;
        if (found < 0 || mrt_zk_before(sequence, oldest)) {
            found = i;
            oldest = sequence;
        }
    }
    return found;
}

static void sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
        return;
    }
    int own = outcome == MRT_ZK_DONE ? find_own(ticket, reply->names) : -1;
    if (own < 0 || !keep_node(ticket, reply->names->data[own]))
        create(session, ticket);
    else
        mrt_zk_ticket_send_node(session, ticket, MRT_ZK_OWNER, ticket->node);
}

static void owner_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_NO_NODE && ++ticket->tries <= TRIES_MAX) {
        mrt_zk_ticket_list(session, ticket, MRT_ZK_ADOPT, true);
    } else if (outcome == MRT_ZK_DONE && (reply->stat->ephemeralOwner == session->server_id ||
                                          MRT_DEFECT(ZK_ADOPT_FOREIGN_OWNER))) {
        ticket->created = true; /* `maybe` stays: there may be another one, for REMOVE to find */
        ticket->czxid = reply->stat->czxid;
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, false);
    } else {
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
    }
}

/* Whatever came of it, the list shows which node there is now. Of unknown outcome it is
   asked for again, and until then there may be one more than is known. */
static void lightened(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    ticket->maybe |= outcome == MRT_ZK_PERHAPS;
    if (outcome == MRT_ZK_PERHAPS || (outcome == MRT_ZK_NOT_DONE && code != ZNODEEXISTS))
        mrt_zk_ticket_answer_code(session, ticket, code);
    else
        mrt_zk_ticket_list(session, ticket, MRT_ZK_VIEW, true);
}

static void undone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE && !MRT_DEFECT(ZK_UNDO_ONCE)) {
        mrt_zk_note_no_delete(session, ticket, code);
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN); /* it may be there */
        return;
    }
    ticket->created = ticket->maybe = false;
    if (ticket->refusal == MRT_ZK_BLOCKED)
        mrt_zk_ticket_answer(session, ticket, MRT_BLOCKED);
    else
        mrt_zk_ticket_answer_code(session, ticket, ticket->refusal);
}

void mrt_zk_ticket_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    switch (kind) {
    case MRT_ZK_SYNC:
        if (reply->code != ZOK)
            mrt_zk_ticket_answer(session, ticket,
                                 MRT_UNKNOWN); /* the list behind it proves nothing */
        break;
    case MRT_ZK_CREATE:
        created(session, ticket, reply);
        break;
    case MRT_ZK_VIEW:
        viewed(session, ticket, reply);
        break;
    case MRT_ZK_PROBE:
        probed(session, ticket, reply);
        break;
    case MRT_ZK_ADOPT:
        sought(session, ticket, reply);
        break;
    case MRT_ZK_OWNER:
        owner_read(session, ticket, reply);
        break;
    case MRT_ZK_PURGE:
    case MRT_ZK_DELETE:
    case MRT_ZK_PASS:
        mrt_zk_remove_reply(session, ticket, kind, reply);
        break;
    case MRT_ZK_LIGHTEN:
        lightened(session, ticket, reply->code);
        break;
    case MRT_ZK_UNDO:
        undone(session, ticket, reply->code);
        break;
    default: /* PARENT, DIRECTORY: the create behind them tells, but not why */
        ticket->barred |= reply->code == ZNOAUTH;
    }
}
