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

struct mrt_sql_driver {
    struct mrt_pg_connection_options words;
    PGconn *connection;
    bool prepared[MRT_PG_STATEMENT_COUNT];
    int64_t backend; /* the server's process */
    char version[160];
};

/* store.c */
/* A blocking connection that resolves names in pg_catalog only. The caller finishes it. After a
 * failure: NULL, or a connection that is not CONNECTION_OK. */
PGconn *mrt_pg_connect(const struct mrt_pg_connection_options *words);

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
