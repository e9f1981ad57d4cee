/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ZooKeeper store: the port on Apache's single-threaded client library, linked
 * statically with its names hidden, for its two flavours export the same ones.
 *
 *   zk://host:port[,host:port...][/chroot]?session=10s&connect=5s&namespace=mortise
 *       &credentials=/path&acl=open|creator|digest:USER:HASH&layout=curator|kazoo|recipe
 *
 * A lock is a directory with an ephemeral sequential node for each ticket, named and
 * ordered as Curator's InterProcessMutex has it, or stock kazoo, or ZooKeeper's own recipe
 * (`layout=`): these programs take turns with mortise on one path. A directory has one layout:
 * a node of another layout in a ticket's first list refuses the ticket, and later ends its wait.
 *
 * One session at a time, because the engine has only one. Every entry (submit, process)
 * takes the library's mutex, does its part, lets the library set what it waits for, unlocks
 * the mutex and delivers the events in the outbox. If several commands come together, only the
 * last one calls the library to send: so all requests go in one piece.
 *
 * A fence is the transaction that created the node, shifted to give each ticket 4096
 * numbers. It is not the sequence number, which starts again when the directory does.
 */
#include "base/assert.h"
#include "base/error.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/close.h"
#include "store/zookeeper/connection.h"
#include "store/zookeeper/find.h"
#include "store/zookeeper/lease.h"
#include "store/zookeeper/operator/operator.h"
#include "store/zookeeper/ticket/record.h"
#include "store/zookeeper/ticket/submit.h"
#include "store/zookeeper/values/cell.h"
#include "store/zookeeper/values/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CLOSE_PATIENCE \
    (250 * MRT_MILLISECOND) /* of the last call, with a server that has just answered */

pthread_mutex_t mrt_zk_library = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------- events */

static void deliver_lost(struct mrt_store *store, struct mrt_id session, int error)
{
    struct mrt_event event = {.type = MRT_SESSION_LOST, .session = session, .error = error};
    mrt_sink_deliver(&store->outbox.sink, event);
}

static void deliver_all(struct mrt_store *store)
{
    mrt_outbox_deliver(&store->outbox);
    mrt_notes_say(&store->notes);
}

/* ------------------------------------------------------------------- turns */

/* Answers STOP when the handle is closed; or in any case, UNKNOWN. */
static void finish_closing(struct mrt_store *store, bool give_up)
{
    struct mrt_zk_closing *closing = store->closing;
    if (!closing || !(give_up || mrt_zk_close_has_ended(closing)))
        return;
    bool ended = mrt_zk_close_has_ended(closing) && closing->code == ZOK;
    if (ended)
        store->unproven = (struct mrt_id){0, 0};
    if (store->stop)
        mrt_zk_answer(store, store->stop, ended ? MRT_STOPPED : MRT_UNKNOWN);
    epoll_ctl(store->epoll, EPOLL_CTL_DEL, closing->done, NULL);
    mrt_zk_close_let_go(closing);
    store->closing = NULL;
    store->stop = NULL;
}

/* Ends the session if that is due; without the mutex. */
static void settle(struct mrt_store *store)
{
    struct mrt_zk_session *session = store->session;
    if (!session || (!session->over && !session->close_now))
        return;
    bool was_started = session->told && !session->stopping;
    struct mrt_id id = session->id;
    int error = session->over_error;
    bool over = session->over;
    struct mrt_job *stop = session->stop;
    mrt_zk_session_clear(session);
    struct mrt_zk_closing *closing = mrt_zk_close_begin(session);
    mrt_zk_session_free(session);
    store->session = NULL;
    store->next = MRT_TIME_NEVER;
    if (over) {
        mrt_zk_close_let_go(closing);
        if (stop)
            mrt_zk_answer(store, stop, MRT_STOPPED);
        if (was_started)
            deliver_lost(store, id, error);
        return;
    }
    finish_closing(store, true); /* an earlier one */
    MRT_ASSERT(!store->closing && !store->stop);
    store->closing = closing;
    store->stop = stop;
    store->unproven = id;
    if (!mrt_zk_close_has_ended(closing))
        mrt_zk_close_watch(closing, store->epoll);
}

/* Gives up a session that could not be ended politely. */
static void abandon_session(struct mrt_store *store, mrt_time patience)
{
    struct mrt_zk_session *session = store->session;
    if (!session)
        return;
    if (session->stop)
        mrt_zk_answer(store, session->stop, MRT_UNKNOWN);
    store->unproven = session->id;
    mrt_zk_session_clear(session);
    bool speaks = mrt_time_now() < session->heard + 50 * MRT_MILLISECOND;
    struct mrt_zk_closing *closing = mrt_zk_close_begin(session);
    if (speaks)
        mrt_zk_close_wait(closing, patience);
    mrt_zk_close_let_go(closing);
    mrt_zk_session_free(session);
    store->session = NULL;
    store->next = MRT_TIME_NEVER;
}

