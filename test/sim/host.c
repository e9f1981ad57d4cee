/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h. */
#include "agent_host.h"

#include "base/uri.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define EPOLL HOST_DESCRIPTORS
#define SOCKET HOST_FIRST_SOCKET

struct host *host_current;

const struct host_kind *host_kind_of(int64_t model)
{
    switch (model) {
    case MODEL_AGENT:
        return &agent_host_kind;
#ifdef MORTISE_ZOOKEEPER
    case MODEL_ZK_LIBRARY:
        return &zk_host_kind;
#endif
#ifdef SIM_REDIS
    case MODEL_REDIS:
        return &redis_host_kind;
    case MODEL_REDLOCK:
        return &redlock_host_kind;
    case MODEL_QUORUM:
        return &quorum_host_kind;
#endif
#ifdef SIM_ETCD
    case MODEL_ETCD:
        return &etcd_host_kind;
#endif
#ifdef SIM_POSTGRES
    case MODEL_POSTGRES:
        return pg_host_kind();
#endif
    default:
        return NULL;
    }
}

/* A lone fault must not cost it twice a lease. */
int64_t host_connect_ms(const struct profile *profile)
{
    return profile->lone > 0 ? profile->lease_us / 10000 : profile->lease_us / 500;
}

/* ------------------------------------------------------------------ the system's part */

mrt_time __wrap_mrt_time_now(void);
ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int operation, int socket, struct epoll_event *event);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int limit, int timeout);
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_shutdown(int fd, int how);
int __wrap_shutdown(int fd, int how);
int __real_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument);

/* A store that asked for the time while no client's is known would make runs differ. */
mrt_time __wrap_mrt_time_now(void)
{
    const struct client *client = host_current ? host_current->client : multi_client();
    if (!client)
        abort();
    return client_now(client);
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    unsigned char *to = bytes;
    if (!host_current)
        return __real_getrandom(bytes, size, flags);
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)random_next(&host_current->client->world->random);
    return (ssize_t)size;
}

int __wrap_epoll_create1(int flags)
{
    if (!host_current)
        return __real_epoll_create1(flags);
    if (host_current->epolls == HOST_EPOLLS_MAX)
        abort();
    return EPOLL + host_current->epolls++;
}

static struct host_slot *slot_of(struct host *host, int descriptor)
{
    int slot = descriptor - SOCKET;
    if (!host || slot < 0 || slot >= HOST_SOCKETS_MAX || !host->slots[slot].socket)
        return NULL;
    return &host->slots[slot];
}

int __wrap_epoll_ctl(int epoll, int operation, int socket, struct epoll_event *event)
{
    struct host_slot *slot = slot_of(host_current, socket);
    if (host_current && socket >= EPOLL && socket < SOCKET) {
        host_current->inner[socket - EPOLL].outer = operation != EPOLL_CTL_DEL ? epoll : 0;
        if (operation != EPOLL_CTL_DEL)
            host_current->inner[socket - EPOLL].data = event->data;
        return 0;
    }
    if (!slot) {
        errno = EBADF;
        return -1;
    }
    if ((operation == EPOLL_CTL_ADD) == (slot->epoll >= 0)) {
        errno = slot->epoll >= 0 ? EEXIST : ENOENT;
        return -1;
    }
    slot->epoll = operation != EPOLL_CTL_DEL ? epoll : -1;
    if (slot->epoll >= 0) {
        slot->mask = event->events;
        slot->data = event->data;
    }
    return 0;
}

static bool is_connecting(const struct host *host, const struct host_socket *socket)
{
    return host->client->world->now < socket->open_at;
}

static uint32_t ready(const struct host *host, const struct host_slot *slot)
{
    if (!slot->socket || slot->epoll < 0 || is_connecting(host, slot->socket))
        return 0;
    return slot->socket->state(slot->socket) & (slot->mask | EPOLLERR | EPOLLHUP);
}

