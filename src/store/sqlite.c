/*
 * The embedded store: a SQLite file that the processes of one machine share.
 *
 * It needs no server and no lease: the kernel tells of a process's death
 * (sqlite_session.c), so a session is alive until it says or dies otherwise. Everything is
 * done inside submit, on the calling thread; process only reads hints.
 *
 * What is lost, and how it is told. If the database has been replaced or removed, or
 * reading or writing it fails, nothing in it can be relied on: the command at hand FAILED,
 * and every session is told SESSION_LOST. The sessions are stopped without touching the
 * database; their files go, so whoever still uses it finds them dead. The next START
 * opens what lies at the path by then. A full disk is no such fault where nothing
 * was written; a ticket that cannot be taken out for it is given back by
 * ending its session.
 *
 * Threads: calls on one store are serialised by the caller and may come from any thread.
 * fork: see sqlite_fork.c. A child may only abandon the store: even closing the
 * connection would be a fault there (SQLite's locks are the parent's).
 */
#include "base/error.h"
#include "base/name.h"
#include "base/uri.h"
#include "store/sqlite_internal.h"
#include "store/stores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT (5 * MRT_SECOND)

/* ------------------------------------------------------------------- events */

void mrt_sqlite_tell(struct mrt_store *store, enum mrt_event_type type, struct mrt_id session,
                     struct mrt_id ticket)
{
    const struct mrt_event event = {.type = type, .session = session, .ticket = ticket};
    store->sink.deliver(store->sink.context, &event);
}

static bool answer(struct mrt_store *store, const struct mrt_command *command,
                   enum mrt_event_type type)
{
    const struct mrt_event event = {.type = type,
                                    .serial = command->serial,
                                    .session = command->session,
                                    .ticket = command->ticket};
    store->sink.deliver(store->sink.context, &event);
    return true;
}

/* Answers FAILED with the thread's error detail. */
static bool answer_failed(struct mrt_store *store, const struct mrt_command *command, int error)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    const struct mrt_event event = {.type = MRT_FAILED,
                                    .serial = command->serial,
                                    .session = command->session,
                                    .ticket = command->ticket,
                                    .error = error,
                                    .detail = detail[0] ? detail : NULL};
    store->sink.deliver(store->sink.context, &event);
    return true;
}

static bool answer_view(struct mrt_store *store, const struct mrt_command *command,
                        const struct mrt_sqlite_view *view)
{
    const struct mrt_event event = {.type = MRT_VIEW,
                                    .serial = command->serial,
                                    .session = command->session,
                                    .ticket = command->ticket,
                                    .fence = view->fence,
                                    .fence_span = UINT64_C(1) << MRT_SQLITE_FENCE_BITS,
                                    .weight_ahead = view->weight_ahead,
                                    .others_behind = view->others_behind,
                                    .recheck = view->recheck};
    store->sink.deliver(store->sink.context, &event);
    return true;
}

/* Ends all trust in what is open; the particulars are the thread's error detail. */
static void lose_everything(struct mrt_store *store)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    store->fault = false;
    store->broken = true;
    struct mrt_sqlite_session *session;
    TAILQ_FOREACH (session, &store->sessions, link) {
        if (session->lost)
            continue;
        session->lost = true;
        const struct mrt_event event = {.type = MRT_SESSION_LOST,
                                        .session = session->id,
                                        .error = MORTISE_ESTORE,
                                        .detail = detail[0] ? detail : NULL};
        store->sink.deliver(store->sink.context, &event);
    }
}

static void note_store_error(const struct mrt_store *store)
{
    mrt_error(MORTISE_ESTORE, "%s: %s", store->file.path, sqlite3_errstr(store->db.last_error));
}

/* What is common to all transactions that did not come to an end. */
static bool answer_outcome(struct mrt_store *store, const struct mrt_command *command,
                           enum mrt_outcome outcome)
{
    if (outcome == MRT_BUSY)
        return false;
    if (outcome == MRT_FULL && (store->db.last_error & 0xff) != SQLITE_FULL) {
        mrt_error(MORTISE_ENOMEM, "%s", "");
        return answer_failed(store, command, MORTISE_ENOMEM);
    }
    note_store_error(store);
    answer_failed(store, command, MORTISE_ESTORE);
    if (outcome == MRT_BROKEN || command->type == MRT_REMOVE)
        lose_everything(store);
    return true;
}

