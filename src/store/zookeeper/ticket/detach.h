/* SPDX-License-Identifier: Apache-2.0 */
/* DETACH, and APPEND with `adopt`. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_DETACH_H
#define MRT_STORE_ZOOKEEPER_TICKET_DETACH_H

#include "store/zookeeper/ticket/record.h"

void mrt_zk_detach_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_adopt_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

#endif
