/* SPDX-License-Identifier: Apache-2.0 */
/* APPEND. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_APPEND_H
#define MRT_STORE_ZOOKEEPER_TICKET_APPEND_H

#include "store/zookeeper/ticket/record.h"

void mrt_zk_append_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

#endif
