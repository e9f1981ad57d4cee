/* SPDX-License-Identifier: Apache-2.0 */
/* The port of native locks (native.h), for the table of a dialect. */
#ifndef MRT_STORE_SQL_NATIVE_CALLS_H
#define MRT_STORE_SQL_NATIVE_CALLS_H

#include "store/sql/store.h"

int mrt_native_open_named(const struct mrt_uri *uri, const struct mrt_store_options *options,
                          struct mrt_sink sink, struct mrt_store **store);
int mrt_native_open_row(const struct mrt_uri *uri, const struct mrt_store_options *options,
                        struct mrt_sink sink, struct mrt_store **store);
bool mrt_native_submit(struct mrt_store *store, const struct mrt_command *command,
                       mrt_time patience);
mrt_time mrt_native_next(struct mrt_store *store);
void mrt_native_process(struct mrt_store *store, mrt_time now);
int mrt_native_list(struct mrt_store *store, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument);
void mrt_native_close(struct mrt_store *store);
void mrt_native_abandon(struct mrt_store *store);

/* The calls of every form; `which` is `named` or `row`. No session outlives its connections, so a
   claim cannot be detached. */
#define MRT_NATIVE_CALLS(which)                                                               \
    .any_thread = true, .claims_end = true, .is_tied = true, .open = mrt_native_open_##which, \
    .submit = mrt_native_submit, .fd = mrt_sql_fd, .next = mrt_native_next,                   \
    .process = mrt_native_process, .asks_apart = mrt_sql_asks_apart, .list = mrt_native_list, \
    .traffic = mrt_sql_traffic, .lease = mrt_sql_lease, .address = mrt_sql_address,           \
    .close = mrt_native_close, .abandon = mrt_native_abandon,                                 \
    .capabilities = {                                                                         \
        .size = sizeof(mortise_capabilities), .notify = 1, .across_hosts = 1, .lease_ms = 10000}

#endif
