/* SPDX-License-Identifier: Apache-2.0 */
/* Between multi.c, a thread that acquires several locks at once, and multi_library.c, what its
   call finds of the library. */
#ifndef SIM_MULTI_H
#define SIM_MULTI_H

#include "world.h"

#include "api/client.h"
#include "fiber.h"

/* An acquire of one lock of a call. */
struct part {
    struct mrt_call *wait; /* NULL: not under way */
    bool noted;            /* its end has been seen */
    uint64_t order;        /* when it queued, to compare */
};

struct multi {
    struct actor *actor;
    bool runs, inside, dead, cancelled; /* inside: it has been in the client */
    struct fiber fiber;
    void (*asked)(struct multi *multi, void *argument); /* of the world */
    void *argument;
    mortise_client client;
    mortise_lock locks[GRIPS_MAX];
    int queues[GRIPS_MAX];
    struct part parts[GRIPS_MAX];
    size_t count;
    const struct part *waits_for;
    int64_t timeout_ms;
    mrt_time deadline;
    mortise_hold holds[GRIPS_MAX];
    uint64_t errors; /* with which acquires of one have ended, as a set */
    int result;
};

/* The client whose call runs now; NULL: the world runs. */
extern struct multi *multi_running;
/* Called inside a call: the first runs a function in the world, unless its client is dead; the
 * second lets the world go on until multi_step, or the client's death. */
void multi_on_world(void (*asked)(struct multi *multi, void *argument), void *argument);
void multi_leave_to_world(void);
/* In the world. */
void multi_note(struct multi *multi, int kind, const char *what, int queue, int64_t a, int64_t b);
/* Notes the effects that the engine had immediately, and did not report. */
void multi_note_ends(struct multi *multi);

#endif
