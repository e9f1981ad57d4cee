/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the store whether a hold is there: verify.c.
 */
#ifndef MRT_CORE_VERIFY_H
#define MRT_CORE_VERIFY_H

#include <stdint.h>

struct mrt_ticket;
struct mrt_waiter;

/* The waiter is told of the answer to what it asks next, or has begun to ask. */
void mrt_ticket_verify(struct mrt_ticket *ticket, struct mrt_waiter *waiter);
void mrt_ticket_end_verifiers(struct mrt_ticket *ticket, int error);
/* The ticket was there, in answer to a look of this serial: those who asked before know. */
void mrt_ticket_verified(struct mrt_ticket *ticket, uint64_t asked);

#endif
