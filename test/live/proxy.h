/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the proxies of all stores share: a thread, a poll, and for every connection a pair
 * of sockets with a buffer for each way. Connections can be cut, and bytes no longer passed on. A
 * protocol takes whole messages out of the buffers, looks at them and sends them on.
 *
 * A protocol's proxy begins with a struct proxy. Its two calls are made under the mutex, on the
 * proxy's thread; a false from one of them closes the pair.
 */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_PAIRS_MAX 64

struct proxy_way {
    int from, to; /* -1: that side has left */
    size_t length;
    unsigned char *buffer;
};

struct proxy_pair {
    struct proxy_way up, down; /* to the server, to the client */
    bool held;                 /* what is next waits for proxy_go */
    void *state;               /* the protocol's */
};

struct proxy;

struct proxy_protocol {
    size_t state_size; /* all zeros at first */
    bool (*pass_up)(struct proxy *proxy, struct proxy_pair *pair);
    bool (*pass_down)(struct proxy *proxy, struct proxy_pair *pair);
    /* Whether a pair whose client left while it was held is still of use; NULL: never. */
    bool (*outlives)(const struct proxy_pair *pair);
};

struct proxy {
    const struct proxy_protocol *protocol;
    int listener;
    uint8_t above; /* it listens at the address so far above 127.0.0.1; set before its start */
    uint16_t port, upstream;
    pthread_t thread;
    pthread_mutex_t mutex; /* what follows, and the protocol's own */
    bool stop, cut, stalled, stalled_up;
    unsigned connections;
    struct proxy_pair *pairs[PROXY_PAIRS_MAX];
};

/* Begins to work in front of 127.0.0.1:port. */
void proxy_start(struct proxy *proxy, const struct proxy_protocol *protocol, uint16_t port);
/* Ends the thread and closes all; the memory is the caller's. */
void proxy_stop(struct proxy *proxy);
uint16_t proxy_port(const struct proxy *proxy);
/* Connections that have been made through it. */
unsigned proxy_connections(struct proxy *proxy);
/* Cuts all connections. */
void proxy_cut(struct proxy *proxy);
/* Cuts all connections; those to come go to 127.0.0.1:port. */
void proxy_move(struct proxy *proxy, uint16_t port);
/* Passes nothing on, either way, and refuses no connection, until told otherwise. */
void proxy_stall(struct proxy *proxy, bool stalled);
/* Lets go on what is held. */
void proxy_go(struct proxy *proxy);

/* Under the mutex: reads and writes what both threads use. */
void proxy_set(struct proxy *proxy, bool *flag, bool value);
bool proxy_is(struct proxy *proxy, const bool *flag);
unsigned proxy_count(struct proxy *proxy, const unsigned *count);

/* For protocols: sends all, to nobody if that side has left; false: it could not. */
bool proxy_send(int fd, const void *bytes, size_t size);
/* Closes the client's side. */
void proxy_leave(struct proxy_pair *pair);
/* Takes so much off a buffer's beginning. */
void proxy_consume(struct proxy_way *way, size_t size);

/* The calls that all of them have, under a protocol's own name. */
#define PROXY_CALLS(kind)                                                      \
    struct kind;                                                               \
    struct kind *kind##_start(uint16_t port); /* in front of 127.0.0.1:port */ \
    void kind##_stop(struct kind *proxy);                                      \
    static inline uint16_t kind##_port(const struct kind *proxy)               \
    {                                                                          \
        return proxy_port((const struct proxy *)proxy);                        \
    }                                                                          \
    static inline unsigned kind##_connections(struct kind *proxy)              \
    {                                                                          \
        return proxy_connections((struct proxy *)proxy);                       \
    }                                                                          \
    static inline void kind##_cut(struct kind *proxy)                          \
    {                                                                          \
        proxy_cut((struct proxy *)proxy);                                      \
    }                                                                          \
    static inline void kind##_move(struct kind *proxy, uint16_t upstream)      \
    {                                                                          \
        proxy_move((struct proxy *)proxy, upstream);                           \
    }                                                                          \
    static inline void kind##_stall(struct kind *proxy, bool stalled)          \
    {                                                                          \
        proxy_stall((struct proxy *)proxy, stalled);                           \
    }                                                                          \
    static inline void kind##_go(struct kind *proxy)                           \
    {                                                                          \
        proxy_go((struct proxy *)proxy);                                       \
    }

#endif
