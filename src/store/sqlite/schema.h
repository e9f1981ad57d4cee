/* SPDX-License-Identifier: Apache-2.0 */
/* Opens or makes the database, and gives numbers from its counter. */
#ifndef MRT_STORE_SQLITE_SCHEMA_H
#define MRT_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/db.h"
#include "store/sqlite/files.h"

/* 0 or a MORTISE code. */
int mrt_sqlite_db_open(struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file,
                       bool short_lived, mrt_time patience);
/* In a transaction: the next number of the store. MRT_SQLITE_LIMIT: roll back, extend, again. */
#define MRT_SQLITE_LIMIT UINT64_MAX
enum mrt_outcome mrt_sqlite_next_number(struct mrt_sqlite_db *db, uint64_t *number);
/* Raises the limit durably; outside of any transaction. */
enum mrt_outcome mrt_sqlite_extend(struct mrt_sqlite_db *db, mrt_time patience);

#define MRT_SQLITE_BLOCK 100000
/* For tests: this machine's boot id from now on; none: the true one. */
void mrt_sqlite_set_boot_id(struct mrt_id id);

#endif
