/* SPDX-License-Identifier: Apache-2.0 */
/* The port on SQL servers: store.c. A dialect makes a table of its calls. */
#ifndef MRT_STORE_SQL_STORE_H
#define MRT_STORE_SQL_STORE_H

#include "store/sql/list.h"

/* All of a store but its own memory; mrt_sql_fini also after a failure. */
int mrt_sql_init(struct mrt_sql_store *store, const struct mrt_uri *uri,
                 const struct mrt_store_options *options, struct mrt_sink sink);
void mrt_sql_fini(struct mrt_sql_store *store);
/* The same in a forked child: see `abandon`. */
void mrt_sql_leave(struct mrt_sql_store *store);
void mrt_sql_deliver(struct mrt_sql_store *store);
/* 0 and *store, or a code with its particulars. */
int mrt_sql_new(const struct mrt_uri *uri, const struct mrt_store_options *options,
                struct mrt_sink sink, struct mrt_sql_store **store);
int mrt_sql_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                 struct mrt_sink sink, struct mrt_store **store);
bool mrt_sql_submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience);
int mrt_sql_fd(struct mrt_store *store);
mrt_time mrt_sql_next(struct mrt_store *store);
void mrt_sql_process(struct mrt_store *store, mrt_time now);
bool mrt_sql_answers_may_wait(const struct mrt_store *store);
const char *mrt_sql_address(const struct mrt_store *store);
mrt_time mrt_sql_lease(const struct mrt_store *store);
void mrt_sql_close(struct mrt_store *store);
void mrt_sql_abandon(struct mrt_store *store);
void mrt_sql_adapt(const struct mrt_store *store, mortise_capabilities *capabilities);
void mrt_sql_traffic(const struct mrt_store *store, struct mrt_traffic *sum);

/* The calls that all stores of this kind share; a dialect adds its own traits. */
#define MRT_SQL_CALLS                                                                             \
    .any_thread = true, .values = true, .cells = true, .open = mrt_sql_open,                      \
    .submit = mrt_sql_submit, .fd = mrt_sql_fd, .next = mrt_sql_next, .process = mrt_sql_process, \
    .asks_apart = mrt_sql_asks_apart, .list = mrt_sql_list, .revoke = mrt_sql_revoke,             \
    .break_ticket = mrt_sql_break, .server = mrt_sql_server, .traffic = mrt_sql_traffic,          \
    .lease = mrt_sql_lease, .adapt = mrt_sql_adapt, .address = mrt_sql_address,                   \
    .answers_may_wait = mrt_sql_answers_may_wait, .close = mrt_sql_close,                         \
    .abandon = mrt_sql_abandon

#endif
