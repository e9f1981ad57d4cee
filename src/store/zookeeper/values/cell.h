/* SPDX-License-Identifier: Apache-2.0 */
/* CELL_GET and CELL_SET. */
#ifndef MRT_STORE_ZOOKEEPER_VALUES_CELL_H
#define MRT_STORE_ZOOKEEPER_VALUES_CELL_H

#include "store/zookeeper/session.h"

/* `path` is the directory of the cell's name. */
void mrt_zk_cell_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path);

#endif
