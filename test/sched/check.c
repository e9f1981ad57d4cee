/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. */
#include "check.h"

#include "api/client.h"

#include "core/engine.h"
#include "system.h"

#include <string.h>

#define GRIPS_MAX 64
#define BROKEN_MAX 64
#define FENCE_SPAN (UINT64_C(1) << 32)
#define CALL_BOUND (6 * MRT_MILLISECOND)
#define CALLS_CARRIED 10 /* so many calls of the store are a thread's share, its own included */
#define WAIT_BOUND (300 * MRT_MILLISECOND)
#define LOSS_BOUND (30 * MRT_MILLISECOND)

struct grip {
    int lock;
    int descriptor; /* of its loss; 0: none */
    mortise_hold hold;
    uint64_t weight, fence;
    mrt_time since;
    mrt_time valid_until, lost_at; /* as last seen; 0: it is not lost */
    mrt_time paused;               /* when it was lost */
    unsigned count;
    bool live, broken, wants, told;
};

struct call {
    const char *what; /* NULL: none */
    mrt_time begun, deadline, paused, stuck;
    bool on_store;
};

struct waits {
    int count;
    uint64_t floor;
    mrt_time idle_since; /* nobody has it, and somebody waits; 0: not so */
    mrt_time paused;
};

static struct grip grips[GRIPS_MAX];
static struct call calls[ACTORS_MAX];
static struct waits waits[LOCKS_MAX];
static struct {
    int lock;
    uint64_t fence;
} broken[BROKEN_MAX];
static size_t broken_count;

/* ------------------------------------------------------------------ holds */

static mortise_state state_of(const struct grip *grip)
{
    const struct mrt_hold *slot = grip->hold.slot;
    return mrt_hold_live(slot, grip->hold.generation) ? mrt_hold_state(slot, sched_now())
                                                      : MORTISE_RELEASED;
}

static bool holds(const struct grip *grip, int lock)
{
    mortise_state state = grip->live && grip->lock == lock ? state_of(grip) : MORTISE_LOST;
    return state == MORTISE_HELD || state == MORTISE_SUSPENDED;
}

static bool was_broken(int lock, uint64_t fence)
{
    for (size_t i = 0; i < broken_count; i++)
        if (broken[i].lock == lock && fence >= broken[i].fence &&
            fence < broken[i].fence + FENCE_SPAN)
            return true;
    return false;
}

static void check_capacity(int lock)
{
    uint64_t held = 0;
    for (int i = 0; i < GRIPS_MAX; i++)
        if (holds(&grips[i], lock) && !grips[i].broken)
            held += grips[i].weight;
    if (held > world.locks[lock].capacity)
        sched_fail("%llu are held of %s, which has %llu", (unsigned long long)held,
                   world.locks[lock].name, (unsigned long long)world.locks[lock].capacity);
}

struct grip *check_grip(mortise_hold hold)
{
    for (int i = 0; i < GRIPS_MAX; i++)
        if (grips[i].live && grips[i].hold.slot == hold.slot &&
            grips[i].hold.generation == hold.generation)
            return &grips[i];
    return NULL;
}

static struct grip *free_grip(void)
{
    for (int i = 0; i < GRIPS_MAX; i++)
        if (!grips[i].live)
            return &grips[i];
    sched_fail("more than %d holds", GRIPS_MAX);
}

struct grip *check_granted(int lock, mortise_hold hold, uint64_t weight, uint64_t floor)
{
    const struct mrt_hold *slot = hold.slot;
    struct grip *grip = check_grip(hold);
    if (grip) {
        grip->count++;
        return grip;
    }
    grip = free_grip();
    *grip = (struct grip){.live = true,
                          .lock = lock,
                          .hold = hold,
                          .weight = weight,
                          .count = 1,
                          .since = sched_now()};
    if (mrt_hold_live(slot, hold.generation))
        grip->fence = slot->fence;
    grip->broken = was_broken(lock, grip->fence);
    sched_note("has %s", world.locks[lock].name);
    if (!grip->broken && world.locks[lock].capacity == 1 && grip->fence != 0 &&
        grip->fence <= floor)
        sched_fail("a fence of %s does not rise", world.locks[lock].name);
    check_capacity(lock);
    return grip;
}

void check_lightened(struct grip *grip, uint64_t weight)
{
    grip->weight = weight;
}

void check_giving_back(struct grip *grip)
{
    if (--grip->count > 0)
        return;
    if (grip->fence > waits[grip->lock].floor)
        waits[grip->lock].floor = grip->fence;
    sched_note("gives %s back", world.locks[grip->lock].name);
    grip->live = false;
}

void check_given_back(int lock, mrt_time since, int error)
{
    if (error == MORTISE_OK || world.breaks)
        return;
    if (error != MORTISE_ELOST || !check_has_cause(since))
        sched_fail("a release of %s ended with %s", world.locks[lock].name,
                   mortise_error_name(error));
}

void check_breaks(int lock, uint64_t fence)
{
    if (broken_count == BROKEN_MAX)
        sched_fail("more than %d breaks", BROKEN_MAX);
    broken[broken_count].lock = lock;
    broken[broken_count++].fence = fence;
    for (int i = 0; i < GRIPS_MAX; i++)
        if (grips[i].live && grips[i].lock == lock)
            grips[i].broken = grips[i].broken || was_broken(lock, grips[i].fence);
}

bool check_is_broken(const struct grip *grip)
{
    return grip->broken;
}

mrt_time check_since(const struct grip *grip)
{
    return grip->since;
}

/* ------------------------------------------------------------------ losses */

bool check_has_cause(mrt_time since)
{
    return store_trouble() > 0 && store_trouble() + world.lease >= since;
}

