/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store: the port on Lease objects of an API server.
 *
 *   k8s://host[:443][,host...]/NAMESPACE?lease=15s&connect=5s&namespace=mortise
 *       &credentials=/token&tls_ca=/path&tls_cert=/path&tls_key=/path
 *   k8s:    in a pod
 *
 * internal.h has the rule. No function here waits: every entry (submit, process) does its part, and
 * delivers the events in the outbox.
 */
#include "store/kubernetes/command.h"
#include "store/kubernetes/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mrt_k8s_store *of(struct mrt_store *port)
{
    return (struct mrt_k8s_store *)port;
}

/* Begins what can begin, sends it, and delivers what has come. A call that ends meanwhile lets its
   lock go on. */
static void turn(struct mrt_k8s_store *store, mrt_time now)
{
    do {
        mrt_k8s_queues_tick(store, now);
        mrt_k8s_sessions_tick(store);
    } while (mrt_rest_wire_kick(&store->wire.rest));
    mrt_outbox_deliver(&store->outbox);
    mrt_notes_say(&store->notes);
}

static bool k8s_submit(struct mrt_store *port, const struct mrt_command *command, mrt_time patience)
{
    struct mrt_k8s_store *store = of(port);
    (void)patience; /* nothing here waits */
    struct mrt_k8s_job *job = mrt_job_new(sizeof *job, command);
    if (!job)
        return false;
    job->store = store;
    store->inside = true;
    if (command->type == MRT_START || command->type == MRT_STOP || command->type == MRT_RENEW)
        mrt_k8s_session_submit(store, job);
    else
        mrt_k8s_queue_submit(store, job);
    turn(store, mrt_time_now());
    store->inside = false;
    return true;
}

static void k8s_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_k8s_store *store = of(port);
    store->inside = true;
    mrt_rest_wire_process(&store->wire.rest, now);
    turn(store, now);
    store->inside = false;
}

static int k8s_fd(struct mrt_store *port)
{
    return of(port)->wire.rest.epoll;
}

static mrt_time k8s_next(struct mrt_store *port)
{
    const struct mrt_k8s_store *store = of(port);
    return mrt_time_min(mrt_rest_wire_next(&store->wire.rest), mrt_k8s_queues_next(store));
}

static bool k8s_asks_apart(const struct mrt_store *port)
{
    (void)port;
    return true;
}

static const char *k8s_address(const struct mrt_store *port)
{
    return ((const struct mrt_k8s_store *)port)->address.shown;
}

static mrt_time k8s_lease(const struct mrt_store *port)
{
    return ((const struct mrt_k8s_store *)port)->address.lease;
}

static void k8s_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    mrt_traffic_sum(sum, &((const struct mrt_k8s_store *)port)->wire.rest.traffic);
}

/* ------------------------------------------------------------- open, close */

static void free_store(struct mrt_k8s_store *store)
{
    struct mrt_k8s_session *session;
    mrt_k8s_queues_free(store);
    while ((session = TAILQ_FIRST(&store->sessions))) {
        TAILQ_REMOVE(&store->sessions, session, link);
        free(session);
    }
    mrt_k8s_wire_close(&store->wire);
    mrt_jobs_free(&store->jobs);
    mrt_outbox_free(&store->outbox);
    free(store);
}

/* A Lease that a session still holds ends when it has not been renewed for its duration. */
static void k8s_close(struct mrt_store *port)
{
    free_store(of(port));
}

/* libcurl has descriptors that it alone can close. */
static void k8s_abandon(struct mrt_store *port)
{
    struct mrt_k8s_store *store = of(port);
    mrt_rest_wire_abandon(&store->wire.rest);
    if (!store->inside) {
        free_store(store);
        return;
    }
    close(store->wire.rest.epoll);
    explicit_bzero(store->wire.token, sizeof store->wire.token);
    free(store);
}

static int k8s_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                    struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_k8s_store *store = calloc(1, sizeof *store);
    struct mrt_id chance = {0, 0};
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->jobs);
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->queues);
    mrt_rest_wire_init(&store->wire.rest);
    store->begin = mrt_k8s_command_begin;
    mrt_outbox_init(&store->outbox, sink);
    mrt_notes_init(&store->notes, "Kubernetes", options);
    store->timeout = options->timeout > 0 ? options->timeout : 5 * MRT_SECOND;
    snprintf(store->owner, sizeof store->owner, "%s", options->label ? options->label : "");
    int error = mrt_k8s_uri_parse(uri, &store->address);
    if (error == MORTISE_OK)
        error = mrt_k8s_token_check(&store->address);
    if (error == MORTISE_OK && !mrt_id_random(&chance))
        error = mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    store->chance = chance.low;
    if (error == MORTISE_OK)
        error = mrt_k8s_wire_open(&store->wire, &store->address);
    if (error != MORTISE_OK) {
        free_store(store);
        return error;
    }
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

const struct mrt_store_ops mrt_k8s_store = {
    .scheme = "k8s",
    .any_thread = true,
    .values = true,
    .claims_end = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fence = 1,
                     .notify = 1,
                     .across_hosts = 1,
                     .survives_failover = 1,
                     .lease_ms = 15000},
    .open = k8s_open,
    .init = mrt_k8s_init,
    .print_rights = mrt_k8s_print_rights,
    .submit = k8s_submit,
    .fd = k8s_fd,
    .next = k8s_next,
    .process = k8s_process,
    .asks_apart = k8s_asks_apart,
    .list = mrt_k8s_list,
    .server = mrt_k8s_server,
    .traffic = k8s_traffic,
    .revoke = mrt_k8s_revoke,
    .break_ticket = mrt_k8s_break,
    .lease = k8s_lease,
    .address = k8s_address,
    .close = k8s_close,
    .abandon = k8s_abandon,
};
