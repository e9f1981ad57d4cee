/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy that understands Redis's protocol: it keeps what is asked, and can lose a
 * reply, answer in the server's place, hold a request back until its client has long
 * gone, or stop passing bytes, so that a test needs no luck with time.
 *
 * An order applies once, to the next request that contains `part`; `part` is any text of it: a key,
 * a command's name, a script's digest.
 */
#ifndef TEST_REDIS_PROXY_H
#define TEST_REDIS_PROXY_H

#include "live/proxy.h"

enum redis_order {
    REDIS_SWALLOW, /* it is done; its reply is lost, and the connection is cut */
    REDIS_ANSWER,  /* it is not done, and answered with `text`, as "-LOADING x" */
    REDIS_HOLD     /* it and all behind it on its connection wait for redis_proxy_go, also when
                      the client has closed that connection */
};

PROXY_CALLS(redis_proxy)

void redis_proxy_order(struct redis_proxy *proxy, enum redis_order order, const char *part,
                       const char *text);
/* Whether the newest order has been carried out; a held request: has come. */
bool redis_proxy_done(struct redis_proxy *proxy);
/* How many requests with this in them have come since the start or the last forget. */
unsigned redis_proxy_seen(struct redis_proxy *proxy, const char *part);
void redis_proxy_forget(struct redis_proxy *proxy);
/* Drops what the server pushes, until told otherwise. */
void redis_proxy_drop_pushes(struct redis_proxy *proxy, bool drop);

#endif
