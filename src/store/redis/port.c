/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis store: the port on scripts that each do one command whole.
 *
 *   redis://[user@]host[:port][/db]?session=10s&connect=5s&namespace=mortise
 *       &credentials=/path&replicas=N&uptime=DURATION
 *   redis+sentinel://[user@]sentinel[:port],.../master[/db]?...
 *   redis+cluster://[user@]node[:port],...?...
 *   rediss:..., rediss+sentinel:..., rediss+cluster:...: the same with TLS
 *
 * A session is an entry with a lease, by the server's clock only. One renewal keeps it for the
 * client, however many locks the client has; a process may have several clients. A queue is a
 * sorted set of tickets by number. The numbers come from one counter that is never behind the
 * server's clock, so they rise even if the counter is lost. The script of a release also notifies
 * the sessions that the release lets in.
 *
 * Any number of sessions at a time. No function here waits: every entry (submit, process) does
 * its part, and delivers the events in the outbox.
 */
#include "store/redis/claim.h"
#include "store/redis/connection.h"
#include "store/redis/observe.h"
#include "store/redis/operator.h"
#include "store/redis/push.h"
#include "store/redis/resume.h"
#include "store/redis/rights.h"
#include "store/redis/script.h"
#include "store/redis/seek.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ------------------------------------------------------------------- turns */

static bool redis_submit(struct mrt_store *port, const struct mrt_command *command,
                         mrt_time patience)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    (void)patience; /* nothing here waits */
    struct mrt_redis_job *job = calloc(1, sizeof *job);
    if (!job)
        return false;
    job->command = *command;
    job->since = mrt_time_now();
    TAILQ_INSERT_TAIL(&store->waiting, job, link);
    mrt_redis_resume_submitted(store, command);
    mrt_redis_connection_send(store, job->since);
    mrt_redis_deliver(store);
    return true;
}

static void redis_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    struct epoll_event ready[4];
    int count = epoll_wait(store->epoll, ready, 4, 0);
    for (int i = 0; i < count; i++)
        if (ready[i].data.ptr == &store->wire)
            mrt_redis_connection_receive(store, now);
        else if (ready[i].data.ptr == &store->seek.wire)
            mrt_redis_connection_seek(store, now);
        else
            mrt_redis_messages_receive(store, now);
    mrt_redis_connection_tick(store, now);
    mrt_redis_push_tick(store, now);
    mrt_redis_connection_send(store, now);
    mrt_redis_deliver(store);
}

static int redis_fd(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    return store->epoll;
}

static mrt_time redis_next(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    return mrt_time_min(mrt_redis_connection_next(store), mrt_redis_push_next(store));
}

/* Commands are sent at once, each is one script, and the server does them unread, but for the first
   time that it is sent one: NOSCRIPT. */
static bool redis_answers_may_wait(const struct mrt_store *port)
{
    const struct mrt_redis_store *store = (const struct mrt_redis_store *)port;
    bool under_way = store->wire.state != MRT_REDIS_CLOSED || !TAILQ_EMPTY(&store->waiting);
    return !under_way || (store->wire.state == MRT_REDIS_OPEN &&
                          !mrt_redis_wire_is_sending(&store->wire) && TAILQ_EMPTY(&store->waiting));
}

static bool redis_asks_apart(const struct mrt_store *port)
{
    (void)port;
    return true;
}

static const char *redis_address(const struct mrt_store *port)
{
    const struct mrt_redis_store *store = (const struct mrt_redis_store *)port;
    return store->address.shown;
}

static mrt_time redis_lease(const struct mrt_store *port)
{
    const struct mrt_redis_store *store = (const struct mrt_redis_store *)port;
    return store->address.session;
}

/* ------------------------------------------------------------- open, close */

/* A session still open dies by its lease. */
static void redis_close(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    struct mrt_redis_session *session;
    mrt_redis_wire_close(&store->wire);
    mrt_redis_wire_close(&store->push);
    mrt_redis_seek_free(store);
    mrt_redis_resume_free(store);
    mrt_redis_jobs_free(&store->waiting);
    mrt_redis_jobs_free(&store->moved);
    mrt_redis_jobs_free(&store->sent);
    mrt_redis_jobs_free(&store->held);
    mrt_redis_jobs_free(&store->outbox);
    while ((session = TAILQ_FIRST(&store->sessions))) {
        TAILQ_REMOVE(&store->sessions, session, link);
        free(session);
    }
    mrt_redis_claims_free(store);
    mrt_redis_observe_free(store);
    mrt_resolver_forget(&store->resolver);
    if (store->epoll >= 0)
        close(store->epoll);
    mrt_redis_secure_close(&store->security);
    explicit_bzero(store->secret, sizeof store->secret);
    free(store);
}