/* START of what is there proves it once more, by the renewal of its lease. */
static void start(struct mrt_store *store, struct mrt_job *job, mrt_time now)
{
    if (store->session && !mrt_id_equal(store->session->id, job->command.session))
        abandon_session(store, 0);
    if (store->session) {
        if (store->session->start)
            mrt_zk_answer(store, job, MRT_UNKNOWN);
        else
            mrt_zk_session_renew(store->session, job);
        return;
    }
    if (!mrt_zk_keep_start(store, job, now) && !mrt_zk_session_start(store, job, now))
        mrt_zk_fail_with(store, job, MORTISE_ENOMEM, "no handle of the client library");
}

static void stop(struct mrt_store *store, struct mrt_job *job, mrt_time now)
{
    mrt_zk_drop_start(store);
    if (store->session && mrt_id_equal(store->session->id, job->command.session))
        mrt_zk_session_stop(store->session, job, now);
    else if (mrt_id_equal(store->unproven, job->command.session))
        mrt_zk_answer(store, job, MRT_UNKNOWN);
    else
        mrt_zk_answer(store, job, MRT_STOPPED);
}

/* Finds the path of the command's queue. False: the command has been refused. */
static bool find_path(struct mrt_store *store, struct mrt_job *job, char path[MRT_ZK_PATH_MAX])
{
    const struct mrt_command *command = &job->command;
    int error =
        mrt_zk_queue_path(store->address.chroot, store->address.namespace, command->queue, path);
    if (error != MORTISE_OK) {
        char detail[MRT_ERROR_DETAIL_MAX];
        mrt_error_copy_detail(detail);
        mrt_job_set_detail(job, "%.250s", detail);
        mrt_zk_fail(store, job, error);
        return false;
    }
    if (command->type == MRT_APPEND && !command->adopt &&
        mrt_zk_place_for(store->address.layout, command->kind, command->capacity, command->weight)
                .family == MRT_ZK_FOREIGN) {
        mrt_zk_fail_with(store, job, MORTISE_ENOTSUPPORTED,
                         store->address.layout == MRT_ZK_RECIPE
                             ? "layout=recipe has no names for locks of this kind"
                             : "no lock of this kind is kept there");
        return false;
    }
    if (command->claim && (command->type == MRT_DETACH || command->adopt)) {
        mrt_zk_fail_with(store, job, MORTISE_ENOTSUPPORTED,
                         "an exclusive lock cannot outlive its session");
        return false;
    }
    return true;
}

static void dispatch(struct mrt_store *store, struct mrt_job *job, mrt_time now)
{
    char path[MRT_ZK_PATH_MAX];
    struct mrt_zk_session *session = store->session;
    enum mrt_command_type type = job->command.type; /* an answer ends the job */
    if (type == MRT_START)
        start(store, job, now);
    else if (type == MRT_STOP)
        stop(store, job, now);
    else if (!session || !mrt_id_equal(session->id, job->command.session) || session->over ||
             session->stopping)
        mrt_outbox_refuse(&store->outbox, job);
    else if (type == MRT_RENEW)
        mrt_zk_session_renew(session, job);
    else if (!find_path(store, job, path))
        return;
    else if (type == MRT_OBSERVE)
        mrt_zk_observe_submit(session, job, path);
    else if (type == MRT_CELL_GET || type == MRT_CELL_SET)
        mrt_zk_cell_submit(session, job, path);
    else
        mrt_zk_ticket_submit(session, job, path);
}

static void turn(struct mrt_store *store, mrt_time now)
{
    struct mrt_job *job = mrt_zk_placed_start(store, now);
    if (job)
        start(store, job, now);
    if (store->unplaced)
        return; /* it has said when it comes by again */
    if (store->session)
        mrt_zk_session_turn(store->session, now);
    else
        store->next = MRT_TIME_NEVER;
}

static bool zk_submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    (void)patience; /* nothing here waits */
    struct mrt_job *job = mrt_job_new(sizeof *job, command);
    if (!job)
        return false;
    mrt_time now = mrt_time_now();
    pthread_mutex_lock(&mrt_zk_library);
    mrt_zk_entered = store->session;
    dispatch(store, job, now);
    mrt_zk_entered = NULL;
    if (!command->more || !store->session || !store->session->gathering)
        turn(store, now);
    pthread_mutex_unlock(&mrt_zk_library);
    settle(store);
    finish_closing(store, false);
    deliver_all(store);
    return true;
}

static void zk_process(struct mrt_store *store, mrt_time now)
{
    pthread_mutex_lock(&mrt_zk_library);
    turn(store, now);
    pthread_mutex_unlock(&mrt_zk_library);
    settle(store);
    finish_closing(store, false);
    deliver_all(store);
}

static int zk_fd(struct mrt_store *store)
{
    return store->epoll;
}

static mrt_time zk_next(struct mrt_store *store)
{
    return store->next;
}

/* A removal is one request, but for a PASS that is refused, as the first in a namespace is; what
   else is under way may have to go on when it is answered. */
