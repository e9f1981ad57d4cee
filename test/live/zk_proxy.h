/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy that understands ZooKeeper's frames: it counts requests by their operation,
 * and can swallow a reply and cut the connection behind it, answer in the server's place,
 * falsify what it says, or stop passing bytes, so that a test needs no luck with time.
 */
#ifndef TEST_ZK_PROXY_H
#define TEST_ZK_PROXY_H

#include "live/proxy.h"

enum zk_opcode {
    ZK_OP_CREATE = 1,
    ZK_OP_DELETE = 2,
    ZK_OP_EXISTS = 3,
    ZK_OP_GET_DATA = 4,
    ZK_OP_SET_DATA = 5,
    ZK_OP_SYNC = 9,
    ZK_OP_PING = 11,
    ZK_OP_GET_CHILDREN = 12, /* with the directory's own state */
    ZK_OP_MULTI = 14,
    ZK_OP_CREATE2 = 15,
    ZK_OP_REMOVE_WATCHES = 18,
    ZK_OP_CREATE_CONTAINER = 19,
    ZK_OP_SET_WATCHES = 101,
    ZK_OPCODES = 128
};

PROXY_CALLS(zk_proxy)

/* Requests of this operation that have passed. */
unsigned zk_proxy_count(struct zk_proxy *proxy, enum zk_opcode opcode);
/* Events of watches that have passed. */
unsigned zk_proxy_events(struct zk_proxy *proxy);
void zk_proxy_reset_counts(struct zk_proxy *proxy);
/* The next reply of this operation is not passed on, and the connection is cut. */
void zk_proxy_swallow(struct zk_proxy *proxy, enum zk_opcode opcode);
/* Whether that has happened. */
bool zk_proxy_swallowed(struct zk_proxy *proxy);
/* The next request of this operation is not done, and answered with this error. */
void zk_proxy_refuse(struct zk_proxy *proxy, enum zk_opcode opcode, int code);
/* And so every one from now on. */
void zk_proxy_refuse_all(struct zk_proxy *proxy, enum zk_opcode opcode, int code);
/* Whether that has happened. */
bool zk_proxy_refused(struct zk_proxy *proxy);
/* The next answer to EXISTS names another session as the node's owner. */
void zk_proxy_falsify_owner(struct zk_proxy *proxy);
/* The next connection is told that its session is another one. */
void zk_proxy_falsify_session(struct zk_proxy *proxy);
/* Only pings are answered, until told otherwise. */
void zk_proxy_mute(struct zk_proxy *proxy, bool muted);
/* The operations that have passed since the counts were reset, in their order. */
size_t zk_proxy_trace(struct zk_proxy *proxy, enum zk_opcode *operations, size_t most);
/* The next request of this operation is not passed on, and the connection is cut. */
void zk_proxy_drop(struct zk_proxy *proxy, enum zk_opcode opcode);
/* Whether that has happened. */
bool zk_proxy_dropped(struct zk_proxy *proxy);
/* The next request of this operation that contains `part`, and all behind it, wait for
   zk_proxy_go. */
void zk_proxy_hold(struct zk_proxy *proxy, enum zk_opcode opcode, const char *part);
/* Whether one waits. */
bool zk_proxy_holds(struct zk_proxy *proxy);
/* Whether a request of this operation is that one, or waits behind it. */
bool zk_proxy_keeps(struct zk_proxy *proxy, enum zk_opcode opcode);
/* The next reply to such a request says `code` instead of what it said. */
void zk_proxy_rewrite(struct zk_proxy *proxy, enum zk_opcode opcode, const char *part, int code);
/* Whether all requests but syncs and pings that have passed are answered. */
bool zk_proxy_is_idle(struct zk_proxy *proxy);
/* Passes nothing on to the server until told otherwise. */
void zk_proxy_stall_up(struct zk_proxy *proxy, bool stalled);

#endif
