/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's loop: see agent.h. One epoll has the listener, the connections, the engine's driver
 * and the descriptor that stops the agent. A turn reads what has come, lets the engine act once,
 * and sends what came of it: so a lock that one client gives back and another one gets in the same
 * turn costs one message each.
 *
 * The end. The agent stops accepting and refuses new LOCKs, holds go on until `drain` is over, then
 * connections are ended (peer.c). The session is stopped once no client may believe that it holds.
 */
#include "agent/agent.h"

#include "agent/lock.h"
#include "agent/mutex.h"
#include "agent/process.h"
#include "agent/socket.h"
#include "base/epoll.h"
#include "base/error.h"
#include "base/name.h"
#include "base/owner.h"
#include "base/uri.h"
#include "io/loop.h"
#include "io/policy.h"
#include "store/stores.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEASE_STANDARD (5 * MRT_SECOND) /* where the store has none */
#define LEASE_MAX (3600 * MRT_SECOND)   /* more than any store's */
#define BUDGET (2 * MRT_MILLISECOND)
#define BUDGET_COUNT 256
#define EVENTS_MAX 256
#define ACCEPTS_MAX 16 /* a turn: clients that connect without end leave time for the others */
#define CLOSE_PATIENCE (5 * MRT_SECOND)

/* -------------------------------------------------------------------- opening */

static int open_store(struct mrt_agent *agent, const struct mrt_uri *uri, mrt_time timeout)
{
    const struct mrt_store_ops *ops;
    struct mrt_engine_config config = {.strict = true,
                                       .budget = BUDGET,
                                       .budget_count = BUDGET_COUNT,
                                       .margin_min = MRT_MARGIN_MIN,
                                       .host = agent};
    int error = mrt_store_find(uri, &ops);
    if (error == MORTISE_OK && strcmp(ops->scheme, "memory") == 0)
        error = mrt_error(MORTISE_ENOTSUPPORTED, "memory: keeps nothing when the agent is started "
                                                 "again: name a store that does, as sqlite:");
    if (error == MORTISE_OK && ops->is_tied)
        error = mrt_error(MORTISE_ENOTSUPPORTED,
                          "locks of a form end when the agent dies, while its clients still trust "
                          "them: leave form= out");
    if (error == MORTISE_OK)
        error = mrt_namespace_prefix(mrt_uri_parameter(uri, "namespace"), agent->prefix);
    if (error == MORTISE_OK &&
        (!mrt_id_random(&config.seed) || !mrt_id_random(&agent->desk.instance)))
        error = mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    if (error == MORTISE_OK)
        error = mrt_policy_read(uri, &config);
    /* A client trusts what HELD has replied: the rest of the session's lease. */
    if (error == MORTISE_OK)
        config.trusted_for = ops->capabilities.lease_ms > 0 ? LEASE_MAX : LEASE_STANDARD;
    config.delay_is_host = true; /* all of them protect clients, which end with the host */
    if (error != MORTISE_OK)
        return error;
    mrt_owner_describe("agent", true, agent->owner);
    const struct mrt_store_options options = {
        .label = agent->owner, .timeout = timeout, .find = mrt_store_find};
    error = mrt_driver_open(&agent->driver, &config, ops, uri, &options, true, NULL, NULL);
    if (error != MORTISE_OK)
        return error;
    agent->driver.prefix_length = strlen(agent->prefix);
    mrt_time lease =
        ops->lease ? ops->lease(agent->driver.store) : mrt_time_from_ms(ops->capabilities.lease_ms);
    agent->has_lease = lease > 0;
    agent->lease = agent->has_lease ? lease : LEASE_STANDARD;
    agent->driver.tap = mrt_desk_tap;
    return MORTISE_OK;
}

/* Opens the store of a URL, which may hold a password. */
static int open_url(struct mrt_agent *agent, const char *url, mrt_time timeout)
{
    struct mrt_uri *uri = malloc(sizeof *uri);
    if (!uri)
        return MORTISE_ENOMEM;
    int error = mrt_uri_parse(mrt_uri_choose(url), uri);
    if (error == MORTISE_OK)
        error = open_store(agent, uri, timeout);
    explicit_bzero(uri, sizeof *uri);
    free(uri);
    return error;
}

static int open_epoll(struct mrt_agent *agent, int stop, int renew)
{
    mrt_driver_enter(&agent->driver);
    int driver = mrt_loop_fd(&agent->driver);
    mrt_driver_leave_quietly(&agent->driver);
    agent->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (driver >= 0 && agent->epoll >= 0 &&
        mrt_epoll_watch(agent->epoll, driver, EPOLLIN, &agent->driver) &&
        mrt_epoll_watch(agent->epoll, agent->listener, EPOLLIN, &agent->listener) &&
        mrt_epoll_watch(agent->epoll, agent->worker.fd, EPOLLIN, &agent->worker) &&
        mrt_epoll_watch(agent->epoll, stop, EPOLLIN, &agent->drains) &&
        (renew < 0 || mrt_epoll_watch(agent->epoll, renew, EPOLLIN, &agent->access)))
        return MORTISE_OK;
    return mrt_error(MORTISE_ENOMEM, "no descriptor left for the agent's loop");
}

