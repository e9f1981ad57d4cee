/* SPDX-License-Identifier: Apache-2.0 */
/* LIGHTEN and SET_VALUE. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_DATA_H
#define MRT_STORE_ZOOKEEPER_TICKET_DATA_H

#include "store/zookeeper/ticket/record.h"

void mrt_zk_data_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

#endif
