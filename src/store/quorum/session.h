/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's session: START, RENEW and STOP, by majority. */
#ifndef MRT_STORE_QUORUM_SESSION_H
#define MRT_STORE_QUORUM_SESSION_H

#include "store/quorum/internal.h"

void mrt_quorum_session_submit(struct mrt_quorum_store *store, const struct mrt_command *command,
                               mrt_time now);
/* Decides what can be decided; returns when to call it again. */
void mrt_quorum_session_due(struct mrt_quorum_store *store, mrt_time now);
mrt_time mrt_quorum_session_next(const struct mrt_quorum_store *store);

#endif
