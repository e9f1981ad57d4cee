/* SPDX-License-Identifier: Apache-2.0 */
/* Where holds have their slots: slot.c. */
#ifndef MRT_API_SLOT_H
#define MRT_API_SLOT_H

#include "io/driver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mrt_slot {
    _Atomic uint64_t first; /* the first generation of the client that has it */
    struct mrt_slot *next;  /* of those that no client has */
    struct mrt_hold hold;
    struct mrt_hold_host host;
};

/* The engine keeps its holds in such slots. */
void mrt_slot_configure(struct mrt_engine_config *config);

/* Whether the client that gave this hold, which is not empty, is still open. If not, its slot may
   be another client's: nothing of it but `first` may be read. */
static inline bool mrt_slot_is_open(mortise_hold hold)
{
    const struct mrt_slot *slot =
        (const struct mrt_slot *)((const char *)hold.slot - offsetof(struct mrt_slot, hold));
    return hold.generation >= atomic_load_explicit(&slot->first, memory_order_acquire);
}

#endif
