/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory store: clients of one process share a server by name.
 *
 *   memory:NAME             sessions live until they are closed
 *   memory:NAME?lease=2s    sessions have a lease (ms, s), for tests of loss
 *
 * Threads: any. Each server has a mutex, taken inside submit, process, next, list
 * and close, and never while anything is delivered. If a command of one store causes an event for
 * another, the event is put into the other's inbox and its loop is notified, under the mutex,
 * so the other cannot be closed meanwhile. A sink's notify must therefore not block.
 *
 * Invariant: an answer without a value needs no memory that might be lacking: its job is on the
 * stack of submit, which delivers it before it returns. A wake that finds no memory is lost, which
 * the port allows. Fences go on rising after the last store of a name is closed.
 */
#include "store/memory/memory.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/parameter.h"
#include "store/kit/job.h"
#include "store/memory/server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECHECK (5 * MRT_SECOND)
#define FENCE_SPAN (UINT64_C(1) << 32)
#define LEASE_MAX (24 * 3600 * MRT_SECOND)

TAILQ_HEAD(store_list, mrt_memory_store);
TAILQ_HEAD(server_list, server);

struct server {
    TAILQ_ENTRY(server) link;
    unsigned references; /* under registry_mutex */
    mrt_time lease;
    pthread_mutex_t mutex; /* what follows */
    bool frozen;
    struct mrt_memory_server *core;
    struct store_list stores;
    char name[];
};

