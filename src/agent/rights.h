/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that a policy gives to a user's connection: by the commands, and by agent: (desk.h).
 *
 * The frames of agent: come from a process that may not be the library, so nothing is believed of
 * them but the name, the options of a new ticket, and the identity of a ticket of the same
 * connection.
 *
 *   APPEND               acquire; shared for a reader; adopt for one that was detached
 *   OBSERVE              list
 *   CELL_GET, CELL_SET   cells
 *   of a ticket          nothing: it is there, so he had the right, and what he has he keeps
 *   DETACH               refused: what belongs to nobody would outlast his rights and his limits
 *   LIST                 the rows for which he has list
 *   REVOKE, BREAK        revoke, break
 *
 * A new ticket must be one that the library makes. Else a user with `shared` alone could put a
 * ticket first whose capacity is another one, and every other reader would be refused.
 *
 * Threads: the agent's.
 */
#ifndef MRT_AGENT_RIGHTS_H
#define MRT_AGENT_RIGHTS_H

#include "agent/peer.h"

/* Whether the policy lets a client do one of these with this name, without namespace and space: 0,
   or MORTISE_EPERMISSION, whose particulars have the rule that is missing; the log has it, too. */
int mrt_peer_check(struct mrt_peer *peer, unsigned verbs, const struct mrt_resp_word *name);
/* The same for a command; if not, the reply says so. */
bool mrt_peer_may(struct mrt_peer *peer, unsigned verbs, const struct mrt_resp_word *name,
                  struct mrt_reply *reply);
/* Puts the user's space behind the namespace of a full name: 0, or MORTISE_ENAME or
   MORTISE_EPERMISSION with particulars. The word then stands in `full`. */
int mrt_desk_place_name(const struct mrt_peer *peer, struct mrt_resp_word *name,
                        char full[MRT_FULL_NAME_SIZE]);
/* Whether the policy lets a user who has limits do this; `ticket`: NULL if it is not there. The
   command is changed to say of it what the agent knows. 0, or an error with particulars. */
int mrt_desk_permit(struct mrt_desk_session *session, const struct mrt_desk_ticket *ticket,
                    struct mrt_frame_command *frame);
/* Whether it is the APPEND of a reader of a read/write lock. */
bool mrt_desk_reads(const struct mrt_frame_command *frame);

#endif
