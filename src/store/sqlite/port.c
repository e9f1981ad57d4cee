/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded store: a SQLite file that the processes of one machine share.
 *
 * It needs no server and no lease: the kernel tells of a process's death
 * (session.c), so a session is alive until it says or dies otherwise. Everything is
 * done inside submit, on the calling thread; process only reads hints.
 *
 * Threads: calls on one store are serialised by the caller and may come from any thread.
 * fork: see fork.c. A child may only abandon the store: even closing the
 * connection would be a fault there (SQLite's locks are the parent's).
 */
#include "store/sqlite/command.h"

#include "base/error.h"
#include "base/name.h"
#include "base/parameter.h"
#include "store/sqlite/operator.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"
#include "store/sqlite/wake.h"
#include "store/sqlite/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT (5 * MRT_SECOND)

/* ------------------------------------------------------------ open and close */

/* The path of the URI, decoded; "" for the default. */
static int take_path(struct mrt_sqlite_store *store, const struct mrt_uri *uri)
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

static int take_parameters(struct mrt_sqlite_store *store, const struct mrt_uri *uri)
{
    static const struct mrt_parameter parameters[] = {
        {"unsafe_filesystem", MRT_PARAMETER_FLAG,
         .offset = offsetof(struct mrt_sqlite_store, any_filesystem)},
        {.key = NULL}};
    return mrt_parameters_read(uri, parameters, store);
}

static void free_memory(struct mrt_sqlite_store *store)
{
    free(store->wakes.items);
    free(store->blockers.items);
    free(store->dead.items);
    free(store);
}

static void close_events(struct mrt_sqlite_store *store)
{
    if (store->epoll_fd >= 0)
        close(store->epoll_fd);
    if (store->inotify_fd >= 0)
        close(store->inotify_fd);
    for (size_t i = 0; i < MRT_SQLITE_PEERS; i++)
        if (store->peers[i].fd >= 0)
            close(store->peers[i].fd);
}

static struct mrt_sqlite_store *store_new(const struct mrt_store_options *options,
                                          struct mrt_sink sink)
{
    struct mrt_sqlite_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->sink = sink;
    store->short_lived = options->short_lived;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    store->file.directory_fd = store->file.sessions_fd = -1;
    store->epoll_fd = store->inotify_fd = -1;
    for (size_t i = 0; i < MRT_SQLITE_PEERS; i++)
        store->peers[i].fd = -1;
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->watches);
    TAILQ_INIT(&store->observers);
    store->observed_wd = -1;
    for (size_t i = 0; i < MRT_SQLITE_BUCKETS; i++)
        TAILQ_INIT(&store->buckets[i]);
    return store;
}

static int sqlite_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                       struct mrt_sink sink, struct mrt_store **result)
{
    mrt_time timeout = options->timeout > 0 ? options->timeout : DEFAULT_TIMEOUT;
    struct mrt_sqlite_store *store = store_new(options, sink);
    if (!store)
        return MORTISE_ENOMEM;
    int error = take_path(store, uri);
    if (!error)
        error = take_parameters(store, uri);
    if (!error && (store->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        error = mrt_error(MORTISE_ESTORE, "cannot make an epoll descriptor");
    if (!error)
        error = mrt_sqlite_open_file(store, mrt_time_add(mrt_time_now(), timeout));
    if (error) {
        close_events(store);
        free_memory(store);
        return error;
    }
    *result = (struct mrt_store *)store;
    return 0;
}

static void sqlite_close(struct mrt_store *port)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    struct mrt_sqlite_session *session;
    while ((session = TAILQ_FIRST(&store->sessions)))
        mrt_sqlite_session_end(store, session);
    mrt_sqlite_close_file(store);
    close_events(store);
    free_memory(store);
}

/* The connection is left alone, and no watch is removed: the instance is the parent's. */
static void sqlite_abandon(struct mrt_store *port)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    mrt_sqlite_file_close(&store->file);
    close_events(store);
    free(store);
}

/* --------------------------------------------------------------------- port */

