/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of an agent, and its system calls: see agent_host.h. */
#include "agent_command.h"

#include "agent/agent.h"
#include "agent/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENER HOST_FIRST_SOCKET
#define STOP (HOST_FIRST_SOCKET + 1)
#define RENEW (HOST_FIRST_SOCKET + 2)
#define FAREWELL (60 * MRT_SECOND) /* a wait of a dead agent that has no end */
#define DEAD_TURNS_MAX 10000
#define BUSY_US 2000

#define AGENT_OF(task, member) \
    ((struct agent_host *)(void *)((char *)(task)-offsetof(struct agent_host, member)))

/* ------------------------------------------------------------------ the two stacks */

static struct agent_host *resumed;

static void body(void)
{
    struct agent_host *agent = resumed;
    const char *policy = policy_path(agent->client.world);
    const struct mrt_agent_options options = {.url = "sim:?namespace=",
                                              .renew = policy ? RENEW : -1,
                                              .socket = "/agent.sock",
                                              .listener = LISTENER,
                                              .policy = policy,
                                              .timeout = MRT_SECOND,
                                              .drain = agent->client.world->drawn.agent_drain_us *
                                                       MRT_MICROSECOND,
                                              .stop = STOP};
    if (mrt_agent_run(&options) == MORTISE_EINTERNAL)
        abort();
    agent->runs = false;
    fiber_leave(&agent->fiber);
}

/* Goes on where it waits, until it waits again. */
static void resume(struct agent_host *agent)
{
    struct host *outer = host_current;
    struct agent_host *before = resumed;
    host_current = &agent->host;
    resumed = agent;
    fiber_enter(&agent->fiber);
    resumed = before;
    host_current = outer;
}

/* A dead agent's time passes by itself. */
static void outlive(struct agent_host *agent, mrt_time until)
{
    mrt_time now = client_now(&agent->client);
    if (++agent->dead_turns > DEAD_TURNS_MAX)
        abort();
    agent->is_told = agent->dead_turns <= 2;
    agent->client.offset += until == MRT_TIME_NEVER ? FAREWELL : until > now ? until - now : 0;
}

void agent_sleep(struct agent_host *agent, mrt_time until)
{
    if (agent->dead) {
        outlive(agent, until);
        return;
    }
    agent->wakes_at = until;
    fiber_leave(&agent->fiber);
}

/* ------------------------------------------------------------------ its turns */

static void ended(struct agent_host *agent);
static void turn(struct world *world, struct task *task);

/* A busy agent finds more at a time, also of several clients of its commands. */
static mrt_time until_read(struct world *world)
{
    int64_t late = world->profile.timer_late_us;
    return world->resp && world->phase == PHASE_CHAOS
               ? world_some(world, late < BUSY_US ? late : BUSY_US)
               : 0;
}

static void plan(struct agent_host *agent)
{
    struct world *world = agent->client.world;
    if (!agent->runs)
        return;
    if (host_has_more(&agent->host)) {
        mrt_time at = world->now + until_read(world);
        if (!agent->turn.timer.armed || agent->turn.timer.at > at)
            world_at(world, &agent->turn, at, turn);
        return;
    }
    if (agent->wakes_at == MRT_TIME_NEVER)
        world_cancel(world, &agent->turn);
    else
        world_at(world, &agent->turn,
                 client_true(&agent->client, agent->wakes_at) +
                     world_some(world, world->profile.timer_late_us),
                 turn);
}

static void go_on(struct agent_host *agent)
{
    resume(agent);
    policy_check_connections(agent);
    if (!agent->runs)
        ended(agent);
    else
        plan(agent);
}

static void turn(struct world *world, struct task *task)
{
    struct agent_host *agent = AGENT_OF(task, turn);
    if (client_paused(&agent->client))
        world_at(world, task, agent->client.paused_until, turn);
    else
        go_on(agent);
}