/* ---------------------------------------------------------------------- turns */

static void accept_some(struct mrt_agent *agent)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(agent->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            agent->pauses = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
            break;
        }
        mrt_peer_accept(agent, fd);
    }
    if (agent->pauses)
        epoll_ctl(agent->epoll, EPOLL_CTL_DEL, agent->listener, NULL);
}

static void end_all(struct mrt_agent *agent)
{
    struct mrt_peer *peer, *next;
    TAILQ_FOREACH_SAFE (peer, &agent->peers, link, next)
        mrt_peer_end(peer);
}

/* It holds nothing, by itself or by its process, and no operation is under way. */
static bool is_idle(const struct mrt_peer *peer)
{
    const struct mrt_peer *process = peer->is_process ? NULL : mrt_process_find(peer);
    return !mrt_lock_any_held(peer) && !(process && mrt_lock_any_held(process)) &&
           !mrt_desk_holds(peer) && !peer->operation;
}

/* Ends the LOCK, or the CAS or GET, that waits; the outcome of a CAS is not known. */
static void end_waiting(struct mrt_peer *peer)
{
    if (peer->waiting->answer) {
        mrt_lock_cancel(peer);
        if (peer->waiting && peer->waiting->call.waiter.state == MRT_WAITER_DONE)
            mrt_lock_finish(peer->waiting, &peer->output);
    } else {
        mrt_reply_error(&peer->output, "AGAIN the agent is ending: connect again");
        mrt_lock_drop(peer->waiting);
    }
    mrt_peer_has_output(peer);
}

/* A client that has given back its last lock can take nothing here any more. */
static void end_idle(struct mrt_agent *agent)
{
    struct mrt_peer *peer, *next;
    TAILQ_FOREACH_SAFE (peer, &agent->peers, link, next)
        if (is_idle(peer))
            mrt_peer_end(peer);
}

/* Of a signalfd, an eventfd or a pipe that is readable. */
static void empty(int fd)
{
    char bytes[256];
    ssize_t got = read(fd, bytes, sizeof bytes);
    (void)got;
}

/* The first signal lets holds go on for a while; one more ends them. */
static void stop(struct mrt_agent *agent, int fd, mrt_time drain)
{
    empty(fd);
    if (agent->drains) {
        agent->drain_until = 0;
        return;
    }
    struct mrt_peer *peer, *next;
    agent->drains = true;
    agent->drain_until = mrt_time_add(mrt_time_now(), drain);
    epoll_ctl(agent->epoll, EPOLL_CTL_DEL, agent->listener, NULL);
    TAILQ_FOREACH_SAFE (peer, &agent->peers, link, next) {
        if (peer->waiting)
            end_waiting(peer);
        if (is_idle(peer))
            mrt_peer_end(peer);
    }
}

/* Closes connections whose clients have had the time to find their end. */
static void expire(struct mrt_agent *agent, mrt_time now)
{
    struct mrt_peer *peer;
    while ((peer = TAILQ_FIRST(&agent->ended)) && now >= peer->forget_at)
        mrt_peer_close(peer);
    if (agent->drains && now >= agent->drain_until)
        end_all(agent);
    else if (agent->drains)
        end_idle(agent);
}

static int timeout_ms(const struct mrt_agent *agent)
{
    const struct mrt_peer *ended = TAILQ_FIRST(&agent->ended);
    mrt_time now = mrt_time_now(), left = mrt_loop_left(&agent->driver);
    mrt_time until = ended ? ended->forget_at : MRT_TIME_NEVER;
    if (agent->drains && !TAILQ_EMPTY(&agent->peers))
        until = mrt_time_min(until, agent->drain_until);
    until = mrt_time_min(until, mrt_desk_next(&agent->desk));
    if (agent->drains && now < agent->desk.trusted_until)
        until = mrt_time_min(until, agent->desk.trusted_until);
    if (until != MRT_TIME_NEVER)
        left = mrt_time_min(left, until > now ? until - now : 0);
    if (left == MRT_TIME_NEVER)
        return -1;
    mrt_time ms = left / MRT_MILLISECOND + (left % MRT_MILLISECOND > 0);
    return ms > 60000 ? 60000 : (int)ms;
}

