/*
 * The MariaDB dialect of the stores on SQL servers (sql_internal.h), through libmariadb's calls
 * that do not block:
 *   mariadb.c             the module, and the one connection
 *   mariadb_wire.c        requests sent and read
 *   mariadb_code.c        what an error's number means
 *   mariadb_schema.c      mortise init
 *   mariadb_statements.c, mariadb_uri.c  texts
 *
 * The library has one operation under way at a time, which it begins with a _start and goes on
 * with in a _cont when the socket is ready. So requests leave one after the other, each when
 * the one before it has been answered.
 */
#ifndef MRT_STORE_MARIADB_INTERNAL_H
#define MRT_STORE_MARIADB_INTERNAL_H

#include "store/mariadb_statements.h"
#include "store/mariadb_uri.h"
#include "store/sql_internal.h"

#include <mysql.h>

enum mrt_my_doing {
    MRT_MY_NOTHING,
    MRT_MY_CONNECTING,
    MRT_MY_QUERYING,
    MRT_MY_STORING, /* one statement's result */
    MRT_MY_GOING_ON /* to the next one's */
};

struct mrt_sql_driver {
    struct mrt_my_words words;
    MYSQL *connection;
    enum mrt_my_doing doing;
    int waits;        /* MYSQL_WAIT_ bits; 0: the operation is done */
    bool prepares;    /* the query under way begins with that of its statement */
    bool prepared;    /* the one statement that is prepared is, on this connection */
    bool crowded;     /* the last acquire found somebody in its queue */
    bool rolls_back;  /* the query under way is only that, after a failure */
    uint64_t backend; /* the server's number of the connection */
    char *text;       /* the query's, while it is under way */
    /* Results of the calls. */
    MYSQL *connected;
    MYSQL_RES *stored;
    int result;
};

/* mariadb.c */
/* A connection's object with all its options; NULL: no memory. */
MYSQL *mrt_my_new(const struct mrt_my_words *words);

/* mariadb_wire.c */
/* What of the connection's socket is waited for and ready, as MYSQL_WAIT_ bits; waits for it. */
int mrt_my_ready(const struct mrt_store *store);
void mrt_my_watch(struct mrt_store *store);

/* mariadb_access.c */
/* Tells the log what is wrong with who may use the store. On a connection of its own; blocks. */
void mrt_my_check_access(const struct mrt_store *store);

/* mariadb_schema.c */
int mrt_my_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
/* The same for form=row, which has one table. */
int mrt_my_init_rows(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
