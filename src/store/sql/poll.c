/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to look at a ticket again where the server does not notify waiters: after a pause that grows
 * with the time waited and with the number of tickets ahead. So a hand-over is noticed late by only
 * a small part of the wait, and a long queue sends as few requests as a short one.
 *
 * Up to a quarter of the pause is left out at random. So clients that began together, as after a
 * server's restart, do not go on to look together.
 */
#include "store/sql/retry.h"

#define POLL_PART 8 /* of the time waited so far */
#define POLL_SOON (25 * MRT_MILLISECOND)
#define POLL_LATE_PART 400
#define POLL_MAX (250 * MRT_MILLISECOND)
#define POLL_CHANCE 4                          /* such a part is left out at most */
#define POLL_MIN (4 * MRT_MILLISECOND / 3 + 1) /* of which a millisecond is left then */

/* All identities of a client are a random number and a small one, so it is their sum that differs
   from client to client: they have few bits between them. */
uint64_t mrt_sql_chance(const struct mrt_command *command, int64_t which)
{
    uint64_t chance = command->session.low + command->ticket.low + (uint64_t)which;
    return (chance * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

mrt_time mrt_sql_poll(mrt_time age, uint64_t place, uint64_t chance)
{
    mrt_time late = mrt_time_min(age / POLL_LATE_PART, POLL_MAX);
    mrt_time poll = mrt_time_min(age / POLL_PART, late > POLL_SOON ? late : POLL_SOON);
    poll = poll > POLL_MIN ? poll : POLL_MIN;
    poll -= (mrt_time)(chance % (uint64_t)(poll / POLL_CHANCE + 1));
    if (place > (uint64_t)(MRT_SQL_RECHECK_MAX / poll))
        return MRT_SQL_RECHECK_MAX;
    return poll * (mrt_time)(place > 1 ? place : 1);
}
