/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. */
#include "stream.h"

#include "server.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define FIRST_PORT 6379

enum way { UP_BYTES, UP_END, DOWN_BYTES, DOWN_END, DOWN_BREAK };

struct parcel {
    struct task task; /* first */
    struct parcel *next;
    struct stream *stream;
    enum way way;
    size_t size;
    char bytes[];
};

/* ------------------------------------------------------------------ on the way */

static bool goes_up(const struct parcel *parcel)
{
    return parcel->way == UP_BYTES || parcel->way == UP_END;
}

static const struct stream_server *servers_of(const struct stream *stream)
{
    return stream->client->world->server->model->streams;
}

static bool is_down(const struct stream *stream)
{
    return servers_of(stream)->is_down(stream->client->world, stream->server);
}

static mrt_time later(const struct stream *stream, mrt_time not_before)
{
    struct world *world = stream->client->world;
    mrt_time at = world->now + MRT_MICROSECOND + world_some(world, world->profile.delay_us);
    if (stream->client->cut_until > at)
        at = stream->client->cut_until; /* it is sent again and again until then */
    if (stream->held_up_until > at)
        at = stream->held_up_until;
    return at < not_before ? not_before : at;
}

static void at_client(struct stream *stream, const struct parcel *parcel)
{
    if (stream->closed || stream->broken)
        return;
    if (parcel->way == DOWN_END)
        stream->ended = true;
    if (parcel->way == DOWN_BREAK) {
        stream->broken = true;
        stream->used = 0;
    }
    if (stream->room - stream->used < parcel->size) {
        stream->room = 2 * stream->room + parcel->size;
        stream->inbox = realloc(stream->inbox, stream->room);
        if (!stream->inbox)
            abort();
    }
    if (parcel->size > 0)
        memcpy(stream->inbox + stream->used, parcel->bytes, parcel->size);
    stream->used += parcel->size;
    host_ready(stream->client);
}

static void at_server(struct world *world, struct stream *stream, const struct parcel *parcel)
{
    if (is_down(stream))
        stream->deaf = true; /* what comes later would begin in the middle */
    if (!stream->connection && !stream->deaf)
        stream->connection = servers_of(stream)->accept(world, stream);
    if (parcel->way == UP_END) {
        stream->deaf = true;
        if (stream->connection)
            servers_of(stream)->hang_up(stream->connection);
        stream->connection = NULL;
    } else if (stream->connection) {
        servers_of(stream)->receive(stream->connection, parcel->bytes, parcel->size);
    } else if (!is_down(stream)) {
        stream_break(stream); /* nobody knows what these bytes belong to */
    }
}

static void arrive(struct world *world, struct task *task)
{
    struct parcel *parcel = (struct parcel *)task, **link = &parcel->stream->travelling;
    while (*link != parcel)
        link = &(*link)->next;
    *link = parcel->next;
    if (goes_up(parcel))
        at_server(world, parcel->stream, parcel);
    else
        at_client(parcel->stream, parcel);
    free(parcel);
}

static void post(struct stream *stream, enum way way, const char *bytes, size_t size)
{
    struct parcel *parcel = calloc(1, sizeof *parcel + size);
    if (!parcel)
        abort();
    parcel->stream = stream;
    parcel->way = way;
    parcel->size = size;
    if (size > 0)
        memcpy(parcel->bytes, bytes, size);
    parcel->next = stream->travelling;
    stream->travelling = parcel;
    mrt_time *gate = goes_up(parcel) ? &stream->up : &stream->down;
    *gate = later(stream, *gate);
    world_at(stream->client->world, &parcel->task, *gate, arrive);
    *gate += 1; /* the next one comes after it */
}

/* In one piece, or in two. */
static void post_bytes(struct stream *stream, enum way way, const char *bytes, size_t size)
{
    struct world *world = stream->client->world;
    size_t first = size;
    if (size > 1 && random_chance(&world->random, world->profile.split))
        first = 1 + (size_t)random_below(&world->random, (int64_t)size - 1);
    post(stream, way, bytes, first);
    if (first < size)
        post(stream, way, bytes + first, size - first);
}

static void lose(struct stream *stream, bool up, bool down)
{
    struct parcel **link = &stream->travelling, *parcel;
    while ((parcel = *link)) {
        if (goes_up(parcel) ? !up : !down) {
            link = &parcel->next;
            continue;
        }
        *link = parcel->next;
        world_cancel(stream->client->world, &parcel->task);
        free(parcel);
    }
}

