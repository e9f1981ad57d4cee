/* SPDX-License-Identifier: Apache-2.0 */
/* OBSERVE. */
#ifndef MRT_STORE_ZOOKEEPER_VALUES_OBSERVE_H
#define MRT_STORE_ZOOKEEPER_VALUES_OBSERVE_H

#include "store/zookeeper/session.h"

/* `path` is the queue's directory. */
void mrt_zk_observe_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path);

#endif
