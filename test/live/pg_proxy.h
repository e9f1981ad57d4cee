/*
 * A proxy that understands PostgreSQL's messages as far as to know where a flight, the
 * messages of one transaction, ends, and which prepared statements it executes. It can have one
 * done and swallow the answer, keep one from the server, deliver one late, or stop passing bytes,
 * so that a test needs no luck with time.
 */
#ifndef TEST_PG_PROXY_H
#define TEST_PG_PROXY_H

#include "live/proxy.h"

/* What is to happen to the next flight with a statement of this name. */
enum pg_fate {
    PG_PASS,
    PG_SWALLOW, /* it is done; its answer is not passed on, and the connection is cut */
    PG_DROP,    /* it is not passed on, and the connection is cut */
    PG_HOLD     /* it and all behind it wait for pg_proxy_go, even if the client has left */
};

PROXY_CALLS(pg_proxy)

void pg_proxy_order(struct pg_proxy *proxy, enum pg_fate fate, const char *statement);
/* Whether the order has been carried out. */
bool pg_proxy_done(struct pg_proxy *proxy);
/* Flights that have passed. */
unsigned pg_proxy_flights(struct pg_proxy *proxy);

#endif