/* ------------------------------------------------------------------ the server's side */

void stream_say(struct stream *stream, const char *bytes, size_t size)
{
    post_bytes(stream, DOWN_BYTES, bytes, size);
}

static void leave(struct stream *stream, enum way way)
{
    stream->connection = NULL;
    stream->deaf = true;
    post(stream, way, NULL, 0);
}

void stream_end(struct stream *stream)
{
    leave(stream, DOWN_END);
}

void stream_break(struct stream *stream)
{
    leave(stream, DOWN_BREAK);
}

void stream_shut(struct stream *stream)
{
    post(stream, DOWN_END, NULL, 0);
}

static void end_stream(struct world *world, struct stream *stream)
{
    lose(stream, true, false);
    if (random_below(&world->random, 2))
        stream_end(stream);
    else
        stream_break(stream);
}

void streams_end_client(struct client *client, int server)
{
    for (struct stream *stream = client->streams; stream; stream = stream->next)
        if (stream->server == server && !stream->refused && !stream->deaf)
            end_stream(client->world, stream);
}

void streams_end_server(struct world *world, int server)
{
    for (int i = 0; i < world->drawn.clients; i++)
        streams_end_client(&world->clients[i], server);
}

bool stream_hurry(struct stream *stream)
{
    bool any = false;
    struct world *world = stream->client->world;
    while (stream->travelling) {
        struct parcel *first = stream->travelling;
        for (struct parcel *parcel = first; parcel; parcel = parcel->next)
            if (parcel->task.timer.at < first->task.timer.at)
                first = parcel;
        world_cancel(world, &first->task);
        arrive(world, &first->task);
        any = true;
    }
    return any;
}

void stream_forget(struct stream *stream, bool silently)
{
    lose(stream, true, true);
    if (silently)
        stream->held_up_until = stream->client->world->now + STREAM_KEEP_ALIVE;
    leave(stream, DOWN_BREAK);
}

/* ------------------------------------------------------------------ the client's side */

static uint32_t state_of(const struct host_socket *socket)
{
    const struct stream *stream = (const struct stream *)socket;
    bool over = stream->ended || stream->broken || stream->refused;
    return EPOLLOUT | (stream->broken || stream->refused ? EPOLLERR | EPOLLHUP : 0) |
           (over || stream->used > 0 ? EPOLLIN : 0);
}

static void close_stream(struct host_socket *socket)
{
    struct stream *stream = (struct stream *)socket;
    stream->closed = true;
    stream->used = 0;
    if (stream->server >= 0 && !stream->refused)
        post(stream, UP_END, NULL, 0);
}

/* Delays all that goes to the server. */
static void put_off(struct stream *stream, mrt_time delay)
{
    for (struct parcel *parcel = stream->travelling; parcel; parcel = parcel->next)
        if (goes_up(parcel))
            world_at(stream->client->world, &parcel->task, parcel->task.timer.at + delay, arrive);
    stream->up += delay;
}

static void reset(struct world *world, struct stream *stream)
{
    lose(stream, random_below(&world->random, 2), true);
    if (world->profile.late > 0 && random_chance(&world->random, world->profile.late))
        put_off(stream, world_some(world, world->drawn.lease_us));
    if (stream->server >= 0)
        post(stream, UP_END, NULL, 0);
    stream->broken = true;
    stream->used = 0;
}

void streams_cut(struct world *world, struct client *client)
{
    if (random_below(&world->random, 2))
        return; /* cut_until holds everything up */
    client->reset_until = client->cut_until;
    client->cut_until = 0;
    for (struct stream *stream = client->streams; stream; stream = stream->next)
        if (!stream->closed && !stream->broken)
            reset(world, stream);
    host_ready(client);
}

void streams_hold_up(struct world *world, mrt_time until)
{
    const struct client *client =
        &world->clients[random_below(&world->random, world->drawn.clients)];
    int64_t count = 0;
    if (!client->engine)
        return;
    for (struct stream *stream = client->streams; stream; stream = stream->next)
        count += !stream->closed;
    int64_t chosen = random_below(&world->random, count);
    for (struct stream *stream = client->streams; stream; stream = stream->next)
        if (!stream->closed && chosen-- == 0)
            stream->held_up_until = until;
}