struct mrt_memory_store {
    TAILQ_ENTRY(mrt_memory_store) link; /* of the server */
    struct server *server;
    struct mrt_outbox inbox; /* under the server's mutex; for this store, of all that share it */
    struct mrt_job *job;     /* during submit, until it is answered */
    char *label;
    char *address;
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct server_list registry = TAILQ_HEAD_INITIALIZER(registry);
static uint64_t fence_floor = 1; /* no server of this process has given out more */

/* ------------------------------------------------------------- servers by name */

static struct server *make_server(const char *name, mrt_time lease)
{
    size_t size = strlen(name) + 1;
    struct server *server = calloc(1, sizeof *server + size);
    if (!server)
        return NULL;
    const struct mrt_memory_config config = {
        .lease = lease, .recheck = RECHECK, .fence_span = FENCE_SPAN, .first_fence = fence_floor};
    server->core = mrt_memory_server_new(&config);
    if (!server->core) {
        free(server);
        return NULL;
    }
    memcpy(server->name, name, size);
    server->lease = lease;
    pthread_mutex_init(&server->mutex, NULL);
    TAILQ_INIT(&server->stores);
    TAILQ_INSERT_TAIL(&registry, server, link);
    return server;
}

static struct server *find_server(const char *name)
{
    struct server *server;
    TAILQ_FOREACH (server, &registry, link)
        if (strcmp(server->name, name) == 0)
            return server;
    return NULL;
}

static int take_server(const char *name, mrt_time lease, struct server **taken)
{
    int error = MORTISE_OK;
    pthread_mutex_lock(&registry_mutex);
    struct server *server = find_server(name);
    if (!server)
        server = make_server(name, lease);
    if (!server)
        error = MORTISE_ENOMEM;
    else if (server->lease != lease)
        error = mrt_error(MORTISE_EURI, "memory:%s is in use with another lease", name);
    else
        server->references++;
    pthread_mutex_unlock(&registry_mutex);
    *taken = server;
    return error;
}

static void leave_server(struct server *server)
{
    pthread_mutex_lock(&registry_mutex);
    if (--server->references == 0) {
        uint64_t next = mrt_memory_server_next_fence(server->core);
        if (fence_floor < next)
            fence_floor = next;
        TAILQ_REMOVE(&registry, server, link);
        mrt_memory_server_free(server->core);
        pthread_mutex_destroy(&server->mutex);
        free(server);
    }
    pthread_mutex_unlock(&registry_mutex);
}

/* ------------------------------------------------------------- events */

/* Called by the server, under its mutex; `context` is the store whose command it is, or NULL. */
static void receive(void *context, void *peer, const struct mrt_event *event)
{
    struct mrt_memory_store *store = peer;
    if (store == context && event->serial != 0) {
        struct mrt_job *job = store->job;
        MRT_ASSERT(job && job->command.serial == event->serial);
        store->job = NULL;
        if (!store->server->frozen) {
            if (!mrt_job_set_event(job, event))
                job->event.type = MRT_UNKNOWN; /* no memory for a value */
            return;
        }
    }
    if (!mrt_outbox_add(&store->inbox, *event))
        return;
    if (store != context && !store->server->frozen)
        store->inbox.sink.notify(store->inbox.sink.context);
}

static struct mrt_memory_sink sink_for(struct mrt_memory_store *store)
{
    return (struct mrt_memory_sink){.emit = receive, .context = store};
}

/* Unlocks the server's mutex, and delivers the events that have come. */
static void unlock_and_deliver(struct mrt_memory_store *store)
{
    struct mrt_jobs taken = TAILQ_HEAD_INITIALIZER(taken);
    if (!store->server->frozen)
        TAILQ_CONCAT(&taken, &store->inbox.jobs, link);
    pthread_mutex_unlock(&store->server->mutex);
    mrt_jobs_deliver(&taken, &store->inbox.sink);
}

/* ------------------------------------------------------------- the port */

static int read_uri(const struct mrt_uri *uri, mrt_time *lease)
{
    static const struct mrt_parameter parameters[] = {
        {"lease", MRT_PARAMETER_DURATION, .least = MRT_MILLISECOND, .most = LEASE_MAX},
        {.key = NULL}};
    int error = mrt_parameters_read(uri, parameters, lease);
    if (error == MORTISE_OK && uri->rest[0] == '\0')
        error = mrt_error(MORTISE_EURI, "store URI memory: needs a name, as in memory:test");
    return error;
}

static struct mrt_memory_store *of(struct mrt_store *store)
{
    return (struct mrt_memory_store *)store;
}

static void free_store(struct mrt_memory_store *store)
{
    mrt_outbox_free(&store->inbox);
    free(store->label);
    free(store->address);
    free(store);
}

static struct mrt_memory_store *make_store(const char *name, const char *label,
                                           struct mrt_sink sink)
{
    struct mrt_memory_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    mrt_outbox_init(&store->inbox, sink);
    store->label = strdup(label ? label : "");
    if (store->label && asprintf(&store->address, "memory:%s", name) >= 0)
        return store;
    store->address = NULL;
    free_store(store);
    return NULL;
}

static int memory_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                       struct mrt_sink sink, struct mrt_store **opened)
{
    mrt_time lease = 0;
    int error = read_uri(uri, &lease);
    if (error)
        return error;
    struct mrt_memory_store *store = make_store(uri->rest, options->label, sink);
    if (!store)
        return MORTISE_ENOMEM;
    error = take_server(uri->rest, lease, &store->server);
    if (error) {
        free_store(store);
        return error;
    }
    pthread_mutex_lock(&store->server->mutex);
    TAILQ_INSERT_TAIL(&store->server->stores, store, link);
    pthread_mutex_unlock(&store->server->mutex);
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

static bool memory_submit(struct mrt_store *opened, const struct mrt_command *command,
                          mrt_time patience)
{
    (void)patience; /* nothing here takes time */
    struct mrt_memory_store *store = of(opened);
    const struct mrt_memory_sink sink = sink_for(store);
    struct mrt_job job = {.command = *command};
    mrt_time now = mrt_time_now();
    pthread_mutex_lock(&store->server->mutex);
    store->job = &job;
    mrt_memory_server_expire(store->server->core, now, &sink);
    mrt_memory_server_apply(store->server->core, command, store, now, &sink);
    MRT_ASSERT(!store->job); /* every command is answered */
    unlock_and_deliver(store);
    if (job.event.serial != 0) /* 0: the answer is in the inbox of a frozen server */
        mrt_job_deliver(&job, &store->inbox.sink);
    free(job.value);
    return true;
}

static int memory_fd(struct mrt_store *store)
{
    (void)store;
    return -1;
}

static mrt_time memory_next(struct mrt_store *store)
{
    struct server *server = of(store)->server;
    if (server->lease == 0)
        return MRT_TIME_NEVER;
    pthread_mutex_lock(&server->mutex);
    mrt_time next = mrt_memory_server_next(server->core);
    pthread_mutex_unlock(&server->mutex);
    return next;
}

static void memory_process(struct mrt_store *opened, mrt_time now)
{
    struct mrt_memory_store *store = of(opened);
    const struct mrt_memory_sink sink = sink_for(store);
    pthread_mutex_lock(&store->server->mutex);
    mrt_memory_server_expire(store->server->core, now, &sink);
    unlock_and_deliver(store);
}

static int operate(struct mrt_store *store, const char *name, uint64_t fence,
                   int (*operation)(struct mrt_memory_server *, const char *, uint64_t,
                                    const struct mrt_memory_sink *))
{
    struct server *server = of(store)->server;
    const struct mrt_memory_sink sink = {.emit = receive}; /* it causes events for all alike */
    pthread_mutex_lock(&server->mutex);
    int error = operation(server->core, name, fence, &sink);
    pthread_mutex_unlock(&server->mutex);
    return error;
}

static int memory_revoke(struct mrt_store *store, const char *name, uint64_t fence)
{
    return operate(store, name, fence, mrt_memory_server_revoke);
}

static int memory_break(struct mrt_store *store, const char *name, uint64_t fence)
{
    return operate(store, name, fence, mrt_memory_server_break);
}

static const char *memory_address(const struct mrt_store *store)
{
    return ((const struct mrt_memory_store *)store)->address;
}

static mrt_time memory_lease(const struct mrt_store *store)
{
    return ((const struct mrt_memory_store *)store)->server->lease;
}

static void memory_close(struct mrt_store *opened)
{
    struct mrt_memory_store *store = of(opened);
    struct server *server = store->server;
    const struct mrt_memory_sink sink = sink_for(store);
    pthread_mutex_lock(&server->mutex);
    mrt_memory_server_drop(server->core, store, mrt_time_now(), &sink);
    TAILQ_REMOVE(&server->stores, store, link);
    pthread_mutex_unlock(&server->mutex);
    leave_server(server);
    free_store(store);
}

static void memory_abandon(struct mrt_store *opened)
{
    free(of(opened)); /* there is no descriptor */
}

void mrt_memory_freeze(const char *name, bool frozen)
{
    pthread_mutex_lock(&registry_mutex);
    struct server *server = find_server(name);
    if (server) {
        pthread_mutex_lock(&server->mutex);
        server->frozen = frozen;
        struct mrt_memory_store *store;
        TAILQ_FOREACH (store, &server->stores, link)
            if (!frozen)
                store->inbox.sink.notify(store->inbox.sink.context);
        pthread_mutex_unlock(&server->mutex);
    }
    pthread_mutex_unlock(&registry_mutex);
}

/* ------------------------------------------------------------- list */

struct listing {
    const char *prefix;
    mrt_time now;
    int64_t now_ms; /* wall clock minus the server's clock */
    mrt_listed_callback callback;
    void *argument;
};

static int show(void *context, const struct mrt_memory_entry *entry)
{
    const struct listing *listing = context;
    const struct mrt_memory_store *owner = entry->peer;
    if (listing->prefix && strncmp(entry->queue, listing->prefix, strlen(listing->prefix)) != 0)
        return 0;
    char ticket[MRT_CLAIM_SIZE];
    mrt_claim_format(entry->ticket, ticket);
    const struct mrt_listed shown = {
        .entry = {.size = sizeof(mortise_entry),
                  .name = entry->queue,
                  .kind = entry->kind,
                  .label = owner ? owner->label : "",
                  .fence = entry->fence,
                  .place = entry->place,
                  .weight = entry->weight,
                  .capacity = entry->capacity,
                  .detached = entry->detached,
                  .delay_ms = mrt_time_left_ms(entry->until, listing->now),
                  .since_wall_ms = listing->now_ms + entry->since / MRT_MILLISECOND},
        .claim = ticket};
    return listing->callback(listing->argument, &shown);
}

static int memory_list(struct mrt_store *store, const char *name, const char *prefix,
                       mrt_listed_callback callback, void *argument)
{
    struct listing listing = {.prefix = name ? NULL : prefix,
                              .now = mrt_time_now(),
                              .callback = callback,
                              .argument = argument};
    listing.now_ms = mrt_time_wall_ms() - listing.now / MRT_MILLISECOND;
    const struct mrt_memory_sink sink = {.emit = receive};
    struct server *server = of(store)->server;
    pthread_mutex_lock(&server->mutex);
    mrt_memory_server_expire(server->core, listing.now, &sink);
    if (name)
        mrt_memory_server_list_queue(server->core, name, show, &listing);
    else
        mrt_memory_server_list(server->core, show, &listing);
    pthread_mutex_unlock(&server->mutex);
    return MORTISE_OK;
}

const struct mrt_store_ops mrt_memory_store = {
    .scheme = "memory",
    .any_thread = true,
    .values = true,
    .cells = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .exclusive_fair = 1,
                     .fence = 1,
                     .notify = 1,
                     .detach = 1,
                     .linger = 1,
                     .lock_delay = 1},
    .open = memory_open,
    .submit = memory_submit,
    .fd = memory_fd,
    .next = memory_next,
    .process = memory_process,
    .list = memory_list,
    .revoke = memory_revoke,
    .break_ticket = memory_break,
    .lease = memory_lease,
    .address = memory_address,
    .close = memory_close,
    .abandon = memory_abandon,
};
