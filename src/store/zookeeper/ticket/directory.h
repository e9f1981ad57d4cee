/* SPDX-License-Identifier: Apache-2.0 */
/* A lock's directory, and those above it. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_DIRECTORY_H
#define MRT_STORE_ZOOKEEPER_TICKET_DIRECTORY_H

#include "store/zookeeper/ticket/record.h"

/* Makes the directory `path`, and with `all` those above it, without waiting for answers. `ticket`
   may be NULL. */
void mrt_zk_directory_make(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                           const char *path, bool all);
/* Makes the ticket's, which does not exist; false: the command ends with `code`. */
bool mrt_zk_directory_make_again(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                                 int code);

#endif
