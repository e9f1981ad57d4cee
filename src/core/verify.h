/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the store whether a hold is there: verify.c.
 */
#ifndef MRT_CORE_VERIFY_H
#define MRT_CORE_VERIFY_H

#include <stdint.h>

struct mrt_ticket;
struct mrt_waiter;

/* The waiter gets the answer to the ticket's next REFRESH, or to one that was just sent. */
void mrt_ticket_verify(struct mrt_ticket *ticket, struct mrt_waiter *waiter);
void mrt_ticket_end_verifiers(struct mrt_ticket *ticket, int error);
/* A REFRESH of this serial has shown the ticket: calls of verify from before it are answered. */
void mrt_ticket_verified(struct mrt_ticket *ticket, uint64_t asked);

#endif
