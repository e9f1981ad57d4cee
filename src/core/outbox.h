/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands on their way to the store: outbox.c.
 */
#ifndef MRT_CORE_OUTBOX_H
#define MRT_CORE_OUTBOX_H

#include "base/id.h"
#include "core/store.h"

#include <stdbool.h>

struct mrt_engine;

struct mrt_id mrt_engine_identity(struct mrt_engine *engine);
void mrt_engine_send(struct mrt_engine *engine, struct mrt_command *command,
                     enum mrt_command_type type);
/* Takes a command back that has not been fetched; false if it is not in the outbox. */
bool mrt_engine_unsend(struct mrt_engine *engine, struct mrt_command *command);
/* Pause before the next attempt: config.pause_min doubled up to pause_max, spread by a half. */
mrt_time mrt_engine_pause(struct mrt_engine *engine, uint32_t attempts);
/* The recheck that the store asks for; 0: none. */
mrt_time mrt_engine_recheck(const struct mrt_engine *engine, mrt_time told);

#endif
