/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of the server's own, ?form=: instead of rows with a lease, a lock that the server keeps for
 * as long as a connection lasts. A form is
 *
 *   NAMED  a lock by name or number: PostgreSQL's advisory locks, MariaDB's GET_LOCK. Other
 *          programs take the same locks by the same calls.
 *   ROW    a row locked by SELECT ... FOR UPDATE in an open transaction, released by its commit
 *
 *   native/port.c       the port
 *   native/connection.c  tickets, each with a connection of its own
 *
 * A ticket is a connection. It tries the lock, and if it has to wait it waits in the server's call,
 * which only closing the connection ends. So the lock lives as long as the connection, on both
 * sides:
 *  - The server ends a connection on which nothing arrives for the lease and a second, and the
 *    lock with it.
 *  - Each RENEW makes a round trip on every connection that has a lock, and is answered when all
 *    are. A connection that stays silent for half a lease is dropped before that, and its ticket is
 *    gone.
 *  - A lock that was requested before the newest RENEW and granted after it is proven by one more
 *    round trip before the grant is reported.
 * Hence a client whose packets do not arrive gives up before its server does. A server that
 * ends the connection by itself frees the lock immediately, and the client learns of it when that
 * news arrives: the two holds may overlap. There is no fence to tell them apart by.
 *
 * A session is only a name here: one at a time, known to the client only.
 */
#ifndef MRT_STORE_SQL_NATIVE_NATIVE_H
#define MRT_STORE_SQL_NATIVE_NATIVE_H

#include "base/uri.h"
#include "store/sql/internal.h"

enum mrt_native_state {
    MRT_NATIVE_FREE,    /* of no ticket */
    MRT_NATIVE_ASKING,  /* tries, or waits */
    MRT_NATIVE_PROVING, /* granted, and to be proved first */
    MRT_NATIVE_HELD,
    MRT_NATIVE_LEAVING,
    MRT_NATIVE_BROKEN /* its wait has ended; the lock has to be requested anew */
};

struct mrt_native_link {
    TAILQ_ENTRY(mrt_native_link) link;
    struct mrt_sql_store store; /* the connection: connection.c */
    enum mrt_native_state state;
    struct mrt_id ticket;
    uint64_t weight, capacity;
    char *queue;                     /* of the ticket, or of the last one */
    struct mrt_sql_request *removal; /* of a ticket that is still being tried for */
    bool connected;                  /* as it was when last looked at */
    bool proves;                     /* the RENEW under way waits for it */
    bool used;                       /* since the last RENEW */
    bool fresh;                      /* a request has not been looked at yet */
    unsigned kills;                  /* under way */
};

struct mrt_native {
    TAILQ_HEAD(, mrt_native_link) links; /* the one used last is first */
    enum mrt_sql_kind first;             /* MRT_SQL_DO_NAMED or _ROW */
    const struct mrt_sql_hooks *hooks;   /* of its connections */
    struct mrt_id session;
    bool started;
    bool shown;       /* the server has shown a lock that it granted here */
    mrt_time renewed; /* when the newest RENEW came */
    bool untold;      /* a lock was lost, and memory to report it was lacking */
    struct mrt_sql_request *renewal, *stop;
};

/* Whether its locks can be shared. */
bool mrt_native_shares(const struct mrt_sql_store *store);

/* native/connection.c */
extern const struct mrt_sql_hooks mrt_native_hooks;
/* A connection for a ticket of this queue, or for none; NULL: no memory. */
struct mrt_native_link *mrt_native_link_take(struct mrt_sql_store *store, const char *queue);
struct mrt_native_link *mrt_native_link_of(struct mrt_sql_store *store, struct mrt_id ticket);
/* Sends the request on it as this step. */
void mrt_native_link_send(struct mrt_sql_store *store, struct mrt_native_link *link,
                          struct mrt_sql_request *request, enum mrt_native_step step, mrt_time now);
/* The same with a request of the link's own, on behalf of a command of this type; false: no
   memory. */
bool mrt_native_link_send_own(struct mrt_sql_store *store, struct mrt_native_link *link,
                              enum mrt_command_type type, enum mrt_native_step step, mrt_time now);
/* Gives the lock up. */
void mrt_native_link_leave(struct mrt_sql_store *store, struct mrt_native_link *link,
                           struct mrt_sql_request *request, mrt_time now);
void mrt_native_link_view(struct mrt_sql_store *store, const struct mrt_native_link *link,
                          struct mrt_sql_request *request, bool granted);
/* Closes the connection, and with it a wait; what was asked on it is answered. */
void mrt_native_link_end(struct mrt_sql_store *store, struct mrt_native_link *link, mrt_time now);
/* Reads what has arrived on the connection, and acts on it. */
void mrt_native_link_turn(struct mrt_sql_store *store, struct mrt_native_link *link, mrt_time now);
void mrt_native_link_free(struct mrt_sql_store *store, struct mrt_native_link *link);

#endif
