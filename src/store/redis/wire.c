/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket is non-blocking from its creation, and is watched for writing only while
 * something waits to be written. A connection that breaks is closed by its owner, which knows what
 * was under way.
 */
#include "store/redis/wire.h"

#include "base/assert.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_SIZE 16384
#define READS_MAX 16 /* in one call, so that nobody keeps the loop to himself */
/* Of one reply, however it is made up: in memory it takes a multiple of that. */
#define REPLY_MIB 32
#define WORDS_MAX 8
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

static bool watch(struct mrt_redis_wire *wire)
{
    bool writes = wire->state == MRT_REDIS_CONNECTING || wire->sent < wire->used;
    uint32_t events = EPOLLIN | (writes ? (uint32_t)EPOLLOUT : 0);
    struct epoll_event event = {.events = events, .data.ptr = wire};
    if (events == wire->events)
        return true;
    int how = wire->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    wire->events = events;
    return wire->epoll < 0 || epoll_ctl(wire->epoll, how, wire->fd, &event) == 0;
}

/* A silent break of the way to the server is noticed within about ten seconds. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},  {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 4}, {IPPROTO_TCP, TCP_KEEPINTVL, 2},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

bool mrt_redis_wire_open(struct mrt_redis_wire *wire, const struct mrt_address *server, int epoll)
{
    const struct sockaddr *address = (const struct sockaddr *)&server->socket;
    wire->epoll = epoll;
    wire->error = 0;
    wire->reader = redisReaderCreate();
    wire->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!wire->reader || wire->fd < 0) {
        wire->error = wire->fd < 0 ? errno : ENOMEM;
        mrt_redis_wire_close(wire);
        return false;
    }
    if (address->sa_family != AF_UNIX)
        keep_alive(wire->fd);
    wire->state = MRT_REDIS_OPEN;
    if (connect(wire->fd, address, server->length) < 0) {
        wire->state = MRT_REDIS_CONNECTING;
        if (errno != EINPROGRESS) {
            wire->error = errno;
            mrt_redis_wire_close(wire);
            return false;
        }
    }
    if (watch(wire))
        return true;
    mrt_redis_wire_close(wire);
    return false;
}

void mrt_redis_wire_close(struct mrt_redis_wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd); /* which takes it out of the epoll descriptor too */
    if (wire->reader)
        redisReaderFree(wire->reader);
    if (wire->out)
        explicit_bzero(wire->out, wire->used); /* it began with a password */
    free(wire->out);
    if (wire->traffic)
        wire->traffic->under_way = 0;
    *wire = (struct mrt_redis_wire){.fd = -1, .traffic = wire->traffic, .error = wire->error};
}

/* ----------------------------------------------------------------- sending */

static void put_bytes(struct mrt_redis_wire *wire, const char *bytes, size_t length)
{
    if (wire->room - wire->used < length) {
        size_t room = wire->room ? wire->room * 2 : 1024;
        while (room - wire->used < length)
            room *= 2;
        char *out = realloc(wire->out, room);
        if (!out) {
            wire->no_memory = true;
            return;
        }
        wire->out = out;
        wire->room = room;
    }
    memcpy(wire->out + wire->used, bytes, length);
    wire->used += length;
}

static void put_number(struct mrt_redis_wire *wire, char mark, size_t number)
{
    char text[32];
    put_bytes(wire, text, (size_t)snprintf(text, sizeof text, "%c%zu\r\n", mark, number));
}

void mrt_redis_wire_put(struct mrt_redis_wire *wire, const struct mrt_redis_text *words,
                        size_t count)
{
    if (wire->traffic)
        mrt_traffic_sent(wire->traffic);
    put_number(wire, '*', count);
    for (size_t i = 0; i < count; i++) {
        put_number(wire, '$', words[i].length);
        put_bytes(wire, words[i].text, words[i].length);
        put_bytes(wire, "\r\n", 2);
    }
}