void mrt_agent_finish_turn(struct mrt_agent *agent)
{
    struct mrt_driver *driver = &agent->driver;
    struct mrt_peer *peer;
    uint64_t commands;
    expire(agent, mrt_time_now());
    mrt_loop_look(driver);
    do {
        commands = agent->counters.commands;
        agent->has_dropped = false;
        mrt_loop_turn(driver, mrt_driver_patience(MRT_TIME_NEVER));
        mrt_desk_turn(agent);
        mrt_desk_mutex_turn(agent);
        while ((peer = TAILQ_FIRST(&agent->flushes)))
            mrt_peer_flush(peer); /* which may run commands that waited, or drop locks */
    } while (commands != agent->counters.commands || agent->has_dropped || mrt_tell_waits(driver) ||
             (mrt_engine_has_command(driver->engine) && !driver->stalled));
    while ((peer = TAILQ_FIRST(&agent->gone)))
        mrt_peer_free(peer);
    if (agent->resumes)
        mrt_epoll_watch(agent->epoll, agent->listener, EPOLLIN, &agent->listener);
    agent->resumes = false;
}

/* The agent waits for what clients may believe, and for a while for tickets that a store keeps. */
static bool is_owed(const struct mrt_agent *agent, mrt_time now)
{
    mrt_time until = mrt_time_add(agent->drain_until, agent->lease + CLOSE_PATIENCE);
    return agent->peer_count > 0 || now < agent->desk.trusted_until ||
           (now < until && mrt_desk_owes(&agent->desk));
}

static void renew(struct mrt_agent *agent, const struct mrt_agent_options *options)
{
    empty(options->renew);
    mrt_policy_renew(agent, options->policy);
}

static void serve(struct mrt_agent *agent, const struct mrt_agent_options *options)
{
    struct epoll_event events[EVENTS_MAX];
    mrt_driver_enter(&agent->driver);
    while (!agent->drains || is_owed(agent, mrt_time_now())) {
        int timeout = timeout_ms(agent);
        mrt_driver_leave_quietly(&agent->driver);
        int count = epoll_wait(agent->epoll, events, EVENTS_MAX, timeout);
        mrt_driver_enter(&agent->driver);
        for (int i = 0; i < count; i++) {
            void *tag = events[i].data.ptr;
            if (tag == &agent->listener)
                accept_some(agent);
            else if (tag == &agent->worker)
                mrt_desk_operated(agent);
            else if (tag == &agent->drains)
                stop(agent, options->stop, options->drain);
            else if (tag == &agent->access)
                renew(agent, options);
            else if (tag != &agent->driver)
                mrt_peer_event(tag, events[i].events);
        }
        mrt_agent_finish_turn(agent);
    }
    mrt_driver_leave_quietly(&agent->driver);
}

static int open_and_serve(struct mrt_agent *agent, const struct mrt_agent_options *options)
{
    int error = open_url(agent, options->url, options->timeout);
    if (error != MORTISE_OK)
        return error;
    error = mrt_worker_open(&agent->worker, options->url, agent->driver.ops);
    if (error == MORTISE_OK)
        error = open_epoll(agent, options->stop, options->renew);
    if (error == MORTISE_OK) {
        if (options->ready)
            options->ready(options->argument, agent->driver.ops->address(agent->driver.store));
        serve(agent, options);
    }
    if (agent->epoll >= 0)
        close(agent->epoll);
    mrt_worker_close(&agent->worker);
    int closed = mrt_driver_close(&agent->driver, mrt_time_now() + CLOSE_PATIENCE);
    mrt_desk_free(&agent->desk);
    return error ? error : closed;
}

void mrt_agent_init(struct mrt_agent *agent)
{
    *agent = (struct mrt_agent){.epoll = -1,
                                .listener = -1,
                                .peers_max = mrt_peers_count_room(),
                                .uid = geteuid(),
                                .no_user = mrt_access_no_user(),
                                .no_group = mrt_access_no_group()};
    TAILQ_INIT(&agent->peers);
    TAILQ_INIT(&agent->ended);
    TAILQ_INIT(&agent->flushes);
    TAILQ_INIT(&agent->gone);
    mrt_desk_init(&agent->desk);
}

int mrt_agent_run(const struct mrt_agent_options *options)
{
    struct mrt_agent agent;
    int lock, error = MORTISE_OK;
    mrt_error_clear();
    mrt_agent_init(&agent);
    agent.log = options->log;
    agent.log_argument = options->argument;
    if (options->policy)
        error = mrt_access_read(options->policy, &agent.access);
    if (error == MORTISE_OK)
        error = options->listener >= 0 ? mrt_agent_adopt(options->socket, options->listener, &lock)
                                       : mrt_agent_listen(options->socket, options->policy != NULL,
                                                          &agent.listener, &lock);
    if (options->listener >= 0)
        agent.listener = options->listener;
    if (error == MORTISE_OK) {
        error = open_and_serve(&agent, options);
        if (options->listener < 0)
            mrt_agent_unlisten(options->socket, agent.listener);
        close(lock);
    }
    mrt_users_free(&agent);
    mrt_access_free(agent.access);
    return error;
}
