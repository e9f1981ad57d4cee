/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's answers about a ticket: ticket_answer.c.
 */
#ifndef MRT_CORE_TICKET_ANSWER_H
#define MRT_CORE_TICKET_ANSWER_H

#include "base/time.h"

#include <stdint.h>

struct mrt_event;
struct mrt_ticket;

void mrt_ticket_answer(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now);
/* A view that was not asked for. */
void mrt_ticket_told(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now);
/* A revoke request of this number; 0: none. */
void mrt_ticket_revoked(struct mrt_ticket *ticket, uint64_t number);

#endif