void streams_free(struct client *client)
{
    struct stream *stream;
    while ((stream = client->streams)) {
        client->streams = stream->next;
        lose(stream, true, true);
        free(stream->inbox);
        free(stream);
    }
}

/* ------------------------------------------------------------------ what the store calls */

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __real_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length);

static struct host_socket *socket_of(int fd)
{
    return host_current ? host_socket_of(host_current, fd) : NULL;
}

static struct stream *stream_of(int fd)
{
    return (struct stream *)socket_of(fd);
}

static int fail(int error)
{
    errno = error;
    return -1;
}

int __wrap_socket(int family, int type, int protocol)
{
    if (!host_current)
        return __real_socket(family, type, protocol);
    struct client *client = host_current->client;
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    stream->socket =
        (struct host_socket){.open_at = MRT_TIME_NEVER, .state = state_of, .close = close_stream};
    stream->client = client;
    stream->server = -1;
    stream->next = client->streams;
    client->streams = stream;
    return host_socket_new(host_current, &stream->socket);
}

/* A local connection is there immediately, whether or not its server runs. */
static int connect_locally(struct stream *stream)
{
    const struct client *client = stream->client;
    stream->server = client->index % (int)client->world->drawn.agents;
    stream->refused = is_down(stream);
    stream->socket.open_at = client->world->now;
    return stream->refused ? fail(ECONNREFUSED) : 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct stream *stream = stream_of(fd);
    struct sockaddr_in internet;
    if (!stream)
        return __real_connect(fd, address, length);
    struct world *world = stream->client->world;
    if (address->sa_family == AF_UNIX)
        return connect_locally(stream);
    memcpy(&internet, address, sizeof internet);
    stream->server = ntohs(internet.sin_port) - FIRST_PORT;
    stream->refused = world->now < stream->client->reset_until || is_down(stream);
    stream->socket.open_at = stream->refused ? world->now + 2 * MRT_MICROSECOND : later(stream, 0);
    return fail(EINPROGRESS);
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    const struct stream *stream = stream_of(fd);
    if (!stream)
        return __real_getsockopt(fd, level, option, value, size);
    if (option == SO_PEERCRED) {
        uid_t uid = stream->socket.uid ? (uid_t)stream->socket.uid : geteuid();
        const struct ucred credentials = {.pid = 1, .uid = uid, .gid = getegid()};
        memcpy(value, &credentials, sizeof credentials);
        return 0;
    }
    if (option == SO_PEERGROUPS) {
        *size = 0;
        return 0;
    }
    if (option == SO_PEERPIDFD) { /* and none of them is seen to end */
        errno = ENODATA;
        return -1;
    }
    *(int *)value = stream->refused ? ECONNREFUSED : stream->broken ? ECONNRESET : 0;
    return 0;
}

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
    const struct stream *stream = stream_of(fd);
    if (!stream)
        return __real_getpeername(fd, address, length);
    if (stream->client->world->now < stream->socket.open_at)
        return fail(ENOTCONN);
    return 0;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    struct host_socket *socket = socket_of(fd);
    struct stream *stream = (struct stream *)socket;
    if (!stream)
        return __real_send(fd, bytes, size, flags);
    if (socket->send)
        return socket->send(socket, bytes, size);
    if (stream->broken && !(flags & MSG_NOSIGNAL))
        raise(SIGPIPE);
    if (stream->broken)
        return fail(EPIPE);
    struct world *world = stream->client->world;
    if (size > 1 && random_chance(&world->random, world->profile.split))
        size = 1 + (size_t)random_below(&world->random, (int64_t)size);
    post_bytes(stream, UP_BYTES, bytes, size);
    return (ssize_t)size;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    struct host_socket *socket = socket_of(fd);
    struct stream *stream = (struct stream *)socket;
    if (!stream)
        return __real_recv(fd, bytes, size, flags);
    if (socket->receive)
        return socket->receive(socket, bytes, size);
    if (stream->broken)
        return fail(ECONNRESET);
    if (stream->used == 0)
        return stream->ended ? 0 : fail(EAGAIN);
    size = size < stream->used ? size : stream->used;
    memcpy(bytes, stream->inbox, size);
    stream->used -= size;
    memmove(stream->inbox, stream->inbox + size, stream->used);
    return (ssize_t)size;
}

/* Where the compiler knows how large the buffer is. */
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t size, size_t room, int flags);
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    return __wrap_recv(fd, bytes, size < room ? size : room, flags);
}
