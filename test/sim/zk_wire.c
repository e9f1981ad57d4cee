/* SPDX-License-Identifier: Apache-2.0 */
/* See zk_wire.h. */
#include "zk_wire.h"

#include <stdlib.h>
#include <string.h>

static mrt_time later(const struct zk_wire *wire, mrt_time not_before)
{
    struct world *world = wire->client->world;
    mrt_time at = world->now + MRT_MICROSECOND + world_some(world, world->profile.delay_us);
    if (wire->client->cut_until > at)
        at = wire->client->cut_until; /* stalled: it is sent again and again until then */
    return at < not_before ? not_before : at;
}

/* ------------------------------------------------------------------ packets */

void zk_packet_free(struct zk_packet *packet)
{
    if (packet->request)
        zk_request_free(packet->request);
    free(packet->answer.names);
    free(packet);
}

static void arrive(struct world *world, struct task *task)
{
    struct zk_packet *packet = (struct zk_packet *)task, **link = &packet->wire->travelling;
    while (*link != packet)
        link = &(*link)->next;
    *link = packet->next;
    packet->next = NULL;
    packet->arrive(world, packet);
}

static struct zk_packet *post(struct zk_wire *wire, bool up,
                              void (*reach)(struct world *, struct zk_packet *))
{
    struct zk_packet *packet = calloc(1, sizeof *packet);
    if (!packet)
        abort();
    mrt_time *gate = up ? &wire->up : &wire->down;
    packet->wire = wire;
    packet->arrive = reach;
    packet->next = wire->travelling;
    wire->travelling = packet;
    *gate = later(wire, *gate);
    world_at(wire->client->world, &packet->task, *gate, arrive);
    *gate += 1; /* the next one comes after it */
    return packet;
}

/* Drops the messages that travel to the server and to the client. */
static void lose(struct zk_wire *wire, bool up, bool down,
                 void (*const upward[3])(struct world *, struct zk_packet *))
{
    struct zk_packet **link = &wire->travelling, *packet;
    while ((packet = *link)) {
        bool goes_up = packet->arrive == upward[0] || packet->arrive == upward[1] ||
                       packet->arrive == upward[2];
        if (goes_up ? !up : !down) {
            link = &packet->next;
            continue;
        }
        *link = packet->next;
        world_cancel(wire->client->world, &packet->task);
        zk_packet_free(packet);
    }
}

/* ------------------------------------------------------------------ to the client */

static void at_client(struct world *world, struct zk_packet *packet)
{
    struct zk_wire *wire = packet->wire;
    (void)world;
    if (wire->closed || wire->broken) {
        zk_packet_free(packet);
        return;
    }
    *wire->last = packet;
    wire->last = &packet->next;
    host_ready(wire->client);
}

static void end_at_client(struct world *world, struct zk_packet *packet)
{
    struct zk_wire *wire = packet->wire;
    (void)world;
    zk_packet_free(packet);
    wire->ended = true;
    if (!wire->closed)
        host_ready(wire->client);
}

static void opened(void *context, int code, int64_t session, int timeout_ms)
{
    struct zk_packet *packet = post(context, false, at_client);
    packet->kind = ZK_PACKET_OPENED;
    packet->code = code;
    packet->session = session;
    packet->timeout_ms = timeout_ms;
}

static void answered(void *context, const struct zk_answer *answer)
{
    struct zk_packet *packet = post(context, false, at_client);
    packet->kind = ZK_PACKET_ANSWER;
    packet->answer = *answer;
    packet->answer.names = NULL;
    if (!answer->names)
        return;
    size_t size = ((size_t)answer->name_count + 1) * sizeof *answer->names;
    packet->answer.names = malloc(size);
    if (!packet->answer.names)
        abort();
    memcpy(packet->answer.names, answer->names, size);
}

static void happened(void *context, int type, const char *path)
{
    struct zk_packet *packet = post(context, false, at_client);
    packet->kind = ZK_PACKET_EVENT;
    packet->type = type;
    snprintf(packet->path, sizeof packet->path, "%s", path);
}

static void closed(void *context)
{
    struct zk_wire *wire = context;
    post(wire, false, end_at_client);
    if (wire->connection)
        zk_hang_up(wire->connection, false);
    wire->connection = NULL;
    wire->deaf = true;
}

/* ------------------------------------------------------------------ to the server */