static bool any_ready(const struct host *host, int epoll)
{
    for (int i = 0; i < host->slot_count; i++)
        if (host->slots[i].epoll == epoll && ready(host, &host->slots[i]))
            return true;
    return false;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int limit, int timeout)
{
    int count = 0;
    struct agent_host *agent = host_current->client->agent;
    if (agent && timeout != 0)
        agent_sleep(agent, timeout < 0 ? MRT_TIME_NEVER
                                       : client_now(&agent->client) + timeout * MRT_MILLISECOND);
    for (int i = 0; i < host_current->epolls && count < limit; i++)
        if (host_current->inner[i].outer == epoll && any_ready(host_current, EPOLL + i))
            events[count++] =
                (struct epoll_event){.events = EPOLLIN, .data = host_current->inner[i].data};
    for (int i = 0; i < host_current->slot_count && count < limit; i++) {
        const struct host_slot *slot = &host_current->slots[i];
        uint32_t is = ready(host_current, slot);
        if (is != 0 && slot->epoll == epoll)
            events[count++] = (struct epoll_event){.events = is, .data = slot->data};
    }
    return count;
}

bool host_has_more(const struct host *host)
{
    for (int i = 0; i < host->slot_count; i++)
        if (ready(host, &host->slots[i]))
            return true;
    return false;
}

/* No second descriptor: a simulated server reads all that was sent before a connection closes. */
int __wrap_fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    if (fd < EPOLL)
        return __real_fcntl(fd, command, argument);
    return command == F_DUPFD_CLOEXEC ? -1 : 0;
}

int __wrap_close(int fd)
{
    if (fd < EPOLL)
        return __real_close(fd);
    if (slot_of(host_current, fd))
        host_socket_close(host_current, fd);
    return 0;
}

int __wrap_shutdown(int fd, int how)
{
    const struct host_slot *slot = slot_of(host_current, fd);
    if (!host_current)
        return __real_shutdown(fd, how);
    if (slot && slot->socket->shut)
        slot->socket->shut(slot->socket);
    return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    return fd >= EPOLL ? 0 : __real_setsockopt(fd, level, option, value, size);
}

/* The only thread that a store starts is the one that closes a silent server's handle. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    (void)attributes;
    memset(thread, 0, sizeof *thread);
    routine(argument);
    return 0;
}

int host_socket_new(struct host *host, struct host_socket *socket)
{
    for (int i = 0; i < HOST_SOCKETS_MAX; i++)
        if (!host->slots[i].socket) {
            host->slots[i] = (struct host_slot){.socket = socket, .epoll = -1};
            host->slot_count = i < host->slot_count ? host->slot_count : i + 1;
            return SOCKET + i;
        }
    abort();
}

struct host_socket *host_socket_of(const struct host *host, int descriptor)
{
    int slot = descriptor - SOCKET;
    return slot >= 0 && slot < HOST_SOCKETS_MAX ? host->slots[slot].socket : NULL;
}

void host_socket_close(struct host *host, int descriptor)
{
    struct host_slot *slot = &host->slots[descriptor - SOCKET];
    slot->socket->close(slot->socket);
    slot->socket = NULL; /* closing takes it out of the epoll descriptor too */
    slot->epoll = -1;
}

/* ------------------------------------------------------------------ the loop */

static void turn(struct world *world, struct task *task);

static void plan(struct host *host)
{
    struct client *client = host->client;
    struct world *world = client->world;
    mrt_time at = host->ops->next(host->store);
    if (host->kind->check)
        host->kind->check(world, client);
    if (at != MRT_TIME_NEVER)
        at = client_true(client, at) + world_some(world, world->profile.timer_late_us);
    if (host->due) /* which a busy client sees late */
        at = world->now +
             (world->phase == PHASE_CHAOS ? world_some(world, world->profile.timer_late_us) : 0);
    for (int i = 0; i < host->slot_count; i++) {
        const struct host_slot *slot = &host->slots[i];
        if (slot->socket && slot->epoll >= 0 && is_connecting(host, slot->socket))
            at = slot->socket->open_at < at ? slot->socket->open_at : at;
        else if (ready(host, slot))
            at = world->now;
    }
    if (at == MRT_TIME_NEVER)
        world_cancel(world, &host->turn);
    else
        world_at(world, &host->turn, at, turn);
}

