/*
 * The Redis store: the port on scripts that each do one command whole.
 *
 *   redis://[user@]host[:port][/db]?session=10s&connect=5s&namespace=mortise
 *       &credentials=/path&replicas=N&uptime=DURATION
 *
 * A session is an entry with a lease, renewed once for the client, which a process may have
 * several of, however many locks it has, by the server's clock alone. A queue is a sorted set of
 * tickets by number; the numbers come from one counter, which is never behind the server's clock,
 * so that they rise even if it is lost. Who releases tells, in the same script, the sessions that
 * may run now.
 *
 * Any number of sessions at a time. Nothing here waits: every entry (submit, process) does
 * its part, and delivers what has gathered in the outbox.
 */
#include "store/redis/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ------------------------------------------------------------------- events */

void mrt_redis_job_free(struct mrt_redis_job *job)
{
    free(job->value);
    free(job);
}

static void put(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    job->event.serial = job->command.serial;
    job->event.session = job->command.session;
    job->event.ticket = job->command.ticket;
    TAILQ_INSERT_TAIL(&store->outbox, job, link);
}

void mrt_redis_answer(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      enum mrt_event_type type)
{
    job->event.type = type;
    if (mrt_redis_copies_needed(store, job))
        mrt_redis_copies_ask(store, job);
    else
        put(store, job);
}

void mrt_redis_fail(struct mrt_redis_store *store, struct mrt_redis_job *job, int error,
                    const char *format, ...)
{
    va_list arguments;
    int prefix = snprintf(job->detail, sizeof job->detail, "Redis: ");
    va_start(arguments, format);
    vsnprintf(job->detail + prefix, sizeof job->detail - (size_t)prefix, format, arguments);
    va_end(arguments);
    job->event.error = error;
    bool perhaps = job->repeated && job->stage == MRT_REDIS_ASKED && error != MORTISE_ELOST;
    mrt_redis_answer(store, job, perhaps ? MRT_UNKNOWN : MRT_FAILED);
}

struct mrt_event *mrt_redis_tell(struct mrt_redis_store *store, enum mrt_event_type type,
                                 struct mrt_id session)
{
    struct mrt_redis_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL; /* what is told unasked may be lost */
    job->event.type = type;
    job->event.session = session;
    TAILQ_INSERT_TAIL(&store->outbox, job, link);
    return &job->event;
}

void mrt_redis_wake_all(struct mrt_redis_store *store)
{
    const struct mrt_redis_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        mrt_redis_tell(store, MRT_WAKE, session->id);
}

static void deliver_all(struct mrt_redis_store *store)
{
    struct mrt_redis_job *job;
    while ((job = TAILQ_FIRST(&store->outbox))) {
        TAILQ_REMOVE(&store->outbox, job, link);
        job->event.detail = job->detail[0] ? job->detail : NULL;
        store->sink.deliver(store->sink.context, &job->event);
        mrt_redis_job_free(job);
    }
    mrt_notes_say(&store->notes);
}

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
    mrt_redis_link_send(store, job->since);
    deliver_all(store);
    return true;
}

static void redis_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    struct epoll_event ready[4];
    int count = epoll_wait(store->epoll, ready, 4, 0);
    for (int i = 0; i < count; i++)
        if (ready[i].data.ptr == &store->wire)
            mrt_redis_link_receive(store, now);
        else
            mrt_redis_push_receive(store, now);
    mrt_redis_link_tick(store, now);
    mrt_redis_push_tick(store, now);
    mrt_redis_link_send(store, now);
    deliver_all(store);
}

static int redis_fd(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    return store->epoll;
}

static mrt_time redis_next(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    return mrt_time_min(mrt_redis_link_next(store), mrt_redis_push_next(store));
}

/* Commands are sent at once, each is one script, and the server does them unread, but for the first
   time that it is sent one: NOSCRIPT. */
static bool redis_answers_may_wait(const struct mrt_store *port)
{
    const struct mrt_redis_store *store = (const struct mrt_redis_store *)port;
    bool under_way = store->wire.state != MRT_REDIS_CLOSED || !TAILQ_EMPTY(&store->waiting);
    return !under_way || (store->wire.state == MRT_REDIS_OPEN && store->wire.used == 0 &&
                          TAILQ_EMPTY(&store->waiting));
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

static void free_jobs(struct mrt_redis_jobs *jobs)
{
    struct mrt_redis_job *job;
    while ((job = TAILQ_FIRST(jobs))) {
        TAILQ_REMOVE(jobs, job, link);
        mrt_redis_job_free(job);
    }
}

/* Also in a forked child: descriptors are closed, and the parent's stay open. A session
   still open dies by its lease. */
static void redis_close(struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    struct mrt_redis_session *session;
    struct mrt_redis_claim *claim;
    mrt_redis_wire_close(&store->wire);
    mrt_redis_wire_close(&store->push);
    free_jobs(&store->waiting);
    free_jobs(&store->sent);
    free_jobs(&store->held);
    free_jobs(&store->outbox);
    while ((session = TAILQ_FIRST(&store->sessions))) {
        TAILQ_REMOVE(&store->sessions, session, link);
        free(session);
    }
    while ((claim = TAILQ_FIRST(&store->claims))) {
        TAILQ_REMOVE(&store->claims, claim, link);
        free(claim);
    }
    mrt_redis_observers_free(store);
    mrt_resolver_forget(&store->resolver);
    if (store->epoll >= 0)
        close(store->epoll);
    explicit_bzero(store->secret, sizeof store->secret);
    free(store);
}

static int choose_names(struct mrt_redis_store *store)
{
    struct mrt_id id, key;
    char text[MRT_ID_TEXT_SIZE];
    if (!mrt_id_random(&id) || !mrt_id_random(&key))
        return mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    mrt_id_format(id, text);
    mrt_id_format(key, store->key);
    store->jitter = id.low;
    snprintf(store->channel, sizeof store->channel, "%sc:%s", store->address.base, text);
    return MORTISE_OK;
}

static int find_servers(struct mrt_redis_store *store, bool later)
{
    const struct mrt_redis_address *address = &store->address;
    mrt_resolver_init(&store->resolver, &address->host, address->path[0] ? 0 : 1,
                      later ? 0 : mrt_time_now());
    bool names = store->resolver.again != MRT_TIME_NEVER;
    return later && names ? MORTISE_OK : mrt_redis_resolve(address, &store->servers);
}

static int redis_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                      struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_redis_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->waiting);
    TAILQ_INIT(&store->sent);
    TAILQ_INIT(&store->held);
    TAILQ_INIT(&store->outbox);
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->claims);
    TAILQ_INIT(&store->observers);
    TAILQ_INIT(&store->watches);
    store->sink = sink;
    store->wire.fd = store->push.fd = -1;
    store->wire.traffic = &store->traffic;
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
        error = choose_names(store);
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
    .abandon = redis_close,
};
