/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox: commands on their way to the store, and what they need: identities, pauses.
 *
 * Invariant: a command is in one list at most: in the outbox (`queued`) until the host fetches it,
 * then among the outstanding ones (`outstanding`) until it is answered. Its serial is new each
 * time it is sent, so the answer to an earlier attempt is recognised.
 * Threads: as core/engine.h.
 */
#include "core/outbox.h"

#include "base/assert.h"
#include "core/engine_internal.h"

struct mrt_id mrt_engine_identity(struct mrt_engine *engine)
{
    struct mrt_id id = engine->config.seed;
    id.low += ++engine->identities;
    return id;
}

/* Steele, Lea and Flood's SplitMix64: spreads the pauses of many clients. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

mrt_time mrt_engine_pause(struct mrt_engine *engine, uint32_t attempts)
{
    mrt_time pause = engine->config.pause_min;
    for (uint32_t i = 0; i < attempts && pause < engine->config.pause_max; i++)
        pause *= 2;
    pause = mrt_time_min(pause, engine->config.pause_max);
    MRT_ASSERT(pause > 0);
    uint64_t spread = mix(engine->config.seed.low ^ engine->serial);
    return pause / 2 + (mrt_time)(spread % (uint64_t)pause);
}

mrt_time mrt_engine_recheck(const struct mrt_engine *engine, mrt_time told)
{
    mrt_time own = engine->config.recheck;
    return own > 0 ? mrt_time_min(own, told) : told;
}

void mrt_engine_send(struct mrt_engine *engine, struct mrt_command *command,
                     enum mrt_command_type type)
{
    MRT_ASSERT(!command->queued && !command->outstanding);
    command->type = type;
    command->serial = ++engine->serial;
    if (type == MRT_START || type == MRT_STOP || type == MRT_RENEW)
        command->session = engine->session.id;
    command->queued = true;
    TAILQ_INSERT_TAIL(&engine->outbox, command, link);
}

bool mrt_engine_unsend(struct mrt_engine *engine, struct mrt_command *command)
{
    if (!command->queued)
        return false;
    MRT_ASSERT(!command->outstanding);
    TAILQ_REMOVE(&engine->outbox, command, link);
    command->queued = false;
    return true;
}
