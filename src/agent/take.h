/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of client sessions: see take.c. Of agent/ only.
 */
#ifndef MRT_AGENT_TAKE_H
#define MRT_AGENT_TAKE_H

#include "agent/desk.h"

/* A frame of a connection that was greeted; false: it is none, or there is no memory. */
bool mrt_desk_take(struct mrt_peer *peer, const struct mrt_resp_command *words);

/* -------------------------------------------------------------------- session.c */

void mrt_desk_start(struct mrt_desk_session *session, const struct mrt_command *command);
void mrt_desk_renew(struct mrt_desk_session *session, const struct mrt_command *command);
void mrt_desk_stop(struct mrt_desk_session *session, const struct mrt_command *command);

#endif
