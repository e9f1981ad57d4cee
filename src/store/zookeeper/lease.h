/* SPDX-License-Identifier: Apache-2.0 */
/* The proofs that a session lives, and how long a server may be silent: see lease.c. */
#ifndef MRT_STORE_ZOOKEEPER_LEASE_H
#define MRT_STORE_ZOOKEEPER_LEASE_H

#include "store/zookeeper/session.h"

/* How old a sign of life must be to be proven by the next one; `tick` 0: not known. */
mrt_time mrt_zk_proof_lag(mrt_time lease, mrt_time tick);
/* Fills in the lease of a STARTED; false: the session is too short, and `why` says so. */
bool mrt_zk_lease_begin(struct mrt_zk_session *session, struct mrt_event *event, char *why,
                        size_t size);
/* When the connection is given up if nothing comes until then. */
mrt_time mrt_zk_given_up_at(const struct mrt_zk_session *session);
/* How many addresses the library's list of servers has. */
unsigned mrt_zk_count_servers(const char *servers);
/* Whether there was an attempt for each of the servers since a sync was answered. */
bool mrt_zk_has_tried_all(const struct mrt_zk_session *session);

#endif
