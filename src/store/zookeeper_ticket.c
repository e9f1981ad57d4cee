/*
 * A ticket's commands, step by step. A ticket does one command at a time; each step is
 * one or more requests sent back to back, and the next step follows from the answers.
 *
 *   APPEND   create + list                         one round trip
 *     no directory: parents + create + list        bounded, then FAILED
 *     try: list; if free create + list; if it was not free after all delete
 *     again after an unknown outcome: sync + list; adopt what we made, or create
 *   REFRESH  list; sync + list if it was granted, for that must not be an old answer
 *   REMOVE   delete; sync + list + deletes if there may be a node we do not know
 *
 * A node is ours if its name has the ticket's UUID and its owner is this session. A
 * session's requests are answered in order, so the list sent right behind the create
 * includes the own node and everything that was ahead of it.
 *
 * When a command ends, or takes another course, `attempt` grows: answers to requests of
 * before are dropped.
 */
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

/* ------------------------------------------------------------------ the end */

static void free_ticket(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwatch(ticket);
    HASH_DEL(session->tickets, ticket);
    free(ticket);
}

/* The command at hand is answered; the next one begins, or a ticket without a node goes. */
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

static void end_with(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                     enum mrt_event_type type)
{
    mrt_zk_answer(session->store, end_job(ticket), type);
    next_job(session, ticket);
}

