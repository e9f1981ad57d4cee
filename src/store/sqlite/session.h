/* SPDX-License-Identifier: Apache-2.0 */
/* Session files: the sessions of this store, and whether others live. */
#ifndef MRT_STORE_SQLITE_SESSION_H
#define MRT_STORE_SQLITE_SESSION_H

#include "store/sqlite/internal.h"

#include <sys/un.h>

/* 0 or a MORTISE code. */
int mrt_sqlite_session_start(struct mrt_sqlite_store *store, struct mrt_id id);
/* Removes its files, closes them and frees it, its tickets included. */
void mrt_sqlite_session_end(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session);
struct mrt_sqlite_session *mrt_sqlite_session_find(struct mrt_sqlite_store *store,
                                                   struct mrt_id id);
/* Whether its file is still there for others to see. */
bool mrt_sqlite_session_visible(const struct mrt_sqlite_session *session);
/* Whether the directory of session files is still in the file system. */
bool mrt_sqlite_sessions_visible(const struct mrt_sqlite_store *store);
/* Whether the session has ended: no file, or nobody has it locked. */
bool mrt_sqlite_session_dead(struct mrt_sqlite_store *store, struct mrt_id id);
/* Removes the files of a dead session. */
void mrt_sqlite_session_unlink(struct mrt_sqlite_store *store, struct mrt_id id);
/* Names of more than 107 bytes do not fit a socket's address: all go through /proc/self/fd. */
void mrt_sqlite_session_address(const struct mrt_sqlite_store *store, struct mrt_id session,
                                struct sockaddr_un *address);
/* Makes the session's socket if it has none. */
void mrt_sqlite_listen(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session);
/* Frees the observers of a session; NULL: of all. */
void mrt_sqlite_observers_free(struct mrt_sqlite_store *store,
                               const struct mrt_sqlite_session *session);

#endif
