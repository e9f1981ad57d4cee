/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of libnats, and the thread that makes it. libnats connects by calls that wait, so
 * each connection is made on a thread of its own, and taken when it has ended. From then on the
 * library has no thread that reads: the store's descriptor wakes the store, which has the library
 * read and write. A connection that breaks is not mended by the library, which would send what it
 * had kept: the store makes another.
 *
 * Threads: what libnats calls (on_*) may come on threads of its own, so it changes what is atomic,
 * or guarded by the mutex. The library may hold a link longer than the store: each counts as a
 * user, and the last frees it.
 */
#ifndef MRT_STORE_NATS_LINK_H
#define MRT_STORE_NATS_LINK_H

#include "base/list.h"
#include "store/nats/relay.h"
#include "store/nats/uri.h"

#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct mrt_nats_link {
    _Atomic int users;
    TAILQ_ENTRY(mrt_nats_link) known; /* of all there are: link.c */
    uintptr_t number;                 /* no other link has it */
    natsConnection *connection;
    natsSubscription *inbox;
    int library; /* its descriptor */
    int socket;  /* to the server: the same, or the relay's */
    struct mrt_nats_relay relay;
    int epoll, event;    /* the store's; the event is not used once `dropped` */
    _Atomic bool writes; /* the library has something to send */
    bool is_full;        /* so has the relay */
    _Atomic bool inside; /* the store is publishing, and will send it */
    pthread_mutex_t mutex;
    bool dropped;
    char violation[320]; /* what the server has refused; "": nothing */
};

struct mrt_nats_connecting;

/* Begins to connect, with the host of this index first; `inbox` is subscribed to. A write to the
   descriptor `event` says that it has ended. NULL: no memory, no thread, or too many wait. */
struct mrt_nats_connecting *mrt_nats_connect(const struct mrt_nats_address *address,
                                             const char *secret, size_t host, const char *inbox,
                                             int epoll, int event);
/* Whether it has ended; then it is freed. `*link` NULL: no host could be connected to, and `text`
   and `error` say why. `host` is the one that answered. */
bool mrt_nats_connecting_take(struct mrt_nats_connecting *connecting, struct mrt_nats_link **link,
                              size_t *host, int *error, char *text, size_t size);
/* Its result is not wanted; waits for it no longer than this. A thread that still is in OpenSSL
   when the process ends loses memory there. */
void mrt_nats_connecting_drop(struct mrt_nats_connecting *connecting, mrt_time patience);
/* Has the library read what has come; NULL: fine, else why no more will come. */
const char *mrt_nats_link_read(struct mrt_nats_link *link);
/* Has the library send what it has; whether some of it is left. */
bool mrt_nats_link_write(struct mrt_nats_link *link);
/* Closes the connection. */
void mrt_nats_link_drop(struct mrt_nats_link *link);
/* In a forked child: closes descriptors. */
void mrt_nats_link_abandon(const struct mrt_nats_link *link);
/* Takes the text of what the server has refused; false: nothing. */
bool mrt_nats_link_violation(struct mrt_nats_link *link, char *text, size_t size);

#endif