static void end_with_code(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
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
    mrt_zk_unwatch(ticket);
    ticket->created = ticket->maybe = ticket->held = false;
    end_with(session, ticket, MRT_GONE);
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

static const char *node_path(const struct mrt_zk_ticket *ticket, const char *node, char *path,
                             size_t size)
{
    snprintf(path, size, "%s/%s", ticket->path, node);
    return path;
}

/* Sends; if that cannot be done the command ends. False: it has ended. */
static bool post(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 enum mrt_zk_request_kind kind, const char *path)
{
    int code;
    if (mrt_zk_send(session, kind, ticket, path, &code))
        return true;
    if (mrt_zk_code(code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, code);
    end_with_code(session, ticket, code);
    return false;
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
    snprintf(path, sizeof path, "%s/" MRT_ZK_NODE_PREFIX "%s" MRT_ZK_NODE_MARK, ticket->path,
             ticket->uuid);
    int code;
    if (!post(session, ticket, MRT_ZK_CREATE, path))
        return;
    if (!mrt_zk_send(session, MRT_ZK_VIEW, ticket, ticket->path, &code)) {
        ticket->maybe = true;
        end_with(session, ticket, MRT_UNKNOWN);
    }
}

static void list(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 enum mrt_zk_request_kind kind, bool fresh)
{
    ticket->attempt++;
    if (!fresh || post(session, ticket, MRT_ZK_SYNC, ticket->path))
        post(session, ticket, kind, ticket->path);
}

static void delete_node(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind)
{
    char path[MRT_ZK_PATH_MAX + 256];
    post(session, ticket, kind, node_path(ticket, ticket->node, path, sizeof path));
}

/* ------------------------------------------------------------------ beginning */

static void begin_append(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    ticket->tries = 0;
    ticket->adopting = ticket->maybe && !ticket->created;
    if (ticket->created)
        list(session, ticket, MRT_ZK_VIEW, true);
    else if (ticket->adopting)
        list(session, ticket, MRT_ZK_ADOPT, true);
    else if (TAILQ_FIRST(&ticket->jobs)->command.try_only)
        list(session, ticket, MRT_ZK_PROBE, false);
    else
        create(session, ticket);
}

static void begin_remove(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwatch(ticket);
    ticket->deletes = 0;
    if (ticket->maybe)
        list(session, ticket, MRT_ZK_PURGE, true);
    else if (ticket->created)
        delete_node(session, ticket, MRT_ZK_DELETE);
    else
        end_with(session, ticket, MRT_REMOVED);
}

static void begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    switch (TAILQ_FIRST(&ticket->jobs)->command.type) {
    case MRT_APPEND:
        begin_append(session, ticket);
        break;
    case MRT_REMOVE:
        begin_remove(session, ticket);
        break;
    default:
        if (ticket->created)
            list(session, ticket, MRT_ZK_VIEW, ticket->held);
        else
            gone(session, ticket);
    }
}

static struct mrt_zk_ticket *new_ticket(struct mrt_zk_session *session, struct mrt_id id,
                                        const char *path)
{
    struct mrt_zk_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->id = id;
    /* An answer to one of this identity that was freed is not for this one. */
    ticket->attempt = ++session->numbers << 32;
    TAILQ_INIT(&ticket->jobs);
    mrt_zk_uuid(id, ticket->uuid);
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
        ticket = new_ticket(session, command->ticket, path);
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

/* What is said of a directory's children, once each for a store. */
static void note_families(struct mrt_store *store, const struct String_vector *names,
                          unsigned families, int foreign)
{
    if (foreign >= 0 && strstr(names->data[foreign], "lock") != NULL)
        mrt_zk_note(store, MRT_ZK_NOTE_FOREIGN,
                    "node \"%.100s\" in a lock's directory is not understood and not counted",
                    names->data[foreign]);
    const unsigned both = 1u << MRT_ZK_CURATOR | 1u << MRT_ZK_KAZOO;
    if ((families & both) == both)
        mrt_zk_note(store, MRT_ZK_NOTE_MIXTURE,
                    "names of Curator (lock-) and of stock kazoo (__lock__) in one lock's "
                    "directory: those two do not exclude each other");
}

struct view {
    uint64_t ahead;
    bool behind, own;
    int nearest; /* index of the last one ahead; -1: none */
};

static struct view look(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                        const struct String_vector *names)
{
    struct view view = {.nearest = -1};
    int32_t sequence, nearest = 0;
    unsigned families = 0;
    int foreign = -1;
    for (int i = 0; i < names->count; i++) {
        enum mrt_zk_family family = mrt_zk_contender(names->data[i], &sequence);
        families |= 1u << family;
        if (family == MRT_ZK_FOREIGN) {
            foreign = i;
        } else if (ticket->created && strcmp(names->data[i], ticket->node) == 0) {
            view.own = true;
        } else if (ticket->created && mrt_zk_before(ticket->sequence, sequence)) {
            view.behind = true;
        } else {
            view.ahead++;
            if (view.nearest < 0 || mrt_zk_before(nearest, sequence)) {
                view.nearest = i;
                nearest = sequence;
            }
        }
    }
    note_families(store, names, families, foreign);
    return view;
}

static void show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct view *view)
{
    struct mrt_zk_job *job = end_job(ticket);
    ticket->held = view->ahead == 0;
    job->event.fence = (uint64_t)ticket->czxid * MRT_ZK_FENCE_SPAN;
    job->event.fence_span = MRT_ZK_FENCE_SPAN;
    job->event.weight_ahead = view->ahead;
    job->event.others_behind = view->behind;
    job->event.recheck = ticket->watch || ticket->held ? MRT_ZK_RECHECK : MRT_ZK_RECHECK_UNWATCHED;
    mrt_zk_answer(session->store, job, MRT_VIEW);
    next_job(session, ticket);
}

static void viewed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    const struct mrt_zk_job *job = TAILQ_FIRST(&ticket->jobs);
    if (outcome == MRT_ZK_NOT_DONE && job->command.type == MRT_APPEND) {
        ticket->refusal = reply->code;
        delete_node(session, ticket, MRT_ZK_UNDO);
        return;
    }
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        end_with_code(session, ticket, reply->code);
        return;
    }
    struct view view = {.nearest = -1};
    if (outcome == MRT_ZK_DONE)
        view = look(session->store, ticket, reply->names);
    if (!view.own) {
        gone(session, ticket);
    } else if (view.ahead > 0 && job->command.type == MRT_APPEND && job->command.try_only) {
        ticket->refusal = 0;
        delete_node(session, ticket, MRT_ZK_UNDO);
    } else if (job->command.type == MRT_APPEND && job->command.queue_max > 0 &&
               view.ahead > job->command.queue_max) { /* one of them is not waiting */
        ticket->refusal = MRT_ZK_FULL;
        delete_node(session, ticket, MRT_ZK_UNDO);
    } else {
        if (view.ahead > 0)
            mrt_zk_watch(session, ticket, reply->names->data[view.nearest]);
        else
            mrt_zk_unwatch(ticket);
        show(session, ticket, &view);
    }
}

/* ------------------------------------------------------------------ answers */

