/*
 * A proxy that understands ZooKeeper's frames: it counts requests by their operation,
 * and can swallow a reply and cut the connection behind it, or stop passing bytes, so
 * that a test needs no luck with time. It runs on a thread of its own.
 */
#ifndef TEST_ZK_PROXY_H
#define TEST_ZK_PROXY_H

#include <stdbool.h>
#include <stdint.h>

enum zk_opcode {
    ZK_OP_CREATE = 1,
    ZK_OP_DELETE = 2,
    ZK_OP_EXISTS = 3,
    ZK_OP_GET_DATA = 4,
    ZK_OP_GET_CHILDREN = 8,
    ZK_OP_SYNC = 9,
    ZK_OP_PING = 11,
    ZK_OP_CREATE2 = 15,
    ZK_OP_CREATE_CONTAINER = 19,
    ZK_OP_SET_WATCHES = 101,
    ZK_OPCODES = 128
};

struct zk_proxy;

/* In front of 127.0.0.1:port. */
struct zk_proxy *zk_proxy_start(uint16_t port);
uint16_t zk_proxy_port(const struct zk_proxy *proxy);
/* Requests of this operation that have passed. */
unsigned zk_proxy_count(struct zk_proxy *proxy, enum zk_opcode opcode);
/* Connections that have been made through it. */
unsigned zk_proxy_connections(struct zk_proxy *proxy);
void zk_proxy_reset_counts(struct zk_proxy *proxy);
/* The next reply of this operation is not passed on, and the connection is cut. */
void zk_proxy_swallow(struct zk_proxy *proxy, enum zk_opcode opcode);
/* Whether that has happened. */
bool zk_proxy_swallowed(struct zk_proxy *proxy);
/* Cuts all connections. */
void zk_proxy_cut(struct zk_proxy *proxy);
/* Passes nothing on, either way, and refuses no connection, until told otherwise. */
void zk_proxy_stall(struct zk_proxy *proxy, bool stalled);
void zk_proxy_stop(struct zk_proxy *proxy);

#endif
