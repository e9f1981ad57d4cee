/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy that understands PostgreSQL's and MySQL's messages as far as to know where a flight, the
 * messages of one transaction, ends, and which prepared statements or text it executes. It can have
 * one done and swallow the answer, keep one from the server, deliver one late, refuse a COMMIT, or
 * stop passing bytes, so that a test needs no luck with time.
 */
#ifndef TEST_SQL_PROXY_H
#define TEST_SQL_PROXY_H

#include "live/proxy.h"

/* The order for the next flight with a statement of this name, in capitals, or with this text. */
enum sql_fate {
    SQL_PASS,
    SQL_SWALLOW, /* it is done; its answer is not passed on, and the connection is cut */
    SQL_DROP,    /* it is not passed on, and the connection is cut */
    SQL_HOLD,    /* it and all behind it wait for sql_proxy_go, even if the client has left */
    SQL_LATE,    /* the same, and the client's connection is cut */
    SQL_REFUSE   /* sql_proxy_refuse */
};

PROXY_CALLS(sql_proxy)
struct sql_proxy *sql_proxy_start_mysql(uint16_t port);

void sql_proxy_order(struct sql_proxy *proxy, enum sql_fate fate, const char *statement);
/* The same for MySQL alone: all of the answer is passed on but its end, which a transaction's
   COMMIT is answered with. That is kept until sql_proxy_go, and then it is this error. The request
   is `done` all the same; or the server is told to roll back instead of that COMMIT. */
void sql_proxy_refuse(struct sql_proxy *proxy, const char *statement, unsigned number, bool done);
/* Whether the order has been carried out; of a refusal, whether the end has come and is kept. */
bool sql_proxy_done(struct sql_proxy *proxy);
/* Flights that have passed. */
unsigned sql_proxy_flights(struct sql_proxy *proxy);

#endif