/* ------------------------------------------------------------ open and close */

static int open_file(struct mrt_store *store, mrt_time patience)
{
    int error = mrt_sqlite_file_open(&store->file, store->configured, store->any_filesystem);
    if (error)
        return error;
    if (mrt_fork_inherited(store->file.device, store->file.inode))
        error = mrt_error(MORTISE_EFORKED,
                          "%s was open in this process when it was forked off: open it after "
                          "the fork, or exec first",
                          store->file.path);
    if (!error)
        store->noted = mrt_fork_note_database(store->file.device, store->file.inode);
    if (!error && !store->noted)
        error = MORTISE_ENOMEM;
    if (!error)
        error = mrt_sqlite_db_open(&store->db, &store->file, store->short_lived, patience);
    if (error) {
        mrt_fork_forget_database(store->noted);
        store->noted = NULL;
        mrt_sqlite_file_close(&store->file);
        return error;
    }
    snprintf(store->address, sizeof store->address, "sqlite:%s", store->file.path);
    return 0;
}

static void close_file(struct mrt_store *store)
{
    mrt_sqlite_unwatch_all(store);
    mrt_sqlite_db_close(&store->db);
    mrt_fork_forget_database(store->noted);
    store->noted = NULL;
    mrt_sqlite_file_close(&store->file);
}

/* The path of the URI, decoded; "" for the default. */
static int take_path(struct mrt_store *store, const struct mrt_uri *uri)
{
    const char *path = uri->rest;
    if (strncmp(path, "//", 2) == 0) {
        path += 2;
        if (*path != '/')
            return mrt_error(MORTISE_EURI, "an absolute path has three slashes: "
                                           "sqlite:///path; a relative one none: sqlite:path");
    }
    if (snprintf(store->configured, sizeof store->configured, "%s", path) >=
        (int)sizeof store->configured)
        return mrt_error(MORTISE_EURI, "the database's path is too long");
    if (mrt_uri_decode(store->configured) < 0)
        return mrt_error(MORTISE_EURI, "malformed %% escape in the database's path");
    if (!mrt_text_is_clean(store->configured, strlen(store->configured)))
        return mrt_error(MORTISE_EURI, "the database's path is not clean UTF-8");
    return 0;
}

static int take_parameters(struct mrt_store *store, const struct mrt_uri *uri)
{
    static const char *const known[] = {"namespace", "unsafe_filesystem", NULL};
    int error = mrt_uri_check_parameters(uri, known);
    const char *unsafe = mrt_uri_parameter(uri, "unsafe_filesystem");
    if (error || !unsafe)
        return error;
    if (strcmp(unsafe, "yes") != 0 && strcmp(unsafe, "no") != 0)
        return mrt_error(MORTISE_EURI, "unsafe_filesystem is yes or no");
    store->any_filesystem = strcmp(unsafe, "yes") == 0;
    return 0;
}

static void free_memory(struct mrt_store *store)
{
    free(store->wakes.items);
    free(store->blockers.items);
    free(store->dead.items);
    free(store);
}

static void close_events(struct mrt_store *store)
{
    if (store->epoll_fd >= 0)
        close(store->epoll_fd);
    if (store->inotify_fd >= 0)
        close(store->inotify_fd);
    if (store->send_fd >= 0)
        close(store->send_fd);
}

static struct mrt_store *store_new(const struct mrt_store_options *options, struct mrt_sink sink)
{
    struct mrt_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->sink = sink;
    store->short_lived = options->short_lived;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    store->file.directory_fd = store->file.sessions_fd = -1;
    store->epoll_fd = store->inotify_fd = store->send_fd = -1;
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->watches);
    for (size_t i = 0; i < MRT_SQLITE_BUCKETS; i++)
        TAILQ_INIT(&store->buckets[i]);
    return store;
}

