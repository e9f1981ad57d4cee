/* SPDX-License-Identifier: Apache-2.0 */
/* Closes what a forked child must not keep. */
#ifndef MRT_STORE_SQLITE_FORK_H
#define MRT_STORE_SQLITE_FORK_H

#include "base/list.h"

#include <stdbool.h>
#include <sys/types.h>

/* A descriptor that a forked child closes at once. */
struct mrt_sqlite_fork_fd {
    TAILQ_ENTRY(mrt_sqlite_fork_fd) link;
    int fd; /* -1: none */
};

void mrt_sqlite_fork_guard_fd(struct mrt_sqlite_fork_fd *guard, int fd);
/* Closes it, if it is open in this process. */
void mrt_sqlite_fork_close_fd(struct mrt_sqlite_fork_fd *guard);

/* Notes that this process has the database open; NULL if there is no memory. */
struct mrt_sqlite_fork_database *mrt_sqlite_fork_note_database(dev_t device, ino_t inode);
void mrt_sqlite_fork_forget_database(struct mrt_sqlite_fork_database *database);
/* Whether the parent had it open when it forked this process. */
bool mrt_sqlite_fork_inherited(dev_t device, ino_t inode);

#endif