/* Keeps the node's name; false: it cannot be one of ours. */
static bool keep_node(struct mrt_zk_ticket *ticket, const char *node)
{
    size_t length = strlen(node);
    if (length >= sizeof ticket->node ||
        mrt_zk_contender(node, &ticket->sequence) != MRT_ZK_CURATOR)
        return false;
    memcpy(ticket->node, node, length + 1);
    return true;
}

static void no_directory(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    ticket->attempt++; /* the list behind the create says nothing */
    if (++ticket->tries > TRIES_MAX) {
        end_with_code(session, ticket, ticket->barred ? ZNOAUTH : code);
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
        end_with(session, ticket, MRT_UNKNOWN);
        return;
    case MRT_ZK_PERHAPS:
        ticket->maybe = true;
        break;
    default:
        break;
    }
    end_with_code(session, ticket, reply->code);
}

static void probed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_DONE && look(session->store, ticket, reply->names).ahead > 0)
        end_with(session, ticket, MRT_BLOCKED);
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
            mrt_zk_contender(names->data[i], &sequence) != MRT_ZK_CURATOR)
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
    char path[MRT_ZK_PATH_MAX + 256];
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        end_with(session, ticket, MRT_UNKNOWN);
        return;
    }
    int own = outcome == MRT_ZK_DONE ? find_own(ticket, reply->names) : -1;
    if (own < 0 || !keep_node(ticket, reply->names->data[own]))
        create(session, ticket);
    else
        post(session, ticket, MRT_ZK_OWNER, node_path(ticket, ticket->node, path, sizeof path));
}

static void owner_read(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_NO_NODE && ++ticket->tries <= TRIES_MAX) {
        list(session, ticket, MRT_ZK_ADOPT, true);
    } else if (outcome == MRT_ZK_DONE && reply->stat->ephemeralOwner == session->server_id) {
        ticket->created = true; /* `maybe` stays: there may be another one, for REMOVE to find */
        ticket->czxid = reply->stat->czxid;
        list(session, ticket, MRT_ZK_VIEW, false);
    } else {
        end_with(session, ticket, MRT_UNKNOWN);
    }
}

/* Who may create in a directory but not delete cannot release: only the session's end does. */
static void note_no_delete(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                           int code)
{
    if (code == ZNOAUTH)
        mrt_zk_note(session->store, MRT_ZK_NOTE_NO_DELETE,
                    "the ACL of %.150s lets us create but not delete: what is acquired there stays "
                    "taken until the client is closed",
                    ticket->path);
}

/* A delete of REMOVE. It is REMOVED when all are proven. */
static void deleted(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        note_no_delete(session, ticket, code);
        end_with_code(session, ticket, code);
        return;
    }
    if (ticket->deletes > 1) {
        ticket->deletes--;
        return;
    }
    ticket->created = ticket->maybe = false;
    end_with(session, ticket, MRT_REMOVED);
}

static void purge(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                  const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    char path[MRT_ZK_PATH_MAX + 256];
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        end_with_code(session, ticket, reply->code);
        return;
    }
    int count = outcome == MRT_ZK_DONE ? reply->names->count : 0;
    for (int i = 0; i < count; i++) {
        if (!strstr(reply->names->data[i], ticket->uuid))
            continue;
        ticket->deletes++;
        if (!post(session, ticket, MRT_ZK_DELETE,
                  node_path(ticket, reply->names->data[i], path, sizeof path)))
            return;
    }
    if (ticket->deletes == 0)
        deleted(session, ticket, ZOK);
}

static void undone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        note_no_delete(session, ticket, code);
        end_with(session, ticket, MRT_UNKNOWN); /* it may be there */
        return;
    }
    ticket->created = ticket->maybe = false;
    if (ticket->refusal == 0)
        end_with(session, ticket, MRT_BLOCKED);
    else
        end_with_code(session, ticket, ticket->refusal);
}

void mrt_zk_ticket_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    switch (kind) {
    case MRT_ZK_SYNC:
        if (reply->code != ZOK)
            end_with(session, ticket, MRT_UNKNOWN); /* the list behind it proves nothing */
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
        purge(session, ticket, reply);
        break;
    case MRT_ZK_DELETE:
        deleted(session, ticket, reply->code);
        break;
    case MRT_ZK_UNDO:
        undone(session, ticket, reply->code);
        break;
    default: /* PARENT, DIRECTORY: the create behind them tells, but not why */
        ticket->barred |= reply->code == ZNOAUTH;
    }
}
