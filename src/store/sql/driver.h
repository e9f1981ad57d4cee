/* SPDX-License-Identifier: Apache-2.0 */
/* The part of each dialect: its wire, its statements, and what its errors mean. */
#ifndef MRT_STORE_SQL_DRIVER_H
#define MRT_STORE_SQL_DRIVER_H

#include "store/sql/internal.h"

/* Bytes of a server's reply: a longer one ends the connection. */
#define MRT_SQL_REPLY_MAX ((size_t)64 << 20)
#define MRT_SQL_REPLY_TOO_LONG "a reply of more than 64 MiB"

/* How to handle an error of the server. */
enum mrt_sql_outcome {
    MRT_SQL_FAILED,         /* nothing was done, and nothing will be */
    MRT_SQL_AGAIN,          /* nothing was done: the same once more */
    MRT_SQL_WITHOUT_NOTIFY, /* nothing was done, because notifying has failed */
    MRT_SQL_ELSEWHERE,      /* nothing was done: another server must be used */
    MRT_SQL_PERHAPS         /* it may have been done */
};
struct mrt_sql_code {
    const char *state; /* or the beginning of several */
    enum mrt_sql_outcome outcome;
    int error;
    const char *advice; /* NULL: the server's own words are enough */
};

/* The product's name, and whether its server notifies waiters and observers. */
extern const char mrt_sql_product[];
extern const bool mrt_sql_notifies;
/* Whether this store is notified. A pooler gives the next notification to somebody else. */
static inline bool mrt_sql_is_notified(const struct mrt_sql_store *store)
{
    return mrt_sql_notifies && !store->pooled;
}
/* Whether a REMOVE may be acknowledged before it is on disk (asynchronous commit). */
extern const bool mrt_sql_async_commit;
/* Whether there is a MRT_SQL_DO_REMOVE_LAST. */
extern const bool mrt_sql_removes_last;
/* The version of the schema. mortise init makes it, from any older version too. */
extern const int mrt_sql_schema_version;
/* Whether its locks by name can be shared. */
extern const bool mrt_sql_named_shares;
/* Whether the server shows which rows are locked without an attempt to lock each. */
extern const bool mrt_sql_shows_rows;

/* Makes the store's driver and fills its address; 0, or a code with particulars. */
int mrt_sql_driver_open(struct mrt_sql_store *store, const struct mrt_uri *uri);
/* Ends and frees everything. */
void mrt_sql_driver_free(struct mrt_sql_store *store);
/* In a forked child: wipes what is secret, and leaves the library's memory alone; the socket, -1:
   none. */
int mrt_sql_driver_leave(struct mrt_sql_store *store);
/* Begins a connection; goes on with it, until mrt_sql_check or mrt_sql_reject. */
void mrt_sql_driver_connect(struct mrt_sql_store *store);
void mrt_sql_driver_go_on(struct mrt_sql_store *store, mrt_time now);
void mrt_sql_driver_disconnect(struct mrt_sql_store *store);
/* Sends the request. It is the last of store->sent; a RENEW is placed before requests that have not
 * left. */
void mrt_sql_driver_send(struct mrt_sql_store *store, struct mrt_sql_request *request,
                         mrt_time now);
/* Reads what has arrived, sends what is left, and makes sure that an event will follow. */
void mrt_sql_driver_turn(struct mrt_sql_store *store, mrt_time now);
/* Reads the answer of SETUP, and calls mrt_sql_connected or mrt_sql_reject. */
void mrt_sql_driver_check(struct mrt_sql_store *store, const struct mrt_sql_request *request);
/* Whether a RENEW was answered by the same connection of the server as SETUP, or need not be: a
   store that can do without connects anew and is `pooled` then. */
bool mrt_sql_driver_same(struct mrt_sql_store *store, const struct mrt_sql_request *request);
/* Whether a RENEW, or a form's proof, shows that its server can still be written to. True where a
   server becomes read-only only by ending its connections. */
bool mrt_sql_driver_writable(const struct mrt_sql_request *request);
/* The server's number of the connection, if the server goes on with the wait of a client that has
   left until another connection ends it; 0: the server notices by itself. */
uint64_t mrt_sql_driver_to_kill(const struct mrt_sql_store *store);
/* Its errors; the last row, whose state is "", stands for all others. */
extern const struct mrt_sql_code mrt_sql_codes[];
/* The first row of these that fits: fault.c. */
const struct mrt_sql_code *mrt_sql_code(const char *state);
/* Rows, first is 0; a NULL is NULL. */
int mrt_sql_rows_count(void *rows);
const char *mrt_sql_rows_text(void *rows, int row, int column);
void mrt_sql_rows_free(void *rows);

#endif
