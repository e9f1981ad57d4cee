/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a command is refused, in the same words on every store: formats for the details of FAILED
 * events. Names are cut so that the detail of a job holds all of a text.
 */
#ifndef MRT_STORE_KIT_REFUSAL_H
#define MRT_STORE_KIT_REFUSAL_H

#include "store/kit/job.h"

#include <inttypes.h>

/* MORTISE_ELOST */
#define MRT_REFUSAL_ENDED "the session has ended"
/* MORTISE_EMISMATCH: name; kind and capacity (uint64_t) that it has; those of the command. */
#define MRT_REFUSAL_MISMATCH \
    "%.80s is in use as a %.32s of capacity %" PRIu64 ", not a %.32s of capacity %" PRIu64
/* MORTISE_EFULL: queue_max, name. */
#define MRT_REFUSAL_FULL "%" PRIu64 " are waiting for %.100s already"
/* MORTISE_ENOTHELD of an APPEND with `adopt`: name. */
#define MRT_REFUSAL_NOT_DETACHED "nothing is detached from %.100s under this token"
/* MORTISE_EMISMATCH of the same. */
#define MRT_REFUSAL_ADOPT "what was detached is another kind of hold"
/* MORTISE_ECONFLICT, MORTISE_ESTALE: name of the cell. */
#define MRT_REFUSAL_VERSION "%.100s has another version"
#define MRT_REFUSAL_FENCE "%.100s has seen a larger fence"

/* The answer to a command of a session that has ended, or never was. */
static inline struct mrt_event mrt_answer_ended(const struct mrt_command *command)
{
    struct mrt_event event = mrt_answer_to(command, MRT_FAILED);
    switch (command->type) {
    case MRT_STOP:
        event.type = MRT_STOPPED;
        break;
    case MRT_REMOVE:
        event.type = MRT_REMOVED;
        break;
    case MRT_REFRESH:
    case MRT_LIGHTEN:
    case MRT_SET_VALUE:
        event.type = MRT_GONE;
        break;
    default:
        event.error = MORTISE_ELOST;
        event.detail = MRT_REFUSAL_ENDED;
    }
    return event;
}

#endif
