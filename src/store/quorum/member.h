/* SPDX-License-Identifier: Apache-2.0 */
/* One member: its session, and its answers. */
#ifndef MRT_STORE_QUORUM_MEMBER_H
#define MRT_STORE_QUORUM_MEMBER_H

#include "store/quorum/internal.h"

/* Ends its session. */
void mrt_quorum_member_stop(struct mrt_quorum_member *member);
/* Sends a sign of life, of the newest round. */
void mrt_quorum_member_renew(struct mrt_quorum_member *member);
/* Keeps the events that the member delivers while it is called. */
void mrt_quorum_member_event(struct mrt_quorum_member *member, const struct mrt_event *event);
/* Acts on the events that members have delivered since; whether there were any. */
bool mrt_quorum_members_act(struct mrt_quorum_store *store, mrt_time now);
/* Starts the sessions that are due, and sends again what is due; and when that is. */
void mrt_quorum_members_due(struct mrt_quorum_store *store, mrt_time now);
mrt_time mrt_quorum_members_next(const struct mrt_quorum_store *store);

#endif
