/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that set watches. */
#ifndef MRT_STORE_ZOOKEEPER_WATCH_PASS_H
#define MRT_STORE_ZOOKEEPER_WATCH_PASS_H

#include "store/zookeeper/request.h"

/* Events: of a node that is waited for, of its marker, and of a ticket's own node. */
extern const struct mrt_zk_step mrt_zk_watch_step, mrt_zk_watch_marker_step, mrt_zk_watch_own_step;
/* The answer, and the watch events, of a list of children that sets a watch. */
mrt_zk_number_reply mrt_zk_watch_answered;
void mrt_zk_watch_event(zhandle_t *handle, int type, int state, const char *path, void *context);

#endif