static bool sqlite_submit(struct mrt_store *port, const struct mrt_command *command,
                          mrt_time patience)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    /* A short-lived client's last commit follows its checkpoint, or the log would never be
       started anew: the next client knows nothing of checkpoints done. */
    if (store->short_lived && command->type == MRT_REMOVE)
        mrt_sqlite_tend(&store->db);
    int frames = store->db.frames;
    store->db.frames = 0;                       /* old news, once others may have committed */
    bool appends = command->type == MRT_APPEND; /* the answer ends the command */
    bool taken = mrt_sqlite_dispatch(store, command, patience);
    if (store->broken)
        return taken;
    if (store->short_lived && store->db.frames == 0)
        store->db.frames = frames; /* it has read alone: the next removal still needs to know */
    mrt_sqlite_wake_all(store, patience);
    if (!appends && taken)
        mrt_sqlite_tend(&store->db);
    mrt_sqlite_tell_of_fault(store);
    return taken;
}

static void sqlite_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    mrt_sqlite_hear(store, now);
    mrt_sqlite_tell_of_fault(store);
}

static mrt_time sqlite_next(struct mrt_store *port)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    return store->broken ? MRT_TIME_NEVER : mrt_sqlite_next_look(store);
}

/* Everything is done when it is submitted. */
static bool sqlite_answers_may_wait(const struct mrt_store *port)
{
    const struct mrt_sqlite_store *store = (const struct mrt_sqlite_store *)port;
    return !store->broken;
}

static int sqlite_list(struct mrt_store *port, const char *name, const char *prefix,
                       mrt_listed_callback callback, void *argument)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    if (store->broken)
        return mrt_error(MORTISE_ESTORE, "%s has been lost", store->address);
    return mrt_sqlite_list(store, name, prefix, callback, argument);
}

static int sqlite_server(struct mrt_store *port, char *text, size_t size)
{
    (void)port;
    snprintf(text, size, "SQLite %s, the library", sqlite3_libversion());
    return MORTISE_OK;
}

static int operate(struct mrt_store *port, const char *name, uint64_t fence,
                   int (*operation)(struct mrt_sqlite_store *, const char *, uint64_t))
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    if (store->broken)
        return mrt_error(MORTISE_ESTORE, "%s has been lost", store->address);
    if (!mrt_sqlite_file_in_place(&store->file))
        return mrt_error(MORTISE_ESTORE, "%s has been replaced or removed", store->file.path);
    store->db.frames = 0;
    int error = operation(store, name, fence);
    mrt_sqlite_wake_all(store, mrt_time_add(mrt_time_now(), MRT_SQLITE_OPERATOR_PATIENCE));
    mrt_sqlite_tend(&store->db);
    mrt_sqlite_tell_of_fault(store);
    return error;
}

static int sqlite_revoke(struct mrt_store *port, const char *name, uint64_t fence)
{
    return operate(port, name, fence, mrt_sqlite_revoke);
}

static int sqlite_break(struct mrt_store *port, const char *name, uint64_t fence)
{
    return operate(port, name, fence, mrt_sqlite_break);
}

static int sqlite_fd(struct mrt_store *port)
{
    struct mrt_sqlite_store *store = (struct mrt_sqlite_store *)port;
    return store->epoll_fd;
}

static const char *sqlite_address(const struct mrt_store *port)
{
    const struct mrt_sqlite_store *store = (const struct mrt_sqlite_store *)port;
    return store->address;
}

static void sqlite_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    const struct mrt_sqlite_store *store = (const struct mrt_sqlite_store *)port;
    mrt_traffic_sum(sum, &store->db.traffic);
}

const struct mrt_store_ops mrt_sqlite_store = {
    .scheme = "sqlite",
    .any_thread = true,
    .values = true,
    .cells = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .exclusive_fair = 1,
                     .fence = 1,
                     .notify = 1,
                     .across_hosts = 0,
                     .survives_failover = 0,
                     .durable_fence = 1,
                     .lease_ms = 0,
                     .detach = 1,
                     .linger = 1,
                     .lock_delay = 1},
    .open = sqlite_open,
    .submit = sqlite_submit,
    .fd = sqlite_fd,
    .next = sqlite_next,
    .process = sqlite_process,
    .answers_may_wait = sqlite_answers_may_wait,
    .list = sqlite_list,
    .server = sqlite_server,
    .traffic = sqlite_traffic,
    .revoke = sqlite_revoke,
    .break_ticket = sqlite_break,
    .address = sqlite_address,
    .close = sqlite_close,
    .abandon = sqlite_abandon,
};
