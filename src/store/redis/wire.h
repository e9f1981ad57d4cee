/*
 * One connection to a Redis server: bytes out, replies in. It never blocks, and knows
 * nothing of locks. hiredis reads the replies; writing is ours, because hiredis's own
 * would end the process by SIGPIPE when the server has gone.
 *
 * Threads: none; calls on one connection come one at a time.
 */
#ifndef MRT_STORE_REDIS_WIRE_H
#define MRT_STORE_REDIS_WIRE_H

#include "base/traffic.h"
#include "store/redis/uri.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

enum mrt_redis_state { MRT_REDIS_CLOSED, MRT_REDIS_CONNECTING, MRT_REDIS_OPEN };

/* Zero it and set fd to -1 before its first use. */
struct mrt_redis_wire {
    int fd; /* -1: none */
    enum mrt_redis_state state;
    int epoll;       /* that polls it */
    uint32_t events; /* as epoll knows them */
    redisReader *reader;
    size_t unread; /* bytes since the last whole reply */
    char *out;
    size_t sent, used, room;     /* of out */
    bool no_memory;              /* what was to be sent has not all been noted */
    int error;                   /* errno of what broke the last connection; 0: its end */
    struct mrt_traffic *traffic; /* its owner's, which stays when it is closed; NULL: none */
};

struct mrt_redis_text {
    const char *text;
    size_t length;
};

/* Why the last connection was of no use. */
const char *mrt_redis_wire_trouble(const struct mrt_redis_wire *wire);
/* Begins to connect; false: not even begun. */
bool mrt_redis_wire_open(struct mrt_redis_wire *wire, const struct mrt_address *server, int epoll);
void mrt_redis_wire_close(struct mrt_redis_wire *wire);
/* Notes a command to be sent by the next flush. */
void mrt_redis_wire_put(struct mrt_redis_wire *wire, const struct mrt_redis_text *words,
                        size_t count);
/* Sends what can be sent; false: the connection has broken. */
bool mrt_redis_wire_flush(struct mrt_redis_wire *wire);
/* Goes on connecting, reads what has come; false: the connection has broken. */
bool mrt_redis_wire_receive(struct mrt_redis_wire *wire);
/* The next whole reply, to be freed by freeReplyObject; NULL: none yet. False: it is not
   the protocol. */
bool mrt_redis_wire_next(struct mrt_redis_wire *wire, redisReply **reply);

/* Notes what has to be said first on every connection; how many replies it will have. */
unsigned mrt_redis_wire_login(struct mrt_redis_wire *wire, const struct mrt_redis_address *address,
                              const char *secret);

#endif
