/* SPDX-License-Identifier: Apache-2.0 */
/* REMOVE. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_REMOVE_H
#define MRT_STORE_ZOOKEEPER_TICKET_REMOVE_H

#include "store/zookeeper/ticket/record.h"

void mrt_zk_remove_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

#endif