void agent_ready(struct agent_host *agent)
{
    if (host_current != &agent->host && !agent->dead)
        plan(agent);
}

void agent_run(struct agent_host *agent)
{
    if (agent->runs && !client_paused(&agent->client) && host_has_more(&agent->host))
        go_on(agent);
}

/* ------------------------------------------------------------------ life and death */

static void note(const struct agent_host *agent, const char *what)
{
    trace_note(agent->client.world, TRACE_CLIENT, agent->client.index, NO_QUEUE, what, 0, 0, 0);
}

static uint32_t listener_state(const struct host_socket *socket)
{
    const struct agent_host *agent = AGENT_OF(socket, listener);
    const struct agent_socket *own;
    TAILQ_FOREACH (own, &agent->sockets, link)
        if (!own->accepted)
            return EPOLLIN;
    return 0;
}

static uint32_t stop_state(const struct host_socket *socket)
{
    return AGENT_OF(socket, stop)->is_told ? EPOLLIN : 0;
}

static uint32_t renew_state(const struct host_socket *socket)
{
    const struct agent_host *agent = AGENT_OF(socket, renew);
    return agent->is_renewed && !agent->closes ? EPOLLIN : 0;
}

static uint32_t operations_state(const struct host_socket *socket)
{
    return policy_worker_state(AGENT_OF(socket, operations));
}

static uint32_t store_state(const struct host_socket *socket)
{
    return STAILQ_EMPTY(&AGENT_OF(socket, store)->told) ? 0 : EPOLLIN;
}

static uint32_t other_state(const struct host_socket *socket)
{
    (void)socket;
    return 0;
}

static void close_nothing(struct host_socket *socket)
{
    (void)socket;
}

static void start(struct agent_host *agent)
{
    struct world *world = agent->client.world;
    if (world->peer_count == PEERS_MAX)
        abort();
    struct peer *peer = &world->peers[world->peer_count++];
    *peer = (struct peer){.client = &agent->client, .index = agent->client.index};
    agent->client.peer = peer;
    agent->host = (struct host){.client = &agent->client};
    agent->dead = agent->is_told = agent->ends = agent->is_renewed = false;
    agent->closes = false;
    agent->worker = NULL;
    memset(agent->connections, 0, sizeof agent->connections);
    policy_read_at_start(agent);
    agent->dead_turns = 0;
    host_socket_new(&agent->host, &agent->listener);
    host_socket_new(&agent->host, &agent->stop);
    host_socket_new(&agent->host, &agent->renew);
    fiber_make(&agent->fiber, agent->stack, sizeof agent->stack, body);
    agent->runs = true;
    note(agent, "begins");
    go_on(agent);
    agent_arm(agent);
}

static void restart(struct world *world, struct task *task)
{
    (void)world;
    start(AGENT_OF(task, restart));
}

/* Clients have lives too. */
static bool may_die(const struct world *world)
{
    return world->peer_count < PEERS_MAX / 2;
}

/* Its process has gone, with all that it had. */
static void leave(struct agent_host *agent)
{
    struct world *world = agent->client.world;
    struct task *const tasks[] = {&agent->turn, &agent->crash, &agent->pause, &agent->cut,
                                  &agent->signal};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        world_cancel(world, tasks[i]);
    agent->client.peer->client = NULL;
    agent->client.paused_until = 0;
    agent_disconnect(agent);
    agent_store_forget(agent);
    server_died(world, agent->client.peer);
    if (world->phase != PHASE_CLOSE || !agent->ends)
        world_at(world, &agent->restart,
                 world->now + MRT_MICROSECOND + world_some(world, world->drawn.agent_restart_us),
                 restart);
}

/* Runs the dead agent's code to its end. */
static void bury(struct agent_host *agent)
{
    mrt_time offset = agent->client.offset;
    agent->dead = true;
    while (agent->runs)
        resume(agent);
    agent->client.offset = offset;
}

