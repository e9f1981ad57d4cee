/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the steps of all commands of a ticket have in common. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_TICKET_H
#define MRT_STORE_ZOOKEEPER_TICKET_TICKET_H

#include "store/zookeeper/ticket/record.h"

/* Ends its answered command; begins the next one, or frees a ticket without a node. */
void mrt_zk_ticket_answer(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                          enum mrt_event_type type);
void mrt_zk_ticket_answer_code(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                               int code);
/* FAILED, whatever the code is: nothing has been changed. */
void mrt_zk_ticket_fail(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code);
/* GONE: its node does not exist any longer, or was never made. */
void mrt_zk_ticket_gone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Answers with the newest view. */
void mrt_zk_ticket_show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        uint64_t ahead);
/* Answers all its commands as those of an ended session. */
void mrt_zk_ticket_end(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

/* Sends a step; if it cannot be sent, ends the command. False: the command has ended. */
bool mrt_zk_ticket_send(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_step *step, const char *path);
bool mrt_zk_ticket_send_node(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             const struct mrt_zk_step *step, const char *node);
/* Makes the server catch up: by a sync; by a write where an earlier connection may have made a node
 * of the ticket (ticket/seek.c). False: it cannot be sent, and the command is answered. */
bool mrt_zk_ticket_catch_up(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Lists the children by this step, behind that if it must not be an old list. */
void mrt_zk_ticket_list(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_step *step, bool fresh);

/* Notes that a node cannot be deleted: only the session's end releases what is acquired there. */
void mrt_zk_note_no_delete(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                           int code);

#endif
