/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens that explore_state.c puts into a hash, in a part for each client and one for tickets
 * of nobody. Counters are put as a kind of their own, and count by their rank among all of it.
 */
#ifndef EXPLORE_HASH_H
#define EXPLORE_HASH_H

#include "explore.h"

enum kind {
    PLAIN,
    FENCE,
    BOUND, /* how many fences are not above it */
    SESSION,
    SERIAL,
    ORDER = SERIAL + CLIENTS_MAX,
    IDENTITY = ORDER + CLIENTS_MAX, /* by the client that made it, from 1 */
    LEFT = IDENTITY + CLIENTS_MAX + 1,
    KINDS
};

#define COMMON CLIENTS_MAX

void hash_begin(void);
/* The following tokens are in this part: a client's number, or COMMON. */
void hash_part(int part);
void put(int kind, uint64_t value);
void plain(uint64_t value);
/* A client knows no other's identities, so their ranks are the same whichever client it is. */
void put_id(struct mrt_id id);
/* Which client's part it was makes no difference. */
struct state_hash hash_end(void);

#endif
