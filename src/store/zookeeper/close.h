/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a handle, without mrt_zk_library. */
#ifndef MRT_STORE_ZOOKEEPER_CLOSE_H
#define MRT_STORE_ZOOKEEPER_CLOSE_H

#include "store/zookeeper/request.h"

#include <stdatomic.h>

/* The parts that live as long as a handle, which may outlive its session. */
struct mrt_zk_closing {
    zhandle_t *handle;
    zoo_op_result_t results[MRT_ZK_PARTS_MAX]; /* written by the library, and not read */
    int socket;                                /* the connection's, which the library closes */
    int done;                                  /* an event's descriptor; -1: none */
    int code; /* the result of the library's close, once it has ended */
    atomic_bool ended;
    atomic_int users;
};

/* The memory that the end of a handle will need; NULL: there is none. */
struct mrt_zk_closing *mrt_zk_close_prepare(void);
/* Begins to close the session's handle; the caller lets the result go. */
struct mrt_zk_closing *mrt_zk_close_begin(struct mrt_zk_session *session);
bool mrt_zk_close_has_ended(const struct mrt_zk_closing *closing);
/* Makes the epoll descriptor ready when the close ends. */
void mrt_zk_close_watch(const struct mrt_zk_closing *closing, int epoll);
void mrt_zk_close_wait(const struct mrt_zk_closing *closing, mrt_time patience);
void mrt_zk_close_let_go(struct mrt_zk_closing *closing);

#endif