static void deliver(void *context, const struct mrt_event *event)
{
    struct host *host = context;
    if (host->event_count == host->event_room) {
        host->event_room = host->event_room ? host->event_room * 2 : 16;
        host->events = realloc(host->events, (size_t)host->event_room * sizeof *host->events);
        if (!host->events)
            abort();
    }
    struct host_told *told = &host->events[host->event_count++];
    *told = (struct host_told){.event = *event};
    told->event.detail = NULL;
    if (event->value && event->value_size == sizeof told->value)
        memcpy(&told->value, event->value, sizeof told->value);
    else
        told->event.value_size = 0; /* somebody else's */
}

static void notify(void *context)
{
    (void)context;
}

/* The engine is told after the store has returned; it may end the client. Of what a store hands
 * over while it takes a command, client_pump fetches one event after the other, so that a thread
 * learns of its grant before the loss that comes with it. */
static void dispatch(struct world *world, struct host *host)
{
    if (host->dispatching)
        return;
    host->dispatching = true;
    while (host->store && host->event_next < host->event_count) {
        struct host_told told = host->events[host->event_next++];
        if (told.event.value)
            told.event.value = &told.value;
        client_event(world, host->client, &told.event);
        if (host->client->pumping)
            break;
    }
    if (host->event_next == host->event_count)
        host->event_next = host->event_count = 0;
    host->dispatching = false;
    if (host->store)
        plan(host);
}

bool host_goes_on(struct world *world, struct client *client)
{
    struct host *host = client->host;
    if (!host || host->dispatching || host->event_count == 0)
        return false;
    dispatch(world, host);
    return true;
}

static void turn(struct world *world, struct task *task)
{
    struct host *host = (struct host *)task;
    if (client_paused(host->client)) {
        world_at(world, task, host->client->paused_until, turn);
        return;
    }
    host_current = host;
    host->due = false;
    host->ops->process(host->store, client_now(host->client));
    host_current = NULL;
    dispatch(world, host);
}

void host_ready(struct client *client)
{
    struct host *host = client->host;
    if (host && host->store && !host->dispatching && host != host_current)
        plan(host);
}

void host_submit(struct world *world, struct client *client, const struct mrt_command *command)
{
    struct host *host = client->host;
    if (world->drawn.model == MODEL_AGENT)
        agent_note(world, client, command);
    host_current = host;
    if (!host->ops->submit(host->store, command, 0))
        abort();
    host_current = NULL;
    dispatch(world, host);
}

/* ------------------------------------------------------------------ its life */

bool host_open(struct world *world, struct client *client, const struct host_kind *kind)
{
    static struct mrt_uri uri;
    char text[512];
    struct host *host = calloc(1, sizeof *host);
    if (!host)
        abort();
    const struct mrt_sink sink = {.deliver = deliver, .notify = notify, .context = host};
    const struct mrt_store_options options = {
        .label = "", .timeout = MRT_SECOND, .find = kind->find};
    host->client = client;
    host->kind = kind;
    host->ops = kind->ops;
    client->host = host;
    kind->write_uri(world, text, sizeof text);
    host_current = host;
    int error = mrt_uri_parse(text, &uri);
    if (error == MORTISE_OK && kind == &agent_host_kind)
        error = kind->ops->choose(&uri, &host->ops);
    if (error == MORTISE_OK)
        error = host->ops->open(&uri, &options, sink, &host->store);
    host_current = NULL;
    if (error != MORTISE_OK && kind != &agent_host_kind)
        abort();
    return error == MORTISE_OK;
}

void host_close(struct client *client, bool died)
{
    struct host *host = client->host;
    struct host *outer = host_current;
    if (!host)
        return;
    world_cancel(client->world, &host->turn);
    host->dead = died;
    if (host->store) {
        host_current = host;
        host->ops->close(host->store);
        host_current = outer;
        host->store = NULL;
    }
    for (int i = 0; i < host->slot_count; i++)
        if (host->slots[i].socket)
            host_socket_close(host, SOCKET + i);
    client->host = NULL;
    host->next_dead = client->dead_hosts;
    client->dead_hosts = host;
}

void hosts_free(struct client *client)
{
    struct host *host;
    while ((host = client->dead_hosts)) {
        client->dead_hosts = host->next_dead;
        free(host->events);
        free(host);
    }
}
