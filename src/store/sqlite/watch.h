/* SPDX-License-Identifier: Apache-2.0 */
/* Watches on the files of sessions, and on the file that observers share. */
#ifndef MRT_STORE_SQLITE_WATCH_H
#define MRT_STORE_SQLITE_WATCH_H

#include "store/sqlite/internal.h"

/* Another process's session that some ticket here waits, or has waited, for. */
struct mrt_sqlite_watch {
    TAILQ_ENTRY(mrt_sqlite_watch) link;
    struct mrt_id session;
    int wd;             /* -1: the kernel has dropped it */
    mrt_time look_at;   /* MRT_TIME_NEVER: no suspicion */
    unsigned int looks; /* under this suspicion */
};

/* Watches a file in the directory of session files; -1: failed, with errno; ENOENT: no such file.
 */
int mrt_sqlite_watch_file(struct mrt_sqlite_store *store, const char *name, uint32_t events);
/* Watches for the end of another session. True: newly armed, so look whether it is dead. */
bool mrt_sqlite_watch(struct mrt_sqlite_store *store, struct mrt_id session);
void mrt_sqlite_unwatch(struct mrt_sqlite_store *store, struct mrt_sqlite_watch *watch);
void mrt_sqlite_unwatch_all(struct mrt_sqlite_store *store);
/* How long a waiting ticket may go without a look. */
mrt_time mrt_sqlite_recheck(const struct mrt_sqlite_store *store);

#endif
