/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The etcd store: the port on transactions of etcd's JSON gateway.
 *
 *   etcd://[user@]host[:2379][,host...]?lease=10s&connect=5s&namespace=mortise
 *       &credentials=/path&tls=verify&tls_ca=/path
 *
 * A session is a lease. A ticket is a key below its lock's name, with the session's lease; its
 * place and its fence are the key's create_revision, which rises for ever and is the same order in
 * which etcdctl lock and Go's concurrency.Mutex take their turns. A ticket that waits is woken by a
 * watch.
 *
 * No function here waits: every entry (submit, process) does its part, and delivers the events in
 * the outbox.
 */
#include "store/etcd/ask.h"
#include "store/etcd/command.h"
#include "store/etcd/queue.h"
#include "store/etcd/rights.h"
#include "store/etcd/spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mrt_etcd_store *of(struct mrt_store *port)
{
    return (struct mrt_etcd_store *)port;
}

/* Begins what can begin, sends it, and delivers what has come. A call that ends meanwhile lets its
   queue go on. */
static void turn(struct mrt_etcd_store *store, mrt_time now)
{
    do
        mrt_etcd_queues_tick(store, now);
    while (mrt_rest_wire_kick(&store->wire.rest));
    mrt_outbox_deliver(&store->outbox);
    mrt_notes_say(&store->notes);
}

static bool etcd_submit(struct mrt_store *port, const struct mrt_command *command,
                        mrt_time patience)
{
    struct mrt_etcd_store *store = of(port);
    (void)patience; /* nothing here waits */
    struct mrt_etcd_job *job = mrt_job_new(sizeof *job, command);
    if (!job)
        return false;
    job->store = store;
    store->inside = true;
    if (command->type == MRT_START || command->type == MRT_STOP || command->type == MRT_RENEW) {
        TAILQ_INSERT_TAIL(&store->jobs, &job->job, link);
        mrt_etcd_session_submit(store, job);
    } else {
        mrt_etcd_queue_submit(store, job);
    }
    turn(store, mrt_time_now());
    store->inside = false;
    return true;
}

static void etcd_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_etcd_store *store = of(port);
    store->inside = true;
    mrt_rest_wire_process(&store->wire.rest, now);
    turn(store, now);
    store->inside = false;
}

static int etcd_fd(struct mrt_store *port)
{
    return of(port)->wire.rest.epoll;
}

static mrt_time etcd_next(struct mrt_store *port)
{
    const struct mrt_etcd_store *store = of(port);
    return mrt_time_min(mrt_rest_wire_next(&store->wire.rest), mrt_etcd_queues_next(store));
}

/* Whether a command needs no second request, as a rule. */
static bool goes_through(const struct mrt_command *command)
{
    return command->type == MRT_REMOVE || command->type == MRT_REFRESH ||
           command->type == MRT_OBSERVE || (command->type == MRT_APPEND && !command->adopt);
}

static bool etcd_answers_may_wait(const struct mrt_store *port)
{
    const struct mrt_etcd_store *store = (const struct mrt_etcd_store *)port;
    const struct mrt_etcd_queue *queue;
    if (!TAILQ_EMPTY(&store->jobs) || !mrt_rest_wire_is_sent(&store->wire.rest))
        return false;
    TAILQ_FOREACH (queue, &store->active, link) {
        const struct mrt_job *job = TAILQ_FIRST(&queue->jobs);
        if (queue->broken || (job && (TAILQ_NEXT(job, link) || !goes_through(&job->command))))
            return false;
    }
    return true;
}

static bool etcd_asks_apart(const struct mrt_store *port)
{
    (void)port;
    return true;
}

static const char *etcd_address(const struct mrt_store *port)
{
    return ((const struct mrt_etcd_store *)port)->address.servers.shown;
}

static mrt_time etcd_lease(const struct mrt_store *port)
{
    return ((const struct mrt_etcd_store *)port)->address.lease;
}

static void etcd_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    mrt_traffic_sum(sum, &((const struct mrt_etcd_store *)port)->wire.rest.traffic);
}

/* ------------------------------------------------------------- open, close */

static void free_store(struct mrt_etcd_store *store)
{
    struct mrt_etcd_session *session;
    struct mrt_job *job;
    mrt_etcd_queues_free(store);
    mrt_etcd_spares_free(store);
    while ((session = TAILQ_FIRST(&store->sessions))) {
        TAILQ_REMOVE(&store->sessions, session, link);
        free(session);
    }
    TAILQ_FOREACH (job, &store->jobs, link)
        free(((struct mrt_etcd_job *)job)->session);
    mrt_etcd_wire_close(&store->wire);
    mrt_jobs_free(&store->jobs);
    mrt_outbox_free(&store->outbox);
    explicit_bzero(store->secret, sizeof store->secret);
    free(store);
}

/* A session still open dies by its lease. */
static void etcd_close(struct mrt_store *port)
{
    free_store(of(port));
}

/* libcurl has descriptors that it alone can close. */
static void etcd_abandon(struct mrt_store *port)
{
    struct mrt_etcd_store *store = of(port);
    mrt_rest_wire_abandon(&store->wire.rest);
    if (!store->inside) {
        free_store(store);
        return;
    }
    close(store->wire.rest.epoll);
    explicit_bzero(store->wire.token, sizeof store->wire.token);
    explicit_bzero(store->secret, sizeof store->secret);
    free(store);
}

static int etcd_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                     struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_etcd_store *store = calloc(1, sizeof *store);
    struct mrt_id chance = {0, 0};
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->jobs);
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->active);
    TAILQ_INIT(&store->spares);
    mrt_rest_wire_init(&store->wire.rest);
    store->begin = mrt_etcd_command_begin;
    mrt_outbox_init(&store->outbox, sink);
    mrt_notes_init(&store->notes, "etcd", options);
    store->timeout = options->timeout > 0 ? options->timeout : 5 * MRT_SECOND;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    int error = mrt_etcd_uri_parse(uri, &store->address);
    if (error == MORTISE_OK)
        error = mrt_etcd_secret_read(uri, &store->address, store->secret);
    if (error == MORTISE_OK && !mrt_id_random(&chance))
        error = mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    store->chance = chance.low;
    if (error == MORTISE_OK)
        error = mrt_etcd_wire_open(&store->wire, &store->address, store->secret);
    if (error != MORTISE_OK) {
        free_store(store);
        return error;
    }
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

const struct mrt_store_ops mrt_etcd_store = {
    .scheme = "etcd",
    .any_thread = true,
    .values = true,
    .cells = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .exclusive_fair = 1,
                     .fence = 1,
                     .notify = 1,
                     .across_hosts = 1,
                     .survives_failover = 1,
                     .durable_fence = 1,
                     .lease_ms = 10000,
                     .detach = 1,
                     .linger = 1},
    .open = etcd_open,
    .print_rights = mrt_etcd_print_rights,
    .submit = etcd_submit,
    .fd = etcd_fd,
    .next = etcd_next,
    .process = etcd_process,
    .answers_may_wait = etcd_answers_may_wait,
    .asks_apart = etcd_asks_apart,
    .list = mrt_etcd_list,
    .server = mrt_etcd_server,
    .traffic = etcd_traffic,
    .revoke = mrt_etcd_revoke,
    .break_ticket = mrt_etcd_break,
    .lease = etcd_lease,
    .address = etcd_address,
    .close = etcd_close,
    .abandon = etcd_abandon,
};