static bool zk_answers_may_wait(const struct mrt_store *store)
{
    const struct mrt_zk_session *session = store->session;
    const struct mrt_zk_request *request;
    if (!session)
        return true;
    if (!session->connected || session->stopping || session->mask & ZOOKEEPER_WRITE)
        return false;
    TAILQ_FOREACH (request, &session->requests, link)
        if (!request->step->answer_may_wait)
            return false;
    return true;
}

static bool zk_node(struct mrt_store *store, struct mrt_id id, char text[MORTISE_NODE_SIZE])
{
    const struct mrt_zk_ticket *ticket =
        store->session ? mrt_zk_ticket_find(store->session, id) : NULL;
    if (!ticket || !ticket->created)
        return false;
    snprintf(text, MORTISE_NODE_SIZE, "%s/%s", ticket->path, ticket->node);
    return true;
}

/* Each asker has a handle of its own, made under the library's mutex as all that changes is. */
static bool zk_asks_apart(const struct mrt_store *store)
{
    (void)store;
    return true;
}

static const char *zk_address(const struct mrt_store *store)
{
    return store->address.shown;
}

/* As asked for: the server may grant another, and each session says which. */
static mrt_time zk_lease(const struct mrt_store *store)
{
    return store->address.session;
}

static mrt_time zk_lag(const struct mrt_store *store)
{
    return mrt_zk_proof_lag(store->address.session, store->address.tick);
}

/* ------------------------------------------------------------- open, close */

static void free_store(struct mrt_store *store)
{
    mrt_outbox_free(&store->outbox);
    mrt_job_free(store->unplaced);
    mrt_resolver_forget(&store->resolver);
    if (store->epoll >= 0)
        close(store->epoll);
    mrt_zk_access_wipe(&store->access);
    free(store);
}

static int zk_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                   struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    mrt_outbox_init(&store->outbox, sink);
    store->next = MRT_TIME_NEVER;
    mrt_notes_init(&store->notes, "ZooKeeper", options);
    store->timeout = options->timeout > 0 ? options->timeout : 5 * MRT_SECOND;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    store->epoll = epoll_create1(EPOLL_CLOEXEC);
    int error = MORTISE_OK;
    if (store->epoll < 0)
        error = mrt_error(MORTISE_ENOMEM, "no descriptor left for ZooKeeper");
    if (error == MORTISE_OK)
        error = mrt_zk_uri_parse(uri, &store->address);
    if (error == MORTISE_OK)
        error = mrt_zk_access_read(uri, &store->access);
    if (error == MORTISE_OK)
        error = mrt_zk_find_servers(store, options->unresolved);
    if (error != MORTISE_OK) {
        free_store(store);
        return error;
    }
    *opened = store;
    return MORTISE_OK;
}

static void zk_close(struct mrt_store *store)
{
    abandon_session(store, CLOSE_PATIENCE);
    finish_closing(store, true);
    free_store(store);
}

static void zk_abandon(struct mrt_store *store)
{
    struct mrt_zk_session *session = store->session;
    if (session && session->socket >= 0)
        close(session->socket);
    if (store->closing)
        close(store->closing->done);
    close(store->epoll);
    mrt_zk_access_wipe(&store->access);
    free(store);
}

static void zk_traffic(const struct mrt_store *store, struct mrt_traffic *sum)
{
    mrt_traffic_sum(sum, &store->traffic);
}

#define CALLS(can_detach)                                                                      \
    .scheme = "zk", .any_thread = true, .values = true, .cells = true, .claims_end = true,     \
    .capabilities = {.size = sizeof(mortise_capabilities),                                     \
                     .fair = 1,                                                                \
                     .fence = 1,                                                               \
                     .notify = 1,                                                              \
                     .across_hosts = 1,                                                        \
                     .survives_failover = 1,                                                   \
                     .durable_fence = 1,                                                       \
                     .detach = (can_detach),                                                   \
                     .linger = 1,                                                              \
                     .lease_ms = 10000},                                                       \
    .open = zk_open, .submit = zk_submit, .fd = zk_fd, .next = zk_next, .process = zk_process, \
    .answers_may_wait = zk_answers_may_wait, .asks_apart = zk_asks_apart, .node = zk_node,     \
    .list = mrt_zk_list, .server = mrt_zk_server, .revoke = mrt_zk_revoke,                     \
    .break_ticket = mrt_zk_break, .traffic = zk_traffic, .lease = zk_lease, .lag = zk_lag,     \
    .address = zk_address, .close = zk_close, .abandon = zk_abandon

/* The names of the recipe's nodes cannot say that one is nobody's. */
static const struct mrt_store_ops recipe_store = {CALLS(0)};

static int choose(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    enum mrt_zk_layout layout;
    int error = mrt_zk_uri_layout(uri, &layout);
    if (error == MORTISE_OK && layout == MRT_ZK_RECIPE)
        *ops = &recipe_store;
    return error;
}

const struct mrt_store_ops mrt_zookeeper_store = {CALLS(1), .choose = choose};