static void redis_abandon(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    const int own[] = {store->wire.fd, store->push.fd, store->seek.wire.fd, store->epoll};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i] >= 0)
            close(own[i]);
    explicit_bzero(store->secret, sizeof store->secret);
    explicit_bzero(store->sentinel_secret, sizeof store->sentinel_secret);
    free(store);
}

static int set_names(struct mrt_redis_store *store)
{
    struct mrt_id id, key;
    char text[MRT_ID_TEXT_SIZE];
    if (!mrt_id_random(&id) || !mrt_id_random(&key))
        return mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    mrt_id_format(id, text);
    mrt_id_format(key, store->key);
    store->jitter = id.low;
    snprintf(store->channel, sizeof store->channel, "%sc:%s", store->address.base, text);
    snprintf(store->lease, sizeof store->lease, "%lld",
             (long long)(store->address.session / MRT_MILLISECOND));
    return MORTISE_OK;
}

/* A name server that is slow delays the first connection, and not the opening. */
static int find_servers(struct mrt_redis_store *store, bool later)
{
    const struct mrt_redis_address *address = &store->address;
    mrt_resolver_init(&store->resolver, address->hosts, address->host_count, 0);
    if (store->resolver.again == MRT_TIME_NEVER)
        return mrt_redis_resolve(address, &store->servers);
    if (later) {
        mrt_resolver_begin(&store->resolver, address->hosts, address->host_count, mrt_time_now());
        return MORTISE_OK;
    }
    struct mrt_addresses *found = mrt_resolver_wait(&store->resolver, address->hosts,
                                                    address->host_count, MRT_RESOLVE_AT_OPEN);
    if (found)
        mrt_redis_keep_servers(&store->servers, found);
    free(found);
    if (store->servers.count > 0 || store->resolver.under_way)
        return MORTISE_OK;
    return mrt_error(MORTISE_EUNREACHABLE, "%s: %s", address->shown,
                     mrt_resolver_fault(&store->resolver));
}

static int redis_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                      struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_redis_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->waiting);
    TAILQ_INIT(&store->sent);
    TAILQ_INIT(&store->moved);
    TAILQ_INIT(&store->held);
    TAILQ_INIT(&store->outbox);
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->claims);
    TAILQ_INIT(&store->observers);
    TAILQ_INIT(&store->watches);
    store->sink = sink;
    store->wire.fd = store->push.fd = store->seek.wire.fd = -1;
    store->wire.traffic = &store->traffic;
    store->wire.security = store->push.security = store->seek.wire.security = &store->security;
    mrt_notes_init(&store->notes, "Redis", options);
    store->timeout = options->timeout > 0 ? options->timeout : 5 * MRT_SECOND;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    store->epoll = epoll_create1(EPOLL_CLOEXEC);
    int error = MORTISE_OK;
    if (store->epoll < 0)
        error = mrt_error(MORTISE_ENOMEM, "no descriptor left for Redis");
    if (error == MORTISE_OK)
        error = mrt_redis_uri_parse(uri, &store->address);
    if (error == MORTISE_OK)
        error = mrt_redis_secret_read(uri, &store->address, store->secret);
    if (error == MORTISE_OK)
        error = mrt_redis_secure_open(&store->security, &store->address);
    if (error == MORTISE_OK)
        error = mrt_redis_sentinel_secret_read(uri, &store->address, store->sentinel_secret);
    if (error == MORTISE_OK)
        error = set_names(store);
    if (error == MORTISE_OK)
        error = find_servers(store, options->unresolved);
    if (error != MORTISE_OK) {
        redis_close((struct mrt_store *)store);
        return error;
    }
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

static void redis_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    const struct mrt_redis_store *store = (const struct mrt_redis_store *)port;
    mrt_traffic_sum(sum, &store->traffic);
}

const struct mrt_store_ops mrt_redis_store = {
    .scheme = "redis",
    .any_thread = true,
    .values = true,
    .cells = true,
    .claims_end = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .fence = 1,
                     .notify = 1,
                     .across_hosts = 1,
                     .survives_failover = 0,
                     .durable_fence = 0,
                     .lease_ms = 10000,
                     .detach = 1,
                     .linger = 1,
                     .lock_delay = 1},
    .open = redis_open,
    .print_rights = mrt_redis_print_rights,
    .submit = redis_submit,
    .fd = redis_fd,
    .next = redis_next,
    .process = redis_process,
    .answers_may_wait = redis_answers_may_wait,
    .asks_apart = redis_asks_apart,
    .list = mrt_redis_list,
    .server = mrt_redis_server,
    .traffic = redis_traffic,
    .revoke = mrt_redis_revoke,
    .break_ticket = mrt_redis_break,
    .lease = redis_lease,
    .address = redis_address,
    .close = redis_close,
    .abandon = redis_abandon,
};
