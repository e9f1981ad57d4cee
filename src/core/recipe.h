/* SPDX-License-Identifier: Apache-2.0 */
/* The recipes, as data over the one engine. */
#ifndef MRT_CORE_RECIPE_H
#define MRT_CORE_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

/* A recipe, as data: how a lock uses its queue. */
struct mrt_recipe {
    const char *kind;  /* stored with the tickets; kinds do not mix on one name */
    uint64_t capacity; /* of the queue */
    bool reentrant;    /* the owner of a hold may acquire again, with the same weight or less */
    bool shared;       /* several may hold: each acquire has a ticket of its own */
    bool claim;        /* no order is promised among clients: a store need not keep one */
};

/* The weights of the two sides of a read/write lock. */
#define MRT_WRITER (UINT64_C(1) << 31)
#define MRT_READER UINT64_C(1)

extern const struct mrt_recipe mrt_mutex;
/* One holder, which may not acquire again. */
extern const struct mrt_recipe mrt_semaphore_mutex;
/* One holder, and any waiter may be next: a store may keep it as a claim. */
extern const struct mrt_recipe mrt_exclusive;
extern const struct mrt_recipe mrt_read_write;
/* One holder, the leader; each candidate has a ticket of its own, with its value. */
extern const struct mrt_recipe mrt_election;
struct mrt_recipe mrt_semaphore(uint64_t permits);

#endif