void check_wants_loss(struct grip *grip, int descriptor)
{
    grip->wants = true;
    if (descriptor > 0)
        grip->descriptor = descriptor;
}

void check_told(mortise_hold hold, mortise_state state)
{
    struct grip *grip = check_grip(hold);
    sched_note("is told %d", (int)state);
    if (!grip)
        return; /* its thread gives it back at this moment */
    if (grip->told)
        sched_fail("a hold is told of after its loss");
    if (state == MORTISE_LOST && !grip->broken && !check_has_cause(grip->since))
        sched_fail("a hold of %s is lost without a cause", world.locks[grip->lock].name);
    grip->told = state == MORTISE_LOST;
}

static bool is_told(const struct grip *grip)
{
    return grip->told || (grip->descriptor > 0 && system_readable(grip->descriptor));
}

/* A loss by the clock, which nobody need have said. */
static mrt_time watch_loss(struct grip *grip, mrt_time now)
{
    const struct mrt_hold *slot = grip->hold.slot;
    if (!mrt_hold_live(slot, grip->hold.generation))
        return MRT_TIME_NEVER;
    mrt_time until = mrt_hold_valid_until(slot);
    if (until > now) {
        grip->valid_until = until;
        grip->lost_at = 0;
        grip->paused = sched_paused();
        return until;
    }
    if (grip->lost_at == 0)
        grip->lost_at = grip->valid_until > 0 ? mrt_time_min(grip->valid_until, now) : now;
    if (!grip->wants || is_told(grip) ||
        ((mortise_client *)mrt_engine_host(slot->engine))->driver.foreign)
        return MRT_TIME_NEVER;
    mrt_time limit = grip->lost_at + LOSS_BOUND + (sched_paused() - grip->paused);
    if (now >= limit)
        sched_fail("the loss of %s is not told, %.3f ms after it", world.locks[grip->lock].name,
                   (double)(now - grip->lost_at) / 1e6);
    return limit;
}

/* ------------------------------------------------------------------ calls */

void check_call(const struct actor *actor, const char *what, mrt_time deadline, bool on_store)
{
    sched_note("%s", what);
    calls[actor->index] = (struct call){.what = what,
                                        .begun = sched_now(),
                                        .deadline = deadline,
                                        .paused = sched_paused(),
                                        .stuck = store_stuck(actor->thread),
                                        .on_store = on_store};
}

static mrt_time limit_of(const struct call *call, int thread)
{
    mrt_time limit = call->deadline;
    if (call->on_store && store_trouble() > limit)
        limit = store_trouble();
    return limit + CALL_BOUND + CALLS_CARRIED * world.latency + (sched_paused() - call->paused) +
           (store_stuck(thread) - call->stuck);
}

static void check_late(const struct actor *actor, const char *fault)
{
    const struct call *call = &calls[actor->index];
    if (!call->what || call->deadline == MRT_TIME_NEVER)
        return;
    mrt_time now = sched_now(), limit = limit_of(call, actor->thread);
    if (now > limit)
        sched_fail("%s: %s %s, %.3f ms after %.3f ms, when it should have", actor->name, call->what,
                   fault, (double)(now - call->deadline) / 1e6, (double)call->deadline / 1e6);
}

void check_returned(const struct actor *actor)
{
    check_late(actor, "returned");
    calls[actor->index].what = NULL;
}

/* ------------------------------------------------------------------ waiting */

void check_waits(int lock, int change)
{
    waits[lock].count += change;
}

uint64_t check_floor(int lock)
{
    return waits[lock].floor;
}

static bool is_idle(int lock)
{
    for (int i = 0; i < GRIPS_MAX; i++)
        if (holds(&grips[i], lock))
            return false;
    return waits[lock].count > 0 && world.gathering == 0;
}

static void watch_lock(int lock, mrt_time now)
{
    struct waits *own = &waits[lock];
    if (!is_idle(lock)) {
        own->idle_since = 0;
        return;
    }
    if (own->idle_since == 0) {
        own->idle_since = now;
        own->paused = sched_paused();
    }
    mrt_time begun = own->idle_since,
             calm = store_trouble() > 0 ? store_trouble() + 2 * world.lease : 0;
    if (calm > begun)
        begun = calm;
    if (now > begun + WAIT_BOUND + (sched_paused() - own->paused))
        sched_fail("nobody holds %s, and it has been waited for for %.3f ms",
                   world.locks[lock].name, (double)(now - own->idle_since) / 1e6);
}

/* ------------------------------------------------------------------ watching */

static mrt_time watch(mrt_time now, mrt_time next)
{
    next = mrt_time_min(next, store_next());
    for (int i = 0; i < world.actor_count; i++)
        check_late(&world.actors[i], "has not returned");
    for (int i = 0; i < GRIPS_MAX; i++)
        if (grips[i].live)
            next = mrt_time_min(next, watch_loss(&grips[i], now));
    for (int lock = 0; lock < world.lock_count; lock++)
        watch_lock(lock, now);
    return next;
}

void check_begin(void)
{
    memset(grips, 0, sizeof grips);
    memset(calls, 0, sizeof calls);
    memset(waits, 0, sizeof waits);
    broken_count = 0;
    sched_watch = watch;
}

void check_end(void)
{
    for (int i = 0; i < GRIPS_MAX; i++)
        if (grips[i].live)
            sched_fail("%s is held at the end", world.locks[grips[i].lock].name);
    for (int lock = 0; lock < world.lock_count; lock++)
        if (waits[lock].count != 0)
            sched_fail("%s is waited for at the end", world.locks[lock].name);
    sched_watch = NULL;
}
