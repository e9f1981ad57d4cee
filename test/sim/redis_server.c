/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a fake Redis server. */
#include "redis_server.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32

/* ------------------------------------------------------------------ channels */

static struct redis_channel *find_channel(const struct redis_connection *connection,
                                          struct slice name)
{
    struct redis_channel *channel = connection->channels;
    while (channel && !slice_equal(channel->name, name))
        channel = channel->next;
    return channel;
}

static void add_channel(struct redis_connection *connection, struct slice name)
{
    struct redis_channel *channel = calloc(1, sizeof *channel);
    if (!channel)
        abort();
    channel->name = (struct slice){slice_copy(name), name.size};
    channel->next = connection->channels;
    connection->channels = channel;
    connection->channel_count++;
}

static void drop_channel(struct redis_connection *connection, struct redis_channel *channel)
{
    struct redis_channel **link = &connection->channels;
    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    connection->channel_count--;
    free((void *)(uintptr_t)channel->name.bytes);
    free(channel);
}

void redis_subscribe(const struct redis_call *call, bool on)
{
    struct redis_connection *connection = call->connection;
    struct slice name = call->words[1];
    struct redis_channel *channel = find_channel(connection, name);
    if (on && !channel)
        add_channel(connection, name);
    else if (!on && channel)
        drop_channel(connection, channel);
    reply_mark(call->reply, '*', 3);
    reply_text(call->reply, slice_of(on ? "subscribe" : "unsubscribe"));
    reply_text(call->reply, name);
    reply_mark(call->reply, ':', connection->channel_count);
}

static void flush(struct redis_connection *connection)
{
    if (connection->said.used > 0 && connection->stream)
        stream_say(connection->stream, connection->said.bytes, connection->said.used);
    connection->said.used = 0;
}

void redis_publish(struct redis_server *server, struct slice channel, struct slice message,
                   struct reply *reply)
{
    int64_t heard = 0;
    struct redis_connection *connection;
    for (connection = server->connections; connection; connection = connection->next) {
        if (!find_channel(connection, channel))
            continue;
        heard++;
        reply_mark(&connection->said, '*', 3);
        reply_text(&connection->said, slice_of("message"));
        reply_text(&connection->said, channel);
        reply_text(&connection->said, message);
        flush(connection);
    }
    reply_mark(reply, ':', heard);
}

/* ------------------------------------------------------------------ connections */

void *redis_accept(struct world *world, struct stream *stream)
{
    struct redis_world *redis = redis_of(world);
    struct redis_server *server = &redis->servers[stream->server];
    struct redis_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        abort();
    connection->server = server;
    connection->stream = stream;
    connection->peer = stream->client->peer;
    connection->id = ++server->next_id;
    connection->next = server->connections;
    server->connections = connection;
    return connection;
}

static void free_connection(struct redis_connection *connection)
{
    struct redis_connection **link = &connection->server->connections;
    while (*link != connection)
        link = &(*link)->next;
    *link = connection->next;
    while (connection->channels)
        drop_channel(connection, connection->channels);
    free(connection->inbox.bytes);
    free(connection->said.bytes);
    free((void *)(uintptr_t)connection->last_set.bytes);
    free(connection);
}

/* A server that stands still reads later the data that it has not read yet, and the end behind it.
 */
void redis_hang_up(void *context)
{
    struct redis_connection *connection = context;
    connection->stream = NULL;
    if (connection->server->frozen_until <= connection->server->redis->world->now)
        free_connection(connection);
}

int redis_kill(struct redis_server *server, int64_t id, const struct peer *peer)
{
    int count = 0;
    for (struct redis_connection *c = server->connections; c; c = c->next)
        if ((peer ? c->peer == peer : c->id == id) && !c->closing) {
            c->closing = true;
            count++;
        }
    return count;
}

/* Frees killed connections, once no request works on them. */
void redis_bury_killed(struct redis_server *server)
{
    struct redis_connection *connection = server->connections, *next;
    for (; connection; connection = next) {
        next = connection->next;
        if (!connection->closing)
            continue;
        if (connection->stream)
            stream_end(connection->stream);
        free_connection(connection);
    }
}

void redis_disconnect_all(struct redis_server *server, bool silently)
{
    while (server->connections) {
        struct redis_connection *connection = server->connections;
        if (connection->stream)
            stream_forget(connection->stream, silently);
        free_connection(connection);
    }
}

/* ------------------------------------------------------------------ requests */

/* A line that ends at or before the end, as a number behind its mark; NULL: there is none yet. */
static const char *read_mark(const char *at, const char *end, char mark, int64_t *number)
{
    const char *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (!line)
        return NULL;
    if (*at != mark)
        abort(); /* no client of ours may say that */
    *number = 0;
    while (++at < line && *at >= '0' && *at <= '9')
        *number = *number * 10 + (*at - '0');
    return line + 1;
}

/* The words of the request at the front; its length, or 0: it is not whole yet. */
static size_t read_request(const struct reply *inbox, struct slice words[WORDS_MAX], size_t *count)
{
    const char *at = inbox->bytes, *end = inbox->bytes + inbox->used;
    int64_t total, size;
    at = read_mark(at, end, '*', &total);
    if (at && total > WORDS_MAX)
        abort();
    for (*count = 0; at && (int64_t)*count < total; ++*count) {
        at = read_mark(at, end, '$', &size);
        if (!at || end - at < size + 2)
            return 0;
        words[*count] = (struct slice){at, (size_t)size};
        at += size + 2;
    }
    return at ? (size_t)(at - inbox->bytes) : 0;
}

/* Any command may not be allowed; a script is one. */
static bool refuse(struct redis_connection *connection)
{
    struct world *world = connection->server->redis->world;
    const struct client *client = connection->peer->client;
    if (!client || !lone_takes(world, FAULT_REFUSED, client))
        return false;
    reply_line(&connection->said, '-', "NOPERM by chance");
    return true;
}

static void do_all(struct redis_connection *connection)
{
    struct redis_server *server = connection->server;
    struct world *world = server->redis->world;
    struct slice words[WORDS_MAX];
    size_t count, size;
    while (connection->inbox.used > 0 && !connection->closing &&
           (size = read_request(&connection->inbox, words, &count)) > 0) {
        world->operations++;
        world->server_changed = true;
        if (!refuse(connection))
            redis_do(&(struct redis_call){.server = server,
                                          .connection = connection,
                                          .words = words,
                                          .count = count,
                                          .reply = &connection->said});
        connection->inbox.used -= size;
        memmove(connection->inbox.bytes, connection->inbox.bytes + size, connection->inbox.used);
    }
    flush(connection);
    redis_bury_killed(server);
}

void redis_receive(void *context, const char *bytes, size_t size)
{
    struct redis_connection *connection = context;
    reply_bytes(&connection->inbox, bytes, size);
    if (connection->server->frozen_until <= connection->server->redis->world->now)
        do_all(connection);
}

void redis_catch_up(struct redis_server *server)
{
    int64_t done = 0, most = server->next_id;
    while (done < most) { /* the one with the next number, because any may have been killed */
        struct redis_connection *found = NULL;
        for (struct redis_connection *c = server->connections; c; c = c->next)
            if (c->id > done && (!found || c->id < found->id))
                found = c;
        if (!found)
            break;
        done = found->id;
        bool over = !found->stream;
        if (over)
            found->closing = false;
        do_all(found);
        for (struct redis_connection *c = over ? server->connections : NULL, *next; c; c = next) {
            next = c->next;
            if (c->id == done)
                free_connection(c);
        }
    }
}
