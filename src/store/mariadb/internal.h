/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MariaDB dialect of the stores on SQL servers (sql/internal.h), through libmariadb's calls
 * that do not block:
 *   store.c             the module, and the one connection
 *   wire.c        requests sent and read; text.c for what is sent
 *   code.c        what an error's number means
 *   schema.c      mortise init
 *   statements.c, uri.c  texts
 *
 * The library has one operation under way at a time, which it begins with a _start and goes on
 * with in a _cont when the socket is ready.
 */
#ifndef MRT_STORE_MARIADB_INTERNAL_H
#define MRT_STORE_MARIADB_INTERNAL_H

#include "store/mariadb/statements.h"
#include "store/mariadb/uri.h"
#include "store/sql/driver.h"
#include "store/sql/internal.h"

#include <mysql.h>

enum mrt_mariadb_doing {
    MRT_MARIADB_NOTHING,
    MRT_MARIADB_CONNECTING,
    MRT_MARIADB_SENDING,
    MRT_MARIADB_SENT,    /* and no answer has been read: another request may be sent */
    MRT_MARIADB_READING, /* whether a statement was refused */
    MRT_MARIADB_STORING, /* its result */
    MRT_MARIADB_GOING_ON /* to the next one's */
};

/* Guards against a server that the library would trust; of a connection, and outlives it. */
struct mrt_mariadb_guard {
    char *no_version; /* before the greeting */
    size_t received;  /* bytes of the reply that is read; more than MRT_SQL_REPLY_MAX end it */
};

struct mrt_sql_driver {
    struct mrt_mariadb_connection_options words;
    MYSQL *connection;
    struct mrt_mariadb_guard guard;
    enum mrt_mariadb_doing doing;
    int waits;        /* MYSQL_WAIT_ bits; 0: the operation is done */
    bool prepared;    /* the one prepared statement exists on this connection */
    bool unprepared;  /* the server refused to prepare it: it has no room for one more */
    bool crowded;     /* the last acquire found a ticket in its queue */
    bool rolls_back;  /* the request under way is only that, after a failure */
    uint64_t backend; /* the server's number of the connection */
    char *text;       /* while it is being sent */
    char version[160];
    /* Results of the calls. */
    MYSQL *connected;
    MYSQL_RES *stored;
    my_bool refused;
    int result;
};

/* store.c */
/* A connection's object with all its options; NULL: no memory. */
MYSQL *mrt_mariadb_new(const struct mrt_mariadb_connection_options *words,
                       struct mrt_mariadb_guard *guard);
/* The same, and connects; blocks. NULL: no memory. */
MYSQL *mrt_mariadb_connect(const struct mrt_mariadb_connection_options *words, bool *connected,
                           struct mrt_mariadb_guard *guard);
/* Allows NULL. */
void mrt_mariadb_close(MYSQL *connection, struct mrt_mariadb_guard *guard);
/* Whether it lacks the encryption that it must have: then nothing is sent on it. */
bool mrt_mariadb_is_open(MYSQL *connection, const struct mrt_mariadb_connection_options *words);
/* The connection's error for people, with the system's reason in words. */
void mrt_mariadb_error_line(MYSQL *connection, char *line, size_t size);
/* The end of a sentence about this error of connecting, or "". */
const char *mrt_mariadb_tls_advice(const struct mrt_mariadb_connection_options *words,
                                   unsigned code);

/* text.c */
/* Whether it is an acquire that expects an empty queue. */
bool mrt_mariadb_is_alone(const struct mrt_sql_request *request);
/* The whole request as one text; NULL: no memory. */
char *mrt_mariadb_text(const struct mrt_sql_store *store, const struct mrt_sql_request *request);

/* wire.c */
/* Returns the events that the library waits for and that are ready on the connection's socket, as
   MYSQL_WAIT_ bits. The second registers the events that it waits for. */
int mrt_mariadb_ready(const struct mrt_sql_store *store);
void mrt_mariadb_watch(struct mrt_sql_store *store);

/* access.c */
/* Reports faults of access rights in the log. On a connection of its own; blocks. */
void mrt_mariadb_check_access(const struct mrt_sql_store *store);

/* schema.c */
int mrt_mariadb_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
/* The same for form=row, which has one table. */
int mrt_mariadb_init_rows(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
