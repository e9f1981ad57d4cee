/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example of a store, as small as the port allows: plain: keeps the tickets of one process in
 * one list, in the order in which they came. It tells nobody of a departure: a waiter reads its
 * view again after RECHECK. It refuses calls that it does not support, and its capabilities say the
 * same.
 *
 * Invariant: the list holds the tickets of live sessions alone. A ticket's fence is larger than
 * that of every ticket before it.
 * Threads: any. The mutex guards the list, and is free while an event is delivered.
 */
#include "extending/plain_store.h"

#include "base/parameter.h"
#include "base/time.h"
#include "core/rule.h"
#include "store/kit/job.h"
#include "store/kit/refusal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECHECK (10 * MRT_MILLISECOND)
#define FENCE_SPAN (UINT64_C(1) << 32)

struct session {
    TAILQ_ENTRY(session) link;
    struct mrt_id id;
};
TAILQ_HEAD(sessions, session);

struct ticket {
    TAILQ_ENTRY(ticket) link;
    const struct plain_store *store;
    struct mrt_id session, id;
    uint64_t fence, weight, capacity;
    int64_t since_wall_ms;
    char *kind, *queue;
};
TAILQ_HEAD(tickets, ticket);

struct plain_store {
    struct mrt_sink sink;
    struct sessions sessions; /* those that live */
    char *label;              /* of all its tickets */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tickets tickets = TAILQ_HEAD_INITIALIZER(tickets);
static uint64_t newest_fence;

/* ------------------------------------------------------------- the list, under the mutex */

static struct ticket *find_ticket(const struct mrt_command *command)
{
    struct ticket *ticket;
    TAILQ_FOREACH (ticket, &tickets, link)
        if (mrt_id_equal(ticket->id, command->ticket) &&
            mrt_id_equal(ticket->session, command->session) &&
            strcmp(ticket->queue, command->queue) == 0)
            return ticket;
    return NULL;
}

/* Any ticket of the queue; NULL: the queue is empty. */
static const struct ticket *find_queue(const char *queue)
{
    const struct ticket *ticket;
    TAILQ_FOREACH (ticket, &tickets, link)
        if (strcmp(ticket->queue, queue) == 0)
            return ticket;
    return NULL;
}

static void free_ticket(struct ticket *ticket)
{
    free(ticket->kind);
    free(ticket->queue);
    free(ticket);
}

static void remove_ticket(struct ticket *ticket)
{
    TAILQ_REMOVE(&tickets, ticket, link);
    free_ticket(ticket);
}

static void remove_session(struct plain_store *store, struct session *session)
{
    struct ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (ticket, &tickets, link, next)
        if (mrt_id_equal(ticket->session, session->id))
            remove_ticket(ticket);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

static struct session *find_session(struct plain_store *store, struct mrt_id id)
{
    struct session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

/* NULL: no memory. */
static struct session *add_session(struct plain_store *store, struct mrt_id id)
{
    struct session *session = calloc(1, sizeof *session);
    if (session) {
        session->id = id;
        TAILQ_INSERT_TAIL(&store->sessions, session, link);
    }
    return session;
}

/* For people, who read it in lists. */
static int64_t read_wall_ms(void)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
}

/* NULL: no memory. */
static struct ticket *add_ticket(const struct plain_store *store, const struct mrt_command *command)
{
    struct ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->store = store;
    ticket->session = command->session;
    ticket->id = command->ticket;
    ticket->weight = command->weight;
    ticket->capacity = command->capacity;
    ticket->since_wall_ms = read_wall_ms();
    ticket->kind = strdup(command->kind);
    ticket->queue = strdup(command->queue);
    if (!ticket->kind || !ticket->queue) {
        free_ticket(ticket);
        return NULL;
    }
    newest_fence += FENCE_SPAN;
    ticket->fence = newest_fence;
    TAILQ_INSERT_TAIL(&tickets, ticket, link);
    return ticket;
}

/* The weight ahead of a ticket, and the end of the queue for NULL. */
static uint64_t weigh_ahead(const char *queue, const struct ticket *end, uint64_t *waiting)
{
    uint64_t sum = 0;
    const struct ticket *ticket;
    *waiting = 0;
    TAILQ_FOREACH (ticket, &tickets, link) {
        if (ticket == end)
            break;
        if (strcmp(ticket->queue, queue) != 0)
            continue;
        *waiting += !mrt_rule_grants(sum, ticket->weight, ticket->capacity);
        sum += ticket->weight;
    }
    return sum;
}

static bool is_followed(const struct ticket *ticket)
{
    const struct ticket *other = ticket;
    while ((other = TAILQ_NEXT(other, link)))
        if (strcmp(other->queue, ticket->queue) == 0)
            return true;
    return false;
}

/* ------------------------------------------------------------- commands, under the mutex */

static void show(struct mrt_job *job, const struct ticket *ticket)
{
    uint64_t waiting;
    job->event.type = MRT_VIEW;
    job->event.fence = ticket->fence;
    job->event.fence_span = FENCE_SPAN;
    job->event.weight_ahead = weigh_ahead(ticket->queue, ticket, &waiting);
    job->event.others_behind = is_followed(ticket);
    job->event.recheck = RECHECK;
}

static void fail(struct mrt_job *job, int error)
{
    job->event.type = MRT_FAILED;
    job->event.error = error;
}

static void append(const struct plain_store *store, struct mrt_job *job)
{
    const struct mrt_command *command = &job->command;
    struct ticket *ticket = find_ticket(command);
    const struct ticket *other = find_queue(command->queue);
    uint64_t waiting, ahead = weigh_ahead(command->queue, NULL, &waiting);
    bool waits = !mrt_rule_grants(ahead, command->weight, command->capacity);
    if (ticket) { /* clause (h) */
        show(job, ticket);
    } else if (command->adopt || command->value || command->delay) {
        fail(job, MORTISE_ENOTSUPPORTED);
    } else if (other && (strcmp(other->kind, command->kind) != 0 ||
                         other->capacity != command->capacity)) { /* clause (j) */
        fail(job, MORTISE_EMISMATCH);
        mrt_job_set_detail(job, MRT_REFUSAL_MISMATCH, command->queue, other->kind, other->capacity,
                           command->kind, command->capacity);
    } else if (command->try_only && waits) { /* clause (i) */
        job->event.type = MRT_BLOCKED;
    } else if (command->queue_max && waits && waiting >= command->queue_max) {
        fail(job, MORTISE_EFULL);
        mrt_job_set_detail(job, MRT_REFUSAL_FULL, command->queue_max, command->queue);
    } else if ((ticket = add_ticket(store, command))) {
        show(job, ticket);
    } else {
        fail(job, MORTISE_ENOMEM);
    }
}

static void lighten(struct mrt_job *job, struct ticket *ticket)
{
    if (job->command.weight < ticket->weight)
        ticket->weight = job->command.weight;
    show(job, ticket);
}

static void change_ticket(struct mrt_job *job)
{
    struct ticket *ticket = find_ticket(&job->command);
    if (job->command.type == MRT_REMOVE) {
        if (ticket)
            remove_ticket(ticket);
        job->event.type = MRT_REMOVED; /* clause (f) */
    } else if (!ticket) {
        job->event.type = MRT_GONE;
    } else if (job->command.type == MRT_LIGHTEN) {
        lighten(job, ticket);
    } else {
        show(job, ticket);
    }
}

/* A session lives until its store is closed, so a RENEW has nothing to do. */
static void apply(struct plain_store *store, struct mrt_job *job)
{
    const struct mrt_command *command = &job->command;
    struct session *session = find_session(store, command->session);
    if (command->type == MRT_START) {
        if (session || add_session(store, command->session))
            job->event.type = MRT_STARTED;
        else
            fail(job, MORTISE_ENOMEM);
    } else if (!session) {
        job->event = mrt_answer_ended(command); /* clause (g) */
    } else if (command->type == MRT_STOP) {
        remove_session(store, session);
        job->event.type = MRT_STOPPED;
    } else if (command->type == MRT_RENEW) {
        job->event.type = MRT_RENEWED;
    } else if (command->type == MRT_APPEND) {
        append(store, job);
    } else if (command->type <= MRT_REMOVE && command->type != MRT_SET_VALUE) {
        change_ticket(job);
    } else {
        fail(job, MORTISE_ENOTSUPPORTED);
    }
}

/* ------------------------------------------------------------- the port */

static struct plain_store *of(struct mrt_store *store)
{
    return (struct plain_store *)store;
}

static int plain_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                      struct mrt_sink sink, struct mrt_store **opened)
{
    static const struct mrt_parameter none[] = {{.key = NULL}};
    int error = mrt_parameters_read(uri, none, NULL);
    if (error)
        return error;
    struct plain_store *store = calloc(1, sizeof *store);
    if (!store || !(store->label = strdup(options->label ? options->label : ""))) {
        free(store);
        return MORTISE_ENOMEM;
    }
    store->sink = sink;
    TAILQ_INIT(&store->sessions);
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

static bool plain_submit(struct mrt_store *opened, const struct mrt_command *command,
                         mrt_time patience)
{
    struct plain_store *store = of(opened);
    struct mrt_job job = {.command = *command, .event = mrt_answer_to(command, MRT_UNKNOWN)};
    (void)patience; /* nothing here takes time */
    pthread_mutex_lock(&mutex);
    apply(store, &job);
    pthread_mutex_unlock(&mutex);
    mrt_job_deliver(&job, &store->sink);
    return true;
}

static int plain_fd(struct mrt_store *store)
{
    (void)store;
    return -1;
}

static mrt_time plain_next(struct mrt_store *store)
{
    (void)store;
    return MRT_TIME_NEVER;
}

static void plain_process(struct mrt_store *store, mrt_time now)
{
    (void)store;
    (void)now;
}

static bool is_listed(const struct ticket *ticket, const char *name, const char *prefix)
{
    return name ? strcmp(ticket->queue, name) == 0
                : strncmp(ticket->queue, prefix, strlen(prefix)) == 0;
}

static int list_ticket(const struct ticket *ticket, mrt_listed_callback callback, void *argument)
{
    char claim[MRT_CLAIM_SIZE];
    uint64_t waiting, ahead = weigh_ahead(ticket->queue, ticket, &waiting);
    bool waits = !mrt_rule_grants(ahead, ticket->weight, ticket->capacity);
    mrt_claim_format(ticket->id, claim);
    const struct mrt_listed row = {.entry = {.size = sizeof(mortise_entry),
                                             .name = ticket->queue,
                                             .kind = ticket->kind,
                                             .label = ticket->store->label,
                                             .fence = ticket->fence,
                                             .place = waits ? (uint32_t)waiting + 1 : 0,
                                             .weight = ticket->weight,
                                             .capacity = ticket->capacity,
                                             .since_wall_ms = ticket->since_wall_ms},
                                   .claim = claim};
    return callback(argument, &row);
}

static int plain_list(struct mrt_store *store, const char *name, const char *prefix,
                      mrt_listed_callback callback, void *argument)
{
    const struct ticket *ticket;
    (void)store;
    pthread_mutex_lock(&mutex);
    TAILQ_FOREACH (ticket, &tickets, link)
        if (is_listed(ticket, name, prefix) && list_ticket(ticket, callback, argument) != 0)
            break;
    pthread_mutex_unlock(&mutex);
    return MORTISE_OK;
}

static const char *plain_address(const struct mrt_store *store)
{
    (void)store;
    return "plain:";
}

static void plain_close(struct mrt_store *opened)
{
    struct plain_store *store = of(opened);
    struct session *session, *next;
    pthread_mutex_lock(&mutex);
    TAILQ_FOREACH_SAFE (session, &store->sessions, link, next)
        remove_session(store, session);
    pthread_mutex_unlock(&mutex);
    free(store->label);
    free(store);
}

/* A forked child: another thread may have been changing the lists, so they are left alone. */
static void plain_abandon(struct mrt_store *opened)
{
    free(of(opened)); /* a store with descriptors closes them here */
}

const struct mrt_store_ops example_plain_store = {
    .scheme = "plain",
    .any_thread = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .exclusive_fair = 1,
                     .fence = 1},
    .open = plain_open,
    .submit = plain_submit,
    .fd = plain_fd,
    .next = plain_next,
    .process = plain_process,
    .list = plain_list,
    .address = plain_address,
    .close = plain_close,
    .abandon = plain_abandon,
};
