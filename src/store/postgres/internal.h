/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PostgreSQL dialect of the stores on SQL servers (sql/internal.h), through libpq without
 * blocking and in pipeline mode:
 *   store.c             the module, and the one connection
 *   wire.c        requests sent and read
 *   code.c        what an SQLSTATE means
 *   schema.c      mortise init
 *   statements.c, uri.c  texts
 *
 * A request is its statements and one Sync, sent in one piece. Requests are answered in the order
 * sent; none waits for another's answer.
 */
#ifndef MRT_STORE_POSTGRES_INTERNAL_H
#define MRT_STORE_POSTGRES_INTERNAL_H

#include "store/postgres/statements.h"
#include "store/postgres/uri.h"
#include "store/sql/internal.h"

#include <libpq-fe.h>

/* The state of a request that failed by a fault which a statement has worded. */
#define MRT_PG_FAULT_STATE "MRT01"

struct mrt_sql_driver {
    struct mrt_pg_connection_options words;
    PGconn *connection;
    bool prepared[MRT_PG_STATEMENT_COUNT];
    int64_t backend; /* the server's process */
    uint64_t flights;
    char version[320];
    uint64_t
        reply_from; /* received when a part of the reply under way was first seen; 0: not yet */
};

/* store.c */
/* Bytes that have come, as the system counts them for TCP. 0 on a local socket: whoever owns its
   directory is trusted with this machine's memory. */
uint64_t mrt_pg_received(const PGconn *connection);
/* Executes statements and gives the last result, or that of the one that failed. Blocks. NULL after
   a failure; *fault: MRT_SQL_REPLY_TOO_LONG, or NULL, and libpq says why. */
PGresult *mrt_pg_execute(PGconn *connection, const char *text, const char **fault);
/* A blocking connection, in connect=, and connect= and lease= more for each further host. It leads
   names astray until search_path is set, for a transaction: it may be a pooler's. The caller
   finishes it. After a failure: NULL, and *fault says why; or a connection that is not
   CONNECTION_OK. */
PGconn *mrt_pg_connect(const struct mrt_pg_connection_options *words,
                       const struct mrt_sql_address *address, const char **fault);

/* access.c */
/* Logs what is wrong with the rights of users in the store. On a connection of its own; blocks. */
void mrt_pg_check_access(const struct mrt_sql_store *store);

/* code.c */
/* The SQLSTATE in a connection's error message of verbosity VERBOSE, or "". */
void mrt_pg_code_in(const char *message, char sqlstate[6]);

/* schema.c */
int mrt_pg_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
/* The same for form=row, which has one table. */
int mrt_pg_init_rows(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
