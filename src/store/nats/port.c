/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NATS JetStream store: the port on messages of a stream that keeps one of each subject.
 *
 * A ticket is a message; its place and its fence are its sequence in the stream, which rises for
 * ever. A session is a message that ends by its age unless it is published anew. The tickets ahead
 * are read at the stream's leader (walk.h); a client that leaves wakes those behind by a plain
 * message (queue.h). No consumer is made on the server.
 *
 * No function here waits: every entry (submit, process) does its part, and delivers the events in
 * the outbox.
 */
#include "store/nats/answer.h"
#include "store/nats/ask.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mrt_nats_store *of(struct mrt_store *port)
{
    return (struct mrt_nats_store *)port;
}

/* Begins what can begin, sends it, and delivers what has come. */
static void turn(struct mrt_nats_store *store, mrt_time now)
{
    mrt_nats_sessions_tick(store);
    mrt_nats_queues_hear(store);
    mrt_nats_pauses_tick(store, now);
    mrt_nats_queues_tick(store, now);
    mrt_nats_wire_flush(&store->wire);
    mrt_outbox_deliver(&store->outbox);
    mrt_notes_say(&store->notes);
}

static bool nats_submit(struct mrt_store *port, const struct mrt_command *command,
                        mrt_time patience)
{
    struct mrt_nats_store *store = of(port);
    (void)patience; /* nothing here waits */
    struct mrt_nats_job *job = mrt_job_new(sizeof *job, command);
    if (!job)
        return false;
    job->store = store;
    store->inside = true;
    if (command->type == MRT_START || command->type == MRT_STOP || command->type == MRT_RENEW) {
        TAILQ_INSERT_TAIL(&store->jobs, &job->job, link);
        mrt_nats_session_submit(store, job);
    } else {
        mrt_nats_queue_submit(store, job);
    }
    turn(store, mrt_time_now());
    store->inside = false;
    return true;
}

static void nats_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_nats_store *store = of(port);
    store->inside = true;
    mrt_nats_wire_process(&store->wire, now);
    turn(store, now);
    store->inside = false;
}

static int nats_fd(struct mrt_store *port)
{
    return of(port)->wire.epoll;
}

static mrt_time nats_next(struct mrt_store *port)
{
    const struct mrt_nats_store *store = of(port);
    return mrt_time_min(mrt_nats_wire_next(&store->wire), mrt_nats_queues_next(store));
}

static bool nats_asks_apart(const struct mrt_store *port)
{
    (void)port;
    return true;
}

static const char *nats_address(const struct mrt_store *port)
{
    return ((const struct mrt_nats_store *)port)->address.servers.shown;
}

static mrt_time nats_lease(const struct mrt_store *port)
{
    return ((const struct mrt_nats_store *)port)->address.lease;
}

static void nats_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    mrt_traffic_sum(sum, &((const struct mrt_nats_store *)port)->wire.traffic);
}

/* ------------------------------------------------------------- open, close */

static void free_store(struct mrt_nats_store *store)
{
    struct mrt_nats_session *session;
    mrt_nats_queues_free(store);
    mrt_nats_jobs_free(&store->jobs);
    while ((session = TAILQ_FIRST(&store->sessions))) {
        TAILQ_REMOVE(&store->sessions, session, link);
        free(session);
    }
    mrt_nats_wire_close(&store->wire);
    mrt_outbox_free(&store->outbox);
    explicit_bzero(store->secret, sizeof store->secret);
    free(store);
}

/* A session still open dies by its lease. */
static void nats_close(struct mrt_store *port)
{
    free_store(of(port));
}

/* libnats has threads that are not here, and locks that they may have held: its memory stays. */
static void nats_abandon(struct mrt_store *port)
{
    struct mrt_nats_store *store = of(port);
    mrt_nats_wire_abandon(&store->wire);
    explicit_bzero(store->secret, sizeof store->secret);
    free(store);
}

static int nats_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                     struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_nats_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->jobs);
    TAILQ_INIT(&store->pauses);
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->active);
    TAILQ_INIT(&store->wire.calls);
    TAILQ_INIT(&store->wire.held);
    store->wire.epoll = store->wire.event = -1;
    store->begin = mrt_nats_command_begin;
    mrt_outbox_init(&store->outbox, sink);
    mrt_notes_init(&store->notes, "NATS", options);
    store->timeout = options->timeout > 0 ? options->timeout : 5 * MRT_SECOND;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    int error = mrt_nats_uri_parse(uri, &store->address);
    if (error == MORTISE_OK)
        error = mrt_nats_secret_read(uri, &store->address, store->secret);
    if (error == MORTISE_OK)
        error = mrt_nats_wire_open(&store->wire, &store->address, store->secret);
    if (error != MORTISE_OK) {
        free_store(store);
        return error;
    }
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

const struct mrt_store_ops mrt_nats_store = {
    .scheme = "nats",
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
                     .lease_ms = 10000,
                     .detach = 1,
                     .linger = 1},
    .open = nats_open,
    .init = mrt_nats_init,
    .print_rights = mrt_nats_print_rights,
    .submit = nats_submit,
    .fd = nats_fd,
    .next = nats_next,
    .process = nats_process,
    .asks_apart = nats_asks_apart,
    .list = mrt_nats_list,
    .server = mrt_nats_server,
    .traffic = nats_traffic,
    .revoke = mrt_nats_revoke,
    .break_ticket = mrt_nats_break,
    .lease = nats_lease,
    .address = nats_address,
    .close = nats_close,
    .abandon = nats_abandon,
};
