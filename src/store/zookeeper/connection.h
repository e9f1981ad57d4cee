/* SPDX-License-Identifier: Apache-2.0 */
/* The session's life: all but the last with mrt_zk_library held. */
#ifndef MRT_STORE_ZOOKEEPER_CONNECTION_H
#define MRT_STORE_ZOOKEEPER_CONNECTION_H

#include "store/zookeeper/session.h"

/* A handle of the library's for this store; NULL: no memory. */
zhandle_t *mrt_zk_handle(const struct mrt_store *store, const char *servers, watcher_fn watcher);
/* Why an attempt to connect failed, by the errno behind the library's call. */
const char *mrt_zk_trouble(int error);

/* False: no memory, and the job is the caller's. */
bool mrt_zk_session_start(struct mrt_store *store, struct mrt_job *job, mrt_time now);
void mrt_zk_session_stop(struct mrt_zk_session *session, struct mrt_job *job, mrt_time now);
void mrt_zk_session_renew(struct mrt_zk_session *session, struct mrt_job *job);
/* Lets the library work: read what has come, write, notice time-outs. */
void mrt_zk_session_turn(struct mrt_zk_session *session, mrt_time now);
/* Its tickets, watches and commands come to an end, with an answer each. */
void mrt_zk_session_clear(struct mrt_zk_session *session);
void mrt_zk_session_free(struct mrt_zk_session *session);

#endif
