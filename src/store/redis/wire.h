/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to a Redis server: bytes out, replies in. It never blocks, and knows
 * nothing of locks. hiredis reads the replies; writing is ours, because hiredis's own
 * would end the process by SIGPIPE when the server has gone. TLS stands between the two: it is
 * CONNECTING until the handshake is done, so that nothing is said before the server is checked.
 *
 * Threads: none; calls on one connection come one at a time.
 */
#ifndef MRT_STORE_REDIS_WIRE_H
#define MRT_STORE_REDIS_WIRE_H

#include "base/traffic.h"
#include "store/redis/secure.h"
#include "store/redis/uri.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum mrt_redis_state { MRT_REDIS_CLOSED, MRT_REDIS_CONNECTING, MRT_REDIS_OPEN };

/* Zero it and set fd to -1 before its first use. */
struct mrt_redis_wire {
    int fd; /* -1: none */
    enum mrt_redis_state state;
    int epoll;       /* the epoll descriptor that watches it; -1: none */
    uint32_t events; /* as epoll knows them */
    redisReader *reader;
    size_t unread; /* bytes since the last whole reply */
    char *out;
    size_t sent, used, room;             /* of out */
    bool no_memory;                      /* a part of the output could not be queued */
    int error;                           /* errno of what broke the last connection; 0: its end */
    bool plain;                          /* it has no TLS, and the server has said nothing */
    bool shakes;                         /* the handshake is under way, or was when it ended */
    char fault[MRT_TLS_FAULT_SIZE];      /* of its TLS; "": none */
    struct mrt_tls *tls;                 /* NULL: none */
    struct mrt_redis_security *security; /* its owner's, as traffic */
    struct mrt_traffic *traffic; /* its owner's, which stays when it is closed; NULL: none */
};

struct mrt_redis_text {
    const char *text;
    size_t length;
};

static inline struct mrt_redis_text mrt_redis_text_of(const char *text)
{
    return (struct mrt_redis_text){text, strlen(text)};
}
/* Texts of a list that ends with NULL; how many. */
size_t mrt_redis_texts(struct mrt_redis_text *texts, size_t max, va_list list);

/* Why the last connection was of no use. */
const char *mrt_redis_wire_trouble(const struct mrt_redis_wire *wire);
/* Begins to connect; false: not even begun. With TLS the server's certificate has to be of `name`,
   a host's or an address. */
bool mrt_redis_wire_open(struct mrt_redis_wire *wire, const struct mrt_address *server,
                         const char *name, int epoll);
void mrt_redis_wire_close(struct mrt_redis_wire *wire);
/* Writes a command, to be sent by the next flush. */
void mrt_redis_wire_put(struct mrt_redis_wire *wire, const struct mrt_redis_text *words,
                        size_t count);
/* The same of texts that end with NULL. */
__attribute__((sentinel)) void mrt_redis_wire_words(struct mrt_redis_wire *wire, ...);
/* Writes the commands that log in on every connection; returns how many replies they will have. */
unsigned mrt_redis_wire_login(struct mrt_redis_wire *wire, const struct mrt_redis_address *address,
                              const char *secret);
/* Whether some of what was written has not been sent. */
bool mrt_redis_wire_is_sending(const struct mrt_redis_wire *wire);
/* Sends what can be sent; false: the connection has broken. */
bool mrt_redis_wire_flush(struct mrt_redis_wire *wire);

/* Goes on connecting, reads what has come; false: the connection has broken. */
bool mrt_redis_wire_receive(struct mrt_redis_wire *wire);
/* The next whole reply, to be freed by freeReplyObject; NULL: none yet. False: it is not
   the protocol. */
bool mrt_redis_wire_next(struct mrt_redis_wire *wire, redisReply **reply);
/* Reads what has come, and shows `take` each reply, also those before an end of the connection.
   False: the connection has broken, or `take` returned false: it is of no use. */
bool mrt_redis_wire_read(struct mrt_redis_wire *wire, mrt_time now,
                         bool (*take)(void *context, const redisReply *reply, mrt_time now),
                         void *context);
/* Waits until the connection is ready; false: not within the time. */
bool mrt_redis_wire_wait(struct mrt_redis_wire *wire, mrt_time deadline);

#endif