bool mrt_redis_wire_flush(struct mrt_redis_wire *wire)
{
    if (wire->no_memory)
        return false; /* half a command must not go out */
    while (wire->state == MRT_REDIS_OPEN && wire->sent < wire->used) {
        ssize_t sent = send(wire->fd, wire->out + wire->sent, wire->used - wire->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        wire->sent += (size_t)sent;
    }
    if (wire->sent == wire->used)
        wire->sent = wire->used = 0;
    return watch(wire);
}

size_t mrt_redis_texts(struct mrt_redis_text *texts, size_t max, va_list list)
{
    const char *text;
    size_t count = 0;
    while ((text = va_arg(list, const char *))) {
        MRT_ASSERT(count < max);
        texts[count++] = mrt_redis_text_of(text);
    }
    return count;
}

void mrt_redis_wire_words(struct mrt_redis_wire *wire, ...)
{
    struct mrt_redis_text words[WORDS_MAX];
    va_list list;
    va_start(list, wire);
    size_t count = mrt_redis_texts(words, WORDS_MAX, list);
    va_end(list);
    mrt_redis_wire_put(wire, words, count);
}

unsigned mrt_redis_wire_login(struct mrt_redis_wire *wire, const struct mrt_redis_address *address,
                              const char *secret)
{
    char database[16];
    if (secret[0] && address->user[0])
        mrt_redis_wire_words(wire, "AUTH", address->user, secret, NULL);
    else if (secret[0])
        mrt_redis_wire_words(wire, "AUTH", secret, NULL);
    if (address->database > 0) {
        snprintf(database, sizeof database, "%u", address->database);
        mrt_redis_wire_words(wire, "SELECT", database, NULL);
    }
    return (secret[0] ? 1U : 0U) + (address->database > 0 ? 1U : 0U);
}

/* --------------------------------------------------------------- receiving */

const char *mrt_redis_wire_trouble(const struct mrt_redis_wire *wire)
{
    if (wire->error == EMSGSIZE)
        return "a reply of more than " TEXT(REPLY_MIB) " MiB; is it a Redis server?";
    return wire->error ? strerror(wire->error) : "the server ended the connection";
}

static bool connected(struct mrt_redis_wire *wire)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer, size = sizeof(int);
    if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &wire->error, &size) < 0 || wire->error != 0)
        return false;
    if (getpeername(wire->fd, (struct sockaddr *)&peer, &length) < 0)
        return errno == ENOTCONN; /* not yet */
    wire->state = MRT_REDIS_OPEN;
    return true;
}

bool mrt_redis_wire_receive(struct mrt_redis_wire *wire)
{
    char bytes[READ_SIZE];
    if (wire->state == MRT_REDIS_CONNECTING && !connected(wire))
        return false;
    if (wire->state != MRT_REDIS_OPEN)
        return true;
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t got = recv(wire->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0 || redisReaderFeed(wire->reader, bytes, (size_t)got) != REDIS_OK)
            return false;
        wire->unread += (size_t)got;
        if (wire->unread > (size_t)REPLY_MIB << 20) {
            wire->error = EMSGSIZE;
            return false;
        }
        if ((size_t)got < sizeof bytes)
            break;
    }
    return mrt_redis_wire_flush(wire);
}

bool mrt_redis_wire_next(struct mrt_redis_wire *wire, redisReply **reply)
{
    void *found = NULL;
    bool fine = redisReaderGetReply(wire->reader, &found) == REDIS_OK;
    if (!fine)
        wire->error = EPROTO;
    *reply = found;
    if (found)
        wire->unread = 0;
    if (found && wire->traffic)
        mrt_traffic_answered(wire->traffic);
    return fine;
}

bool mrt_redis_wire_read(struct mrt_redis_wire *wire, mrt_time now,
                         bool (*take)(void *context, const redisReply *reply, mrt_time now),
                         void *context)
{
    redisReply *reply;
    bool fine = mrt_redis_wire_receive(wire);
    for (;;) {
        if (!mrt_redis_wire_next(wire, &reply))
            return false;
        if (!reply)
            return fine;
        bool useful = take(context, reply, now);
        freeReplyObject(reply);
        if (!useful)
            return false;
    }
}

bool mrt_redis_wire_wait(struct mrt_redis_wire *wire, mrt_time deadline)
{
    mrt_time left = deadline - mrt_time_now();
    struct pollfd poller = {.fd = wire->fd, .events = POLLIN};
    MRT_ASSERT(wire->epoll < 0);
    poller.events |= wire->events & EPOLLOUT ? POLLOUT : 0;
    int ready = left > 0 ? poll(&poller, 1, (int)(left / MRT_MILLISECOND) + 1) : 0;
    if (left > 0 && (ready >= 0 || errno == EINTR))
        return true;
    wire->error = left > 0 ? errno : ETIMEDOUT;
    return false;
}
