/* See zk_host.h. */
#include "zk_host.h"

#include "base/uri.h"
#include "server.h"
#include "store/stores.h"
#include "store/zookeeper_internal.h"
#include "zk_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EPOLL (1 << 20) /* no descriptor of the system's is that high */
#define SOCKET (EPOLL + 1)

struct zk_host *zk_host_current;

/* ------------------------------------------------------------------ the system's part */

mrt_time __real_mrt_time_now(void);
mrt_time __wrap_mrt_time_now(void);
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

mrt_time __wrap_mrt_time_now(void)
{
    return zk_host_current ? client_now(zk_host_current->client) : __real_mrt_time_now();
}

int __wrap_epoll_create1(int flags)
{
    return zk_host_current ? EPOLL : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int operation, int socket, struct epoll_event *event)
{
    struct zk_host *host = zk_host_current;
    int slot = socket - SOCKET;
    if (!host || epoll != EPOLL || slot < 0 || slot >= ZK_SOCKETS_MAX || !host->sockets[slot]) {
        errno = EBADF;
        return -1;
    }
    if ((operation == EPOLL_CTL_ADD) == host->polled[slot]) {
        errno = host->polled[slot] ? EEXIST : ENOENT;
        return -1;
    }
    host->polled[slot] = operation != EPOLL_CTL_DEL;
    host->masks[slot] = host->polled[slot] ? event->events : 0;
    return 0;
}

static uint32_t ready(const struct zk_host *host, int slot)
{
    const struct zk_wire *wire = host->sockets[slot];
    uint32_t now = 0;
    if (!wire || !host->polled[slot] || zk_wire_connecting(wire))
        return 0;
    if (wire->refused || wire->broken)
        now |= EPOLLERR | EPOLLHUP;
    if (zk_wire_readable(wire))
        now |= EPOLLIN;
    return (now | EPOLLOUT) & (host->masks[slot] | EPOLLERR | EPOLLHUP);
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int limit, int timeout)
{
    int count = 0;
    (void)epoll, (void)timeout;
    for (int slot = 0; slot < ZK_SOCKETS_MAX && count < limit; slot++)
        if (ready(zk_host_current, slot))
            events[count++] = (struct epoll_event){.events = ready(zk_host_current, slot),
                                                   .data.fd = SOCKET + slot};
    return count;
}

int __wrap_fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    return fd >= EPOLL ? 0 : __real_fcntl(fd, command, argument);
}

int __wrap_close(int fd)
{
    return fd >= EPOLL ? 0 : __real_close(fd);
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    return fd >= EPOLL ? 0 : __real_setsockopt(fd, level, option, value, size);
}

int __wrap_shutdown(int fd, int how)
{
    if (fd < SOCKET)
        return __real_shutdown(fd, how);
    if (fd - SOCKET < ZK_SOCKETS_MAX && zk_host_current->sockets[fd - SOCKET])
        zk_host_current->sockets[fd - SOCKET]->ended = true;
    return 0;
}

/* Of threads the store knows only the one that a silent server's handle is closed on. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    (void)attributes;
    memset(thread, 0, sizeof *thread);
    routine(argument);
    return 0;
}

int zk_host_socket(struct zk_host *host, struct zk_wire *wire)
{
    for (int slot = 0; slot < ZK_SOCKETS_MAX; slot++)
        if (!host->sockets[slot]) {
            host->sockets[slot] = wire;
            return SOCKET + slot;
        }
    abort();
}

void zk_host_close_socket(struct zk_host *host, int socket)
{
    int slot = socket - SOCKET;
    zk_wire_close(host->sockets[slot]);
    host->sockets[slot] = NULL;
    host->polled[slot] = false; /* closing takes it out */
    host->masks[slot] = 0;
}

/* ------------------------------------------------------------------ the loop */

static void turn(struct world *world, struct task *task);