static void ended(struct agent_host *agent)
{
    note(agent, "has ended");
    agent->client.peer->closed = true;
    agent->client.peer->closed_at = agent->client.world->now;
    leave(agent);
}

static void die(struct world *world, struct task *task)
{
    struct agent_host *agent = AGENT_OF(task, crash);
    if (!agent->runs || !may_die(world))
        return;
    note(agent, "dies");
    leave(agent);
    bury(agent);
}

static void again(struct world *world, struct task *task, int64_t every_us,
                  void (*run)(struct world *, struct task *))
{
    world_at(world, task, world->now + world_about(world, every_us), run);
}

static void stand_still(struct world *world, struct task *task)
{
    struct agent_host *agent = AGENT_OF(task, pause);
    again(world, task, world->profile.agent_pause_every_us, stand_still);
    agent->client.paused_until = world->now + world_some(world, world->profile.agent_pause_us);
    note(agent, "stands still");
}

static void cut_off(struct world *world, struct task *task)
{
    struct agent_host *agent = AGENT_OF(task, cut);
    again(world, task, world->profile.agent_cut_every_us, cut_off);
    agent->client.cut_until = world->now + world_some(world, world->profile.cut_us);
    note(agent, "is cut off");
}

static void send_signal(struct world *world, struct task *task)
{
    struct agent_host *agent = AGENT_OF(task, signal);
    if (!may_die(world))
        return;
    note(agent, "gets a signal");
    agent->is_told = true;
    agent_ready(agent);
}

void agent_arm(struct agent_host *agent)
{
    struct world *world = agent->client.world;
    const struct profile *p = &world->profile;
    const struct disaster disasters[] = {{&agent->crash, p->agent_crash_every_us, die},
                                         {&agent->pause, p->agent_pause_every_us, stand_still},
                                         {&agent->cut, p->agent_cut_every_us, cut_off},
                                         {&agent->signal, p->agent_signal_every_us, send_signal}};
    if (agent->runs) /* else it has none, and gets them when it begins */
        world_arm(world, disasters, sizeof disasters / sizeof disasters[0]);
}

void agent_end(struct agent_host *agent)
{
    agent->ends = agent->is_told = true;
    world_cancel(agent->client.world, &agent->restart);
    agent_ready(agent);
}

void agent_boot(struct world *world, struct agent_host *agent, int number)
{
    agent->client.world = world;
    agent->client.agent = agent;
    agent->client.index = CLIENTS_MAX + number;
    agent->number = number;
    TAILQ_INIT(&agent->sockets);
    STAILQ_INIT(&agent->told);
    agent->listener = (struct host_socket){.state = listener_state, .close = close_nothing};
    agent->stop = (struct host_socket){.state = stop_state, .close = close_nothing};
    agent->renew = (struct host_socket){.state = renew_state, .close = close_nothing};
    agent->store = (struct host_socket){.state = store_state, .close = close_nothing};
    agent->operations = (struct host_socket){.state = operations_state, .close = close_nothing};
    agent->other = (struct host_socket){.state = other_state, .close = close_nothing};
    start(agent);
}

void agent_free(struct agent_host *agent)
{
    struct agent_socket *own;
    TAILQ_FOREACH (own, &agent->sockets, link)
        own->stream = NULL;
    bury(agent);
    agent_disconnect(agent);
    agent_store_forget(agent);
}

/* ------------------------------------------------------------------ system calls */

int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __real_poll(struct pollfd *descriptors, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *descriptors, nfds_t count, int timeout);
int __real_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
                 const sigset_t *signals);
int __wrap_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
                 const sigset_t *signals);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
int __wrap_mrt_agent_adopt(const char *path, int listener, int *lock);
int __wrap_mrt_worker_open(struct mrt_worker *worker, const char *url,
                           const struct mrt_store_ops *ops);
void __wrap_mrt_worker_close(struct mrt_worker *worker);
int __wrap_mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops);

