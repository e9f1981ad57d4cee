/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that were refused and are repeated: retry.c, poll.c */
#ifndef MRT_STORE_SQL_RETRY_H
#define MRT_STORE_SQL_RETRY_H

#include "store/sql/internal.h"

/* Whether a request that was refused has time left. */
bool mrt_sql_may_retry(const struct mrt_sql_store *store, const struct mrt_sql_request *request,
                       mrt_time now);
/* It is made again, which is counted: at once, or after a pause if it is not the first time, as
   long as the count says. The other one stays behind all that is under way. */
void mrt_sql_retry(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now);
void mrt_sql_retry_behind(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now);
/* The row that it needs is made first, as `kind`, and the request made again. */
void mrt_sql_make(struct mrt_sql_store *store, struct mrt_sql_request *request,
                  enum mrt_sql_kind kind, mrt_time now);
/* Makes those whose pause is over; when the next one's is; all wait for a connection instead. */
void mrt_sql_rested(struct mrt_sql_store *store, mrt_time now);
mrt_time mrt_sql_rest_next(const struct mrt_sql_store *store);
void mrt_sql_rest_no_more(struct mrt_sql_store *store);

/* How long after a look at a ticket of this age, which so many are before, the next one is due:
   at most MRT_SQL_RECHECK_MAX. For people: MRT_SQL_LOOKS. */
#define MRT_SQL_LOOKS                                                                              \
    "the next in line every 25 ms, after 100 s every 250 ms, others by their place, every 5 s at " \
    "most"
mrt_time mrt_sql_poll(mrt_time age, uint64_t place, uint64_t chance);
/* Such a chance, below 2^32: another for each client, and for each `which` of a request. */
uint64_t mrt_sql_chance(const struct mrt_command *command, int64_t which);

#endif