static int sqlite_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                       struct mrt_sink sink, struct mrt_store **result)
{
    mrt_time timeout = options->timeout > 0 ? options->timeout : DEFAULT_TIMEOUT;
    struct mrt_store *store = store_new(options, sink);
    if (!store)
        return MORTISE_ENOMEM;
    int error = take_path(store, uri);
    if (!error)
        error = take_parameters(store, uri);
    if (!error && (store->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        error = mrt_error(MORTISE_ESTORE, "cannot make an epoll descriptor");
    if (!error)
        error = open_file(store, mrt_time_add(mrt_time_now(), timeout));
    if (error) {
        close_events(store);
        free_memory(store);
        return error;
    }
    *result = store;
    return 0;
}

static void sqlite_close(struct mrt_store *store)
{
    struct mrt_sqlite_session *session;
    while ((session = TAILQ_FIRST(&store->sessions)))
        mrt_sqlite_session_end(store, session);
    close_file(store);
    close_events(store);
    free_memory(store);
}

static void sqlite_abandon(struct mrt_store *store)
{
    /* The connection is left alone; no watch is removed, the instance is the parent's. */
    struct mrt_sqlite_session *session;
    struct mrt_sqlite_ticket *ticket;
    struct mrt_sqlite_watch *watch;
    while ((session = TAILQ_FIRST(&store->sessions))) {
        while ((ticket = TAILQ_FIRST(&session->tickets)))
            mrt_sqlite_ticket_free(store, ticket);
        TAILQ_REMOVE(&store->sessions, session, link);
        free(session);
    }
    while ((watch = TAILQ_FIRST(&store->watches))) {
        TAILQ_REMOVE(&store->watches, watch, link);
        free(watch);
    }
    mrt_sqlite_file_close(&store->file);
    close_events(store);
    free_memory(store);
}

/* ----------------------------------------------------------------- sessions */

/* Opens what lies at the path now. */
static int reopen(struct mrt_store *store, mrt_time patience)
{
    struct mrt_sqlite_session *session;
    while ((session = TAILQ_FIRST(&store->sessions)))
        mrt_sqlite_session_end(store, session);
    close_file(store);
    store->broken = true;
    int error = open_file(store, patience);
    store->broken = error != 0;
    return error;
}

static bool start(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    int error = 0;
    mrt_error_clear();
    const struct mrt_sqlite_session *known = mrt_sqlite_session_find(store, command->session);
    if (known && !known->lost)
        return answer(store, command, MRT_STARTED);
    if (TAILQ_EMPTY(&store->sessions) && !store->broken && !mrt_sqlite_file_in_place(&store->file))
        store->broken = true;
    if (store->broken)
        error = reopen(store, patience);
    if (!error)
        error = mrt_sqlite_session_start(store, command->session);
    if (error)
        return answer_failed(store, command, error);
    mrt_sqlite_sweep(store, patience);
    return answer(store, command, MRT_STARTED);
}

static bool stop(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (!session)
        return answer(store, command, MRT_STOPPED);
    /* If the tickets cannot be taken out, who comes upon them will find the session dead. */
    if (!session->lost && mrt_sqlite_remove_all(store, session, patience) == MRT_BUSY)
        return false;
    mrt_sqlite_session_end(store, session);
    return answer(store, command, MRT_STOPPED);
}

/* Whether others still see the session, and the database at its path. */
static bool check_in_place(struct mrt_store *store, const struct mrt_sqlite_session *session)
{
    if (!mrt_sqlite_file_in_place(&store->file)) {
        mrt_error(MORTISE_ESTORE, "%s has been replaced or removed", store->file.path);
        return false;
    }
    if (!mrt_sqlite_session_visible(session)) {
        mrt_error(MORTISE_ESTORE, "this session's file in %s has been removed",
                  store->file.sessions);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------ tickets */

static bool refresh(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    struct mrt_sqlite_view view = {0};
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, command->ticket);
    if (!ticket || ticket->session->lost)
        return answer(store, command, MRT_GONE);
    if (!check_in_place(store, ticket->session)) {
        answer_failed(store, command, MORTISE_ESTORE);
        lose_everything(store);
        return true;
    }
    enum mrt_outcome outcome = mrt_sqlite_refresh(store, ticket, patience, &verdict, &view);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    if (verdict == MRT_IN_QUEUE)
        return answer_view(store, command, &view);
    mrt_sqlite_ticket_free(store, ticket);
    return answer(store, command, MRT_GONE);
}

static bool append(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    struct mrt_sqlite_view view = {0};
    struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    mrt_error_clear();
    if (!session || session->lost)
        return answer_failed(store, command, mrt_error(MORTISE_ELOST, "the session has ended"));
    if (mrt_sqlite_ticket_find(store, command->ticket))
        return refresh(store, command, patience);
    if (!check_in_place(store, session)) {
        answer_failed(store, command, MORTISE_ESTORE);
        lose_everything(store);
        return true;
    }
    enum mrt_outcome outcome =
        mrt_sqlite_append(store, session, command, patience, &verdict, &view);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    if (verdict == MRT_MISMATCH)
        return answer_failed(store, command, MORTISE_EMISMATCH);
    if (verdict == MRT_NO_ROOM)
        return answer(store, command, MRT_BLOCKED);
    return answer_view(store, command, &view);
}

static bool remove_ticket(struct mrt_store *store, const struct mrt_command *command,
                          mrt_time patience)
{
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, command->ticket);
    if (!ticket || ticket->session->lost || !mrt_id_equal(ticket->session->id, command->session))
        return answer(store, command, MRT_REMOVED);
    enum mrt_outcome outcome = mrt_sqlite_remove(store, ticket, patience);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    return answer(store, command, MRT_REMOVED);
}

static bool renew(struct mrt_store *store, const struct mrt_command *command)
{
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (session && !session->lost)
        return answer(store, command, MRT_RENEWED);
    return answer_failed(store, command, mrt_error(MORTISE_ELOST, "the session has ended"));
}

/* --------------------------------------------------------------------- port */

static bool dispatch(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    switch (command->type) {
    case MRT_START:
        return start(store, command, patience);
    case MRT_STOP:
        return stop(store, command, patience);
    case MRT_RENEW:
        return renew(store, command);
    case MRT_APPEND:
        return append(store, command, patience);
    case MRT_REFRESH:
        return refresh(store, command, patience);
    default:
        return remove_ticket(store, command, patience);
    }
}

static void tell_of_fault(struct mrt_store *store)
{
    if (!store->fault)
        return;
    note_store_error(store);
    lose_everything(store);
}

static bool sqlite_submit(struct mrt_store *store, const struct mrt_command *command,
                          mrt_time patience)
{
    store->db.frames = 0; /* old news, once others may have committed */
    bool taken = dispatch(store, command, patience);
    if (store->broken)
        return taken;
    mrt_sqlite_wake_all(store, patience);
    if (command->type != MRT_APPEND && taken)
        mrt_sqlite_tend(&store->db);
    tell_of_fault(store);
    return taken;
}

static void sqlite_process(struct mrt_store *store, mrt_time now)
{
    mrt_sqlite_hear(store, now);
    tell_of_fault(store);
}

static mrt_time sqlite_next(struct mrt_store *store)
{
    return store->broken ? MRT_TIME_NEVER : mrt_sqlite_next_look(store);
}

static int sqlite_list(struct mrt_store *store, const char *name, const char *prefix,
                       mortise_entry_callback callback, void *argument)
{
    if (store->broken)
        return mrt_error(MORTISE_ESTORE, "%s has been lost", store->address);
    return mrt_sqlite_list(store, name, prefix, callback, argument);
}

static int sqlite_fd(struct mrt_store *store)
{
    return store->epoll_fd;
}

static const char *sqlite_address(const struct mrt_store *store)
{
    return store->address;
}

const struct mrt_store_ops mrt_sqlite_store = {
    .scheme = "sqlite",
    .any_thread = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .fence = 1,
                     .notify = 1,
                     .across_hosts = 0,
                     .survives_failover = 0,
                     .durable_fence = 1,
                     .lease_ms = 0},
    .open = sqlite_open,
    .submit = sqlite_submit,
    .fd = sqlite_fd,
    .next = sqlite_next,
    .process = sqlite_process,
    .list = sqlite_list,
    .address = sqlite_address,
    .close = sqlite_close,
    .abandon = sqlite_abandon,
};
