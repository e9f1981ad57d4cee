/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket is non-blocking from its creation, and is watched for writing only while
 * something waits to be written. With TLS, `out` becomes its output when the connection is open. A
 * connection that breaks is closed by its owner, which knows what was under way.
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

static size_t tls_output(const struct mrt_redis_wire *wire)
{
    const char *bytes;
    return wire->tls ? wire->security->ops->output(wire->tls, &bytes) : 0;
}

bool mrt_redis_wire_is_sending(const struct mrt_redis_wire *wire)
{
    return wire->used > 0 || tls_output(wire) > 0;
}

static bool watch(struct mrt_redis_wire *wire)
{
    bool connects = wire->state == MRT_REDIS_CONNECTING && !wire->shakes;
    bool writes = connects || tls_output(wire) > 0 ||
                  (wire->state == MRT_REDIS_OPEN && wire->sent < wire->used);
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

bool mrt_redis_wire_open(struct mrt_redis_wire *wire, const struct mrt_address *server,
                         const char *name, int epoll)
{
    const struct sockaddr *address = (const struct sockaddr *)&server->socket;
    wire->epoll = epoll;
    wire->error = 0;
    wire->fault[0] = '\0';
    wire->shakes = wire->plain = false;
    wire->reader = redisReaderCreate();
    wire->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (!wire->reader || wire->fd < 0) {
        wire->error = wire->fd < 0 ? errno : ENOMEM;
        mrt_redis_wire_close(wire);
        return false;
    }
    if (address->sa_family != AF_UNIX)
        keep_alive(wire->fd);
    bool secure = wire->security && wire->security->ops;
    wire->tls = secure ? mrt_redis_secure_begin(wire->security, name) : NULL;
    wire->error = secure && !wire->tls ? ENOMEM : 0;
    wire->state = secure ? MRT_REDIS_CONNECTING : MRT_REDIS_OPEN;
    if (!wire->error && connect(wire->fd, address, server->length) < 0) {
        wire->state = MRT_REDIS_CONNECTING;
        wire->error = errno == EINPROGRESS ? 0 : errno;
    }
    if (!wire->error && watch(wire))
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
    if (wire->tls)
        wire->security->ops->end(wire->tls);
    if (wire->traffic)
        wire->traffic->under_way = 0;
    struct mrt_redis_wire last = *wire;
    *wire = (struct mrt_redis_wire){.fd = -1, .traffic = last.traffic, .security = last.security};
    wire->error = last.error;
    wire->shakes = last.shakes;
    wire->plain = last.plain;
    memcpy(wire->fault, last.fault, sizeof wire->fault);
}

/* ----------------------------------------------------------------- sending */

static void put_bytes(struct mrt_redis_wire *wire, const char *bytes, size_t length)
{
    if (wire->room - wire->used < length) {
        size_t room = wire->room ? wire->room * 2 : 1024;
        while (room - wire->used < length)
            room *= 2;
        char *out = malloc(room);
        if (!out) {
            wire->no_memory = true;
            return;
        }
        if (wire->out) {
            memcpy(out, wire->out, wire->used);
            explicit_bzero(wire->out, wire->used);
            free(wire->out);
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

/* How many of the bytes were sent; -1: the connection has broken. */
static ssize_t send_bytes(const struct mrt_redis_wire *wire, const char *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t sent = send(wire->fd, bytes + done, length - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? (ssize_t)done : -1;
        done += (size_t)sent;
    }
    return (ssize_t)done;
}

static bool flush_plain(struct mrt_redis_wire *wire)
{
    if (wire->used == 0)
        return true;
    ssize_t sent = send_bytes(wire, wire->out + wire->sent, wire->used - wire->sent);
    wire->sent += sent > 0 ? (size_t)sent : 0;
    if (wire->sent == wire->used) {
        explicit_bzero(wire->out, wire->used); /* it may be a password */
        wire->sent = wire->used = 0;
    }
    return sent >= 0;
}

/* The fault of TLS; false, as what has one is of no use. */
static bool fail_tls(struct mrt_redis_wire *wire)
{
    snprintf(wire->fault, sizeof wire->fault, "%s", wire->security->ops->fault(wire->tls));
    return false;
}

/* Sends the output of TLS, also before the connection is open. */
static bool flush_tls(struct mrt_redis_wire *wire)
{
    const struct mrt_tls_ops *ops = wire->security->ops;
    const char *bytes;
    if (wire->state == MRT_REDIS_OPEN && wire->used > 0) {
        if (!ops->write(wire->tls, wire->out, wire->used))
            return fail_tls(wire);
        explicit_bzero(wire->out, wire->used);
        wire->used = 0;
    }
    size_t length = ops->output(wire->tls, &bytes);
    ssize_t sent = length > 0 ? send_bytes(wire, bytes, length) : 0;
    if (sent > 0)
        ops->sent(wire->tls, (size_t)sent);
    return true; /* if it has broken, that shows when it is read, behind an alert that says why */
}

bool mrt_redis_wire_flush(struct mrt_redis_wire *wire)
{
    if (wire->no_memory)
        return false; /* half a command must not go out */
    bool fine = true;
    if (wire->tls && (wire->shakes || wire->state == MRT_REDIS_OPEN))
        fine = flush_tls(wire);
    else if (wire->state == MRT_REDIS_OPEN)
        fine = flush_plain(wire);
    return fine && watch(wire);
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
    if (*wire->fault)
        return wire->fault;
    if (wire->shakes && wire->error == ETIMEDOUT)
        return "no answer to the handshake of TLS; does the server speak TLS at this port?";
    if (wire->shakes && !wire->error)
        return "the server ended the connection in the handshake of TLS";
    if (wire->error == EMSGSIZE)
        return "a reply of more than " TEXT(REPLY_MIB) " MiB; is it a Redis server?";
    if (!wire->error && wire->plain)
        return "the server ended the connection before its first answer; it may want TLS: "
               "rediss://";
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
    wire->shakes = wire->tls;
    wire->plain = !wire->tls && peer.ss_family != AF_UNIX;
    wire->state = wire->tls ? MRT_REDIS_CONNECTING : MRT_REDIS_OPEN;
    return true;
}

/* Goes on with the handshake. An alert that tells the server why it failed is sent if it can be. */
static bool shake(struct mrt_redis_wire *wire)
{
    enum mrt_tls_step step = wire->security->ops->shake(wire->tls);
    if (step == MRT_TLS_FAILED) {
        flush_tls(wire);
        return fail_tls(wire);
    }
    if (step == MRT_TLS_DONE) {
        wire->shakes = false;
        wire->state = MRT_REDIS_OPEN;
    }
    return true;
}

/* Bytes of the protocol of Redis. */
static bool feed(struct mrt_redis_wire *wire, const char *bytes, size_t length)
{
    if (redisReaderFeed(wire->reader, bytes, length) != REDIS_OK)
        return false;
    wire->unread += length;
    if (wire->unread <= (size_t)REPLY_MIB << 20)
        return true;
    wire->error = EMSGSIZE;
    return false;
}

static bool feed_tls(struct mrt_redis_wire *wire, const char *cipher, size_t length)
{
    const struct mrt_tls_ops *ops = wire->security->ops;
    char bytes[READ_SIZE];
    long got = 0;
    if (!ops->input(wire->tls, cipher, length) || (wire->shakes && !shake(wire)))
        return false;
    while (!wire->shakes && (got = ops->read(wire->tls, bytes, sizeof bytes)) > 0)
        if (!feed(wire, bytes, (size_t)got))
            return false;
    return got < 0 ? fail_tls(wire) : true;
}

/* Its first byte is an alert's, which is no reply's. */
static bool is_of_tls(const struct mrt_redis_wire *wire, const char *bytes, size_t length)
{
    return wire->unread == 0 && length > 1 && bytes[0] == 0x15 && bytes[1] == 0x03;
}

static bool take_bytes(struct mrt_redis_wire *wire, const char *bytes, size_t length)
{
    if (wire->tls)
        return feed_tls(wire, bytes, length);
    if (is_of_tls(wire, bytes, length))
        snprintf(wire->fault, sizeof wire->fault, "the server speaks TLS at this port: rediss://");
    wire->plain = false;
    return feed(wire, bytes, length);
}

bool mrt_redis_wire_receive(struct mrt_redis_wire *wire)
{
    char bytes[READ_SIZE];
    if (wire->state == MRT_REDIS_CONNECTING && !wire->shakes && !connected(wire))
        return false;
    if (wire->shakes && !shake(wire))
        return false;
    if (wire->state != MRT_REDIS_OPEN && !wire->shakes)
        return true;
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t got = recv(wire->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0 || !take_bytes(wire, bytes, (size_t)got))
            return false;
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