static void handshake_at_server(struct world *world, struct zk_packet *packet)
{
    struct zk_wire *wire = packet->wire;
    const struct zk_listener listener = {.opened = opened,
                                         .answered = answered,
                                         .happened = happened,
                                         .closed = closed,
                                         .context = wire};
    if (!wire->deaf) {
        struct zk_connection *connection =
            zk_open(zk_ensemble_of(world), wire->server, packet->session, packet->timeout_ms,
                    packet->seen, wire->client->peer, listener);
        if (wire->deaf) /* it was closed at once */
            zk_hang_up(connection, false);
        else
            wire->connection = connection;
    }
    zk_packet_free(packet);
}

static void request_at_server(struct world *world, struct zk_packet *packet)
{
    (void)world;
    if (packet->wire->connection) {
        zk_send(packet->wire->connection, packet->request);
        packet->request = NULL;
    }
    zk_packet_free(packet);
}

static void end_at_server(struct world *world, struct zk_packet *packet)
{
    struct zk_wire *wire = packet->wire;
    (void)world;
    zk_packet_free(packet);
    if (wire->connection)
        zk_hang_up(wire->connection, !wire->broken);
    wire->connection = NULL;
    wire->deaf = true;
}

static void (*const upward[3])(struct world *, struct zk_packet *) = {
    handshake_at_server, request_at_server, end_at_server};

/* ------------------------------------------------------------------ the client's side */

static uint32_t state_of(const struct host_socket *socket)
{
    const struct zk_wire *wire = (const struct zk_wire *)socket;
    return EPOLLOUT | (wire->refused || wire->broken || wire->shut ? EPOLLERR | EPOLLHUP : 0) |
           (zk_wire_readable(wire) ? EPOLLIN : 0);
}

static void close_wire(struct host_socket *socket);
static void shut_wire(struct host_socket *socket);

struct zk_wire *zk_wire_open(struct world *world, struct client *client, int server)
{
    struct zk_wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        abort();
    wire->socket = (struct host_socket){.state = state_of, .close = close_wire, .shut = shut_wire};
    wire->client = client;
    wire->server = server;
    wire->last = &wire->first;
    wire->next = client->wires;
    client->wires = wire;
    wire->refused = world->now < client->reset_until;
    wire->socket.open_at = wire->refused ? world->now + 2 * MRT_MICROSECOND : later(wire, 0);
    return wire;
}

void zk_wire_handshake(struct zk_wire *wire, int64_t session, int timeout_ms, int64_t seen)
{
    struct zk_packet *packet = post(wire, true, handshake_at_server);
    packet->session = session;
    packet->timeout_ms = timeout_ms;
    packet->seen = seen;
}

void zk_wire_send(struct zk_wire *wire, struct zk_request *request)
{
    post(wire, true, request_at_server)->request = request;
}

struct zk_packet *zk_wire_read(struct zk_wire *wire)
{
    struct zk_packet *packet = wire->first;
    if (!packet)
        return NULL;
    wire->first = packet->next;
    if (!wire->first)
        wire->last = &wire->first;
    return packet;
}

bool zk_wire_readable(const struct zk_wire *wire)
{
    return wire->first || wire->ended || wire->broken;
}

static void shut_wire(struct host_socket *socket)
{
    struct zk_wire *wire = (struct zk_wire *)socket;
    wire->shut = wire->ended = true;
    wire->socket.open_at = 0; /* an attempt to connect ends too */
}

static void close_wire(struct host_socket *socket)
{
    struct zk_wire *wire = (struct zk_wire *)socket;
    struct zk_packet *packet;
    wire->closed = true;
    while ((packet = zk_wire_read(wire)))
        zk_packet_free(packet);
    post(wire, true, end_at_server);
}

static void reset(struct world *world, struct zk_wire *wire)
{
    struct zk_packet *packet;
    lose(wire, random_below(&world->random, 2), true, upward);
    while ((packet = zk_wire_read(wire)))
        zk_packet_free(packet);
    post(wire, true, end_at_server);
    wire->broken = true;
}

void zk_wires_cut(struct world *world, struct client *client)
{
    bool silent = random_below(&world->random, 2);
    if (silent)
        return; /* cut_until holds everything up */
    client->reset_until = client->cut_until;
    client->cut_until = 0;
    for (struct zk_wire *wire = client->wires; wire; wire = wire->next)
        if (!wire->closed && !wire->broken)
            reset(world, wire);
    host_ready(client);
}

void zk_wires_free(struct client *client)
{
    struct zk_wire *wire;
    struct zk_packet *packet;
    while ((wire = client->wires)) {
        client->wires = wire->next;
        while ((packet = zk_wire_read(wire)))
            zk_packet_free(packet);
        while ((packet = wire->travelling)) {
            wire->travelling = packet->next;
            zk_packet_free(packet);
        }
        free(wire);
    }
}