static struct agent_host *caller(void)
{
    return host_current ? host_current->client->agent : NULL;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    struct agent_host *agent = caller();
    struct agent_socket *own;
    if (!agent)
        return __real_accept4(fd, address, size, flags);
    int64_t count = 0;
    TAILQ_FOREACH (own, &agent->sockets, link)
        if (!own->accepted)
            break;
        else
            count++;
    errno = own ? EMFILE : EAGAIN;
    if (!own || agent->dead ||
        count >= agent->client.world->drawn.agent_room +
                     2 * DIALOGUES_MAX * agent->client.world->drawn.resp_clients)
        return -1;
    own->accepted = true;
    return host_socket_new(&agent->host, &own->socket);
}

/* A client that opens its store waits for the agent, which runs meanwhile if it can. */
int __wrap_poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
    struct host_socket *socket =
        host_current ? host_socket_of(host_current, descriptors[0].fd) : NULL;
    if (!socket || host_current->client->world->drawn.model != MODEL_AGENT)
        return __real_poll(descriptors, count, timeout);
    bool any = !host_current->dead && agent_hurry((struct stream *)socket);
    uint32_t asked = (uint32_t)descriptors[0].events | EPOLLERR | EPOLLHUP;
    descriptors[0].revents = (short)(socket->state(socket) & asked);
    errno = ETIMEDOUT;
    return any ? descriptors[0].revents != 0 : -1;
}

int __wrap_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
                 const sigset_t *signals)
{
    struct agent_host *agent = caller();
    int found = 0;
    if (!agent)
        return __real_ppoll(descriptors, count, timeout, signals);
    mrt_time left = timeout ? timeout->tv_sec * MRT_SECOND + timeout->tv_nsec : MRT_TIME_NEVER;
    agent->closes |= left > 0; /* in its turns the agent only has a look */
    if (left > 0)
        agent_sleep(agent, mrt_time_add(client_now(&agent->client), left));
    for (nfds_t i = 0; i < count; i++) {
        const struct host_socket *socket = host_socket_of(&agent->host, descriptors[i].fd);
        descriptors[i].revents = (short)(socket ? socket->state(socket) & EPOLLIN : 0);
        found += descriptors[i].revents != 0;
    }
    return found;
}

int __wrap_eventfd(unsigned count, int flags)
{
    struct agent_host *agent = caller();
    return agent ? host_socket_new(&agent->host, &agent->other) : __real_eventfd(count, flags);
}

/* The descriptors of an agent's own that are read by this are those that signals come by. */
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    struct agent_host *agent = caller();
    if (!agent || (fd != STOP && fd != RENEW))
        return __real_read(fd, bytes, size);
    *(fd == STOP ? &agent->is_told : &agent->is_renewed) = false;
    memset(bytes, 0, size);
    return 1;
}

pid_t __wrap_getpid(void)
{
    return host_current ? 1 + host_current->client->index : __real_getpid();
}

int __wrap_mrt_agent_adopt(const char *path, int listener, int *lock)
{
    (void)path, (void)listener;
    *lock = __wrap_eventfd(0, 0);
    return MORTISE_OK;
}

int __wrap_mrt_worker_open(struct mrt_worker *worker, const char *url,
                           const struct mrt_store_ops *ops)
{
    (void)url;
    struct agent_host *agent = caller();
    *worker =
        (struct mrt_worker){.ops = ops, .fd = host_socket_new(&agent->host, &agent->operations)};
    STAILQ_INIT(&worker->done);
    agent->worker = worker;
    return MORTISE_OK;
}

void __wrap_mrt_worker_close(struct mrt_worker *worker)
{
    struct mrt_operation *operation;
    while ((operation = STAILQ_FIRST(&worker->done))) {
        STAILQ_REMOVE_HEAD(&worker->done, link);
        mrt_operation_free(operation);
    }
    caller()->worker = NULL;
    close(worker->fd);
}

int __wrap_mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    return agent_store_find(uri, ops);
}