static void plan(struct zk_host *host)
{
    struct client *client = host->client;
    struct world *world = client->world;
    mrt_time at = mrt_zookeeper_store.next(host->store);
    if (at != MRT_TIME_NEVER)
        at = client_true(client, at) + world_some(world, world->profile.timer_late_us);
    for (int slot = 0; slot < ZK_SOCKETS_MAX; slot++) {
        const struct zk_wire *wire = host->sockets[slot];
        if (wire && host->polled[slot] && zk_wire_connecting(wire))
            at = wire->open_at < at ? wire->open_at : at;
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
    struct zk_host *host = context;
    if (host->event_count == host->event_room) {
        host->event_room = host->event_room ? host->event_room * 2 : 16;
        host->events = realloc(host->events, (size_t)host->event_room * sizeof *host->events);
        if (!host->events)
            abort();
    }
    struct zk_told *told = &host->events[host->event_count++];
    *told = (struct zk_told){.event = *event};
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

/* The engine is told after the store has returned; it may end the client. */
static void dispatch(struct world *world, struct zk_host *host)
{
    if (host->dispatching)
        return;
    host->dispatching = true;
    while (host->store && host->event_next < host->event_count) {
        struct zk_told told = host->events[host->event_next++];
        if (told.event.value)
            told.event.value = &told.value;
        client_event(world, host->client, &told.event);
    }
    host->event_next = host->event_count = 0;
    host->dispatching = false;
    if (host->store)
        plan(host);
}

static void turn(struct world *world, struct task *task)
{
    struct zk_host *host = (struct zk_host *)task;
    if (client_paused(host->client)) {
        world_at(world, task, host->client->paused_until, turn);
        return;
    }
    zk_host_current = host;
    mrt_zookeeper_store.process(host->store, client_now(host->client));
    zk_host_current = NULL;
    dispatch(world, host);
}

void zk_host_ready(struct client *client)
{
    struct zk_host *host = client->host;
    if (host && host->store && !host->dispatching && host != zk_host_current)
        plan(host);
}

void zk_host_submit(struct world *world, struct client *client, const struct mrt_command *command)
{
    struct zk_host *host = client->host;
    zk_host_current = host;
    if (!mrt_zookeeper_store.submit(host->store, command, 0))
        abort();
    zk_host_current = NULL;
    dispatch(world, host);
}

/* These wait for their answers in polls of their own; they are tested on real servers. */
int mrt_zk_list(struct mrt_store *store, const char *name, const char *prefix,
                mortise_entry_callback callback, void *argument)
{
    (void)store, (void)name, (void)prefix, (void)callback, (void)argument;
    return MORTISE_ENOTSUPPORTED;
}

int mrt_zk_server(struct mrt_store *store, char *text, size_t size)
{
    (void)store, (void)text, (void)size;
    return MORTISE_ENOTSUPPORTED;
}

/* ------------------------------------------------------------------ its life */

void zk_host_open(struct world *world, struct client *client)
{
    static const char *const hosts[] = {"127.0.0.1:2181", "127.0.0.1:2181,127.0.0.1:2182",
                                        "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183"};
    static struct mrt_uri uri;
    char text[256];
    struct zk_host *host = calloc(1, sizeof *host);
    if (!host)
        abort();
    const struct mrt_sink sink = {.deliver = deliver, .notify = notify, .context = host};
    const struct mrt_store_options options = {.label = "", .timeout = MRT_SECOND};
    host->client = client;
    client->host = host;
    snprintf(text, sizeof text, "zk://%s" ZK_CHROOT "?session=%lldms&connect=%lldms&wake=%s",
             hosts[world->drawn.zk_servers - 1], (long long)(world->drawn.lease_us / 1000),
             (long long)(world->drawn.lease_us / 500), world->drawn.zk_wake_all ? "all" : "one");
    zk_host_current = host;
    if (mrt_uri_parse(text, &uri) != MORTISE_OK ||
        mrt_zookeeper_store.open(&uri, &options, sink, &host->store) != MORTISE_OK)
        abort();
    zk_host_current = NULL;
}

void zk_host_close(struct client *client, bool died)
{
    struct zk_host *host = client->host;
    struct zk_host *outer = zk_host_current;
    if (!host)
        return;
    world_cancel(client->world, &host->turn);
    host->dead = died;
    if (host->store) {
        zk_host_current = host;
        mrt_zookeeper_store.close(host->store);
        zk_host_current = outer;
        host->store = NULL;
    }
    for (int slot = 0; slot < ZK_SOCKETS_MAX; slot++)
        if (host->sockets[slot])
            zk_host_close_socket(host, SOCKET + slot);
    client->host = NULL;
    host->next_dead = client->dead_hosts;
    client->dead_hosts = host;
}

void zk_hosts_free(struct client *client)
{
    struct zk_host *host;
    while ((host = client->dead_hosts)) {
        client->dead_hosts = host->next_dead;
        free(host->events);
        free(host);
    }
}
