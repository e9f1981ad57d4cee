/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side of its clients' streams: see agent_host.h. */
#include "agent_command.h"

#include "base/uri.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HURRY_TURNS 4 /* a connection is accepted, read, and answered */

static struct agent_socket *of(struct host_socket *socket)
{
    return (struct agent_socket *)socket;
}

/* As the kernel shows a local socket: the end of the other side is there beside what it has sent.
 */
static uint32_t state_of(const struct host_socket *socket)
{
    const struct agent_socket *own = (const struct agent_socket *)socket;
    return EPOLLOUT | (own->used > 0 || own->ended ? EPOLLIN : 0) |
           (own->ended ? EPOLLRDHUP | EPOLLHUP : 0);
}

static ssize_t send_to(struct host_socket *socket, const void *bytes, size_t size)
{
    struct agent_socket *own = of(socket);
    if (own->ended) {
        errno = EPIPE;
        return -1;
    }
    if (own->stream)
        stream_say(own->stream, bytes, size);
    return (ssize_t)size;
}

static ssize_t receive(struct host_socket *socket, void *bytes, size_t size)
{
    struct agent_socket *own = of(socket);
    if (own->used == 0) {
        errno = EAGAIN;
        return own->ended ? 0 : -1;
    }
    size = size < own->used ? size : own->used;
    memcpy(bytes, own->inbox, size);
    own->used -= size;
    memmove(own->inbox, own->inbox + size, own->used);
    own->taken += size;
    if (own->stream && own->stream->client->index >= RESP_INDEX)
        resp_taken(own->stream, own->taken);
    return (ssize_t)size;
}

static void shut(struct host_socket *socket)
{
    if (of(socket)->stream)
        stream_shut(of(socket)->stream);
}

static void forget(struct agent_socket *own)
{
    TAILQ_REMOVE(&own->agent->sockets, own, link);
    free(own->inbox);
    free(own);
}

/* Bytes that were not read break the other side. */
static void close_it(struct host_socket *socket)
{
    struct agent_socket *own = of(socket);
    if (own->stream && own->used > 0)
        stream_break(own->stream);
    else if (own->stream)
        stream_end(own->stream);
    forget(own);
}

void agent_disconnect(struct agent_host *agent)
{
    struct agent_socket *own, *next;
    TAILQ_FOREACH_SAFE (own, &agent->sockets, link, next) {
        own->stream = NULL;
        if (!own->accepted)
            forget(own);
    }
    streams_end_server(agent->client.world, agent->number);
    resp_end_streams(agent->client.world, agent->number);
}

/* ------------------------------------------------------------------ as a server of streams */

static bool is_down(struct world *world, int server)
{
    return !agent_of(world, server)->driver || agent_of(world, server)->dead;
}

static void *take(struct world *world, struct stream *stream)
{
    struct agent_host *agent = agent_of(world, stream->server);
    struct agent_socket *own = calloc(1, sizeof *own);
    if (!own)
        abort();
    own->socket = (struct host_socket){
        .state = state_of, .close = close_it, .send = send_to, .receive = receive, .shut = shut};
    own->socket.uid = resp_user(stream->client);
    own->agent = agent;
    own->stream = stream;
    TAILQ_INSERT_TAIL(&agent->sockets, own, link);
    return own;
}

static void take_bytes(void *connection, const char *bytes, size_t size)
{
    struct agent_socket *own = connection;
    if (own->room - own->used < size) {
        own->room = 2 * own->room + size;
        own->inbox = realloc(own->inbox, own->room);
        if (!own->inbox)
            abort();
    }
    memcpy(own->inbox + own->used, bytes, size);
    own->used += size;
    agent_ready(own->agent);
}

static void hang_up(void *connection)
{
    struct agent_socket *own = connection;
    own->ended = true;
    own->stream = NULL;
    agent_ready(own->agent);
}

const struct stream_server agent_streams = {
    .is_down = is_down, .accept = take, .receive = take_bytes, .hang_up = hang_up};

/* ------------------------------------------------------------------ the clients' side */

bool agent_hurry(struct stream *stream)
{
    bool any = false;
    for (int i = 0; i < HURRY_TURNS; i++) {
        any |= stream_hurry(stream);
        agent_run(agent_of(stream->client->world, stream->server));
    }
    return any | stream_hurry(stream);
}

static void write_uri(const struct world *world, char *text, size_t size)
{
    (void)world;
    snprintf(text, size, "agent:///agent.sock");
}

/* Everything is held up until the client's cut is over. */
static void cut(struct world *world, struct client *client)
{
    (void)world, (void)client;
}

extern const struct mrt_store_ops mrt_agent_store;
const struct host_kind agent_host_kind = {
    .ops = &mrt_agent_store, .write_uri = write_uri, .cut = cut, .free = streams_free};
