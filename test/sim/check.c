/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants, from outside: nothing here looks at the engine's own parts. The belief of a
 * client, at its own clock, is compared with the server's knowledge and with the belief of the
 * other clients at the same instant of true time.
 */
#include "agent_command.h"

#include <stdarg.h>
#include <string.h>

/* A waiter behind a pooler looks so often, times its place: sql/poll.c. */
#define LOOK_MAX (250 * MRT_MILLISECOND)
#define AGENT_BUDGET (2 * MRT_MILLISECOND) /* src/agent/agent.c */

_Noreturn void check_fail(struct world *world, int client, int queue, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->failure, sizeof world->failure, format, arguments);
    va_end(arguments);
    world->failed_client = client;
    world->failed_queue = queue;
    longjmp(world->failed, 1);
}

/* ------------------------------------------------------------- holds */

/* A hold of a running client is there until it is released; lost is for good. */
static bool is_valid(struct world *world, const struct client *client, struct grip *grip)
{
    if (!mrt_hold_live(grip->hold, grip->generation))
        check_fail(world, client->index, grip->queue, "a hold vanished before its release");
    bool lost = mrt_hold_state(grip->hold, client_now(client)) == MORTISE_LOST;
    if (grip->ends > 0 && client_now(client) >= grip->ends && !lost)
        check_fail(world, client->index, grip->queue, "a hold goes on beyond its time");
    if (grip->seen_lost && !lost)
        check_fail(world, client->index, grip->queue, "a lost hold is held again");
    grip->seen_lost = lost;
    return !lost;
}

void check_begin(struct world *world)
{
    const struct profile *p = &world->drawn;
    world->recovery =
        MRT_SECOND + (p->trouble_every_us > 0 ? STREAM_KEEP_ALIVE : 0) +
        (p->unknown_us + p->pause_us + p->cut_us + p->recheck_us + 2 * p->agent_restart_us +
         2 * p->agent_pause_us +
         (p->agent_crash_every_us + p->agent_signal_every_us > 0 ? 10000000 + p->lock_delay_us
                                                                 : 0) +
         3 * p->zk_visit_us + (p->old_answers > 0 ? p->lease_us : 0)) *
            MRT_MICROSECOND;
    world->has_faults =
        p->agent_crash_every_us + p->agent_pause_every_us + p->agent_cut_every_us +
            p->agent_signal_every_us + p->zk_trouble_every_us + p->trouble_every_us +
            p->redis_copyless + p->pg_conflict + p->pg_full + p->pg_notify_late_us + p->pg_split +
            p->etcd_watch_late_us + p->etcd_error + p->zk_outsider_every_us + p->zk_impostor +
            p->lose_command + p->lose_reply + p->early_unknown + p->refuse + p->refuse_for_good +
            p->cut_every_us + p->pause_every_us + p->busy + p->timer_late_us + p->old_answers !=
        0;
}

/* Nothing is wrong with any connection, but that one server of several may stand still. */
static bool is_quiet_or_still(const struct world *world)
{
    if (lone_disturbs(world))
        return false;
    return world->phase != PHASE_CHAOS ? world->now > world->healed_at + world->recovery
                                       : !world->has_faults;
}

static bool is_quiet(const struct world *world)
{
    return is_quiet_or_still(world) &&
           (world->drawn.zk_still_every_us == 0 || world->phase != PHASE_CHAOS);
}

/* A hold may be lost only if no client could have kept it. One server of several that stands still,
 * or is silent from the beginning, is no reason; nor is the only server, once it goes on. */
void check_lost(struct world *world, const struct client *client, const struct grip *grip)
{
    const struct profile *p = &world->drawn;
    int64_t slowest = p->delay_us + p->zk_lag_us + p->zk_behind_us + p->zk_gap_us + p->pg_work_us;
    bool over = p->user_hold_us > 0 || grip->broken ||
                (grip->ends > 0 && client_now(client) >= grip->ends) ||
                world->now < world->silent_until;
    bool kept = lone_disturbs(world) ? !lone_explains(world, client) : is_quiet_or_still(world);
    if (kept && slowest * 100 <= p->lease_us && !over &&
        p->crash_every_us + p->kill_every_us + p->reboot_every_us + p->proof_lag_us +
                p->close_every_us + p->trouble_every_us ==
            0 &&
        world->phase != PHASE_CLOSE)
        check_fail(world, client->index, grip->queue, "a hold was lost without a cause");
}

/* Besides, no session ends by a fault. */
static bool keeps_clients(const struct world *world)
{
    const struct profile *p = &world->drawn;
    bool soon =
        (world->profile.delay_us + world->profile.zk_lag_us + world->profile.zk_behind_us) * 20 <=
            p->lease_us ||
        p->lease_us == 0;
    return is_quiet_or_still(world) && soon &&
           p->crash_every_us + p->kill_every_us + p->reboot_every_us + p->proof_lag_us +
                   p->user_hold_us ==
               0;
}

static bool keeps_sessions(const struct world *world)
{
    return keeps_clients(world) && is_quiet(world);
}

/* The only fault is that one server of several may stand still: a free lock goes to the next waiter
 * immediately, or once its client has left that server. */
static bool is_calm_or_still(const struct world *world)
{
    const struct profile *p = &world->drawn;
    return keeps_clients(world) && p->zk_alone == 0 &&
           p->wake_lost + p->wake_late_us + p->break_every_us + p->refuse_for_good + p->detach == 0;
}

/* There is no fault: a free lock goes to the next waiter immediately. */
static bool is_calm(const struct world *world)
{
    return is_calm_or_still(world) && is_quiet(world);
}

/* Until a client has left a server that stands still: it keeps its session, so within that. A
 * client that is connected again looks immediately, and not after the recheck, which is longer. */
static mrt_time until_left(const struct world *world)
{
    return is_quiet(world) ? 0 : world->drawn.lease_us * MRT_MICROSECOND;
}

static mrt_time round_trip(const struct world *world)
{
    return (6 * world->profile.delay_us +
            8 * (world->profile.zk_lag_us + world->profile.zk_behind_us) +
            2 * world->profile.zk_gap_us + 16 * world->profile.pg_work_us + 100) *
           MRT_MICROSECOND;
}

bool check_keeps_sessions(const struct world *world, mrt_time begun)
{
    return keeps_sessions(world) && world->drawn.close_every_us == 0 &&
           world->phase != PHASE_CLOSE && world->now - begun > 4 * round_trip(world);
}

static bool is_in(uint64_t fence, struct span span)
{
    return fence >= span.fence && fence - span.fence < span.length;
}

/* Whether a fence is of the ticket that begins with another. */
static bool is_of(const struct world *world, uint64_t fence, uint64_t ticket)
{
    return is_in(fence, (struct span){ticket, (uint64_t)world->drawn.fence_span});
}

void check_broken(struct world *world, int queue, struct span span)
{
    struct queue_state *state = &world->queues[queue];
    state->broken[state->broken_count++ % BROKEN_MAX] = span;
    delay_broken(world, queue, span.fence);
    detach_broken(world, queue, span.fence);
    for (int c = 0; c < world->drawn.clients; c++)
        for (int a = 0; a < world->drawn.actors; a++)
            for (int g = 0; g < GRIPS_MAX; g++) {
                struct grip *grip = &world->clients[c].actors[a].grips[g];
                if (grip->hold && grip->queue == queue && is_in(grip->fence, span)) {
                    grip->broken = true;
                    grip->broken_at = world->now;
                }
            }
}

bool check_was_broken(const struct world *world, const struct grip *grip)
{
    const struct queue_state *state = &world->queues[grip->queue];
    for (int i = 0; i < BROKEN_MAX; i++)
        if (is_in(grip->fence, state->broken[i]))
            return true;
    return false;
}

/* At the next look at the latest its holder hears of it. */
static void check_broken_told(struct world *world, const struct client *client,
                              const struct grip *grip)
{
    const struct profile *p = &world->drawn;
    mrt_time limit = p->recheck_us * 5 / 4 * MRT_MICROSECOND + 2 * round_trip(world);
    if (is_quiet(world) && world->now - grip->broken_at > limit)
        check_fail(world, client->index, grip->queue, "a broken hold is not told");
}

void check_revoked(struct world *world, int queue, uint64_t fence)
{
    struct queue_state *state = &world->queues[queue];
    state->undue[state->revoked_count % REVOKED_MAX] = false;
    state->revoked[state->revoked_count++ % REVOKED_MAX] = fence;
    for (int c = 0; c < world->drawn.clients; c++)
        for (int a = 0; a < world->drawn.actors; a++)
            for (int g = 0; g < GRIPS_MAX; g++) {
                struct grip *grip = &world->clients[c].actors[a].grips[g];
                if (!grip->hold || grip->queue != queue || !is_of(world, grip->fence, fence))
                    continue;
                grip->revokes++;
                if (grip->listens && grip->unheard_since == 0)
                    grip->unheard_since = world->now;
            }
}

void check_asked(struct world *world, const struct client *client, struct grip *grip)
{
    struct queue_state *state = &world->queues[grip->queue];
    if (++grip->asked > grip->revokes + (grip->ends > 0) && !grip->broken)
        check_fail(world, client->index, grip->queue, "a hold was asked for that nobody wants");
    grip->unheard_since = 0;
    if (grip->asked <= (grip->ends > 0))
        return; /* it may be the warning of its own end, which ends no turn */
    for (int i = 0; i < REVOKED_MAX; i++)
        if (state->revoked[i] > 0 && is_of(world, grip->fence, state->revoked[i]))
            state->asked_back = state->revoked[i];
}

/* An operator's request for a ticket before it was granted here. */
static void note_revoked(const struct world *world, struct grip *grip)
{
    const struct queue_state *state = &world->queues[grip->queue];
    for (int i = 0; i < REVOKED_MAX; i++) {
        bool asked = state->revoked[i] > 0 && is_of(world, grip->fence, state->revoked[i]);
        grip->revokes += asked;
        grip->undue += asked && state->undue[i];
    }
}

/* It was written into a node that has gone. */
static void forget_revoked(struct world *world, const struct grip *grip)
{
    struct queue_state *state = &world->queues[grip->queue];
    for (int i = 0; i < REVOKED_MAX; i++)
        state->undue[i] |= state->revoked[i] > 0 && is_of(world, grip->fence, state->revoked[i]);
    if (is_of(world, grip->fence, state->asked_back))
        state->asked_back = 0; /* its new holder is not asked */
}

/* As with a broken ticket, the next recheck of a client that listens shows it at the latest. */
static void check_request_told(struct world *world, const struct client *client,
                               const struct grip *grip)
{
    const struct profile *p = &world->drawn;
    mrt_time limit = p->recheck_us * 5 / 4 * MRT_MICROSECOND + 2 * round_trip(world);
    if (is_quiet(world) && world->now - grip->unheard_since > limit)
        check_fail(world, client->index, grip->queue, "a request to give up is not told");
}

bool check_covered(const struct actor *actor, const struct grip *grip)
{
    for (int g = 0; g < GRIPS_MAX; g++) {
        const struct grip *other = &actor->grips[g];
        if (other->hold && other != grip && other->queue == grip->queue &&
            other->fence == grip->fence &&
            (other->weight > grip->weight || (other->weight == grip->weight && other < grip)))
            return true;
    }
    return false;
}

/* The policy of its agent ends it in time, if nothing is wrong. */
static void check_limit(struct world *world, const struct client *client, const struct grip *grip)
{
    mrt_time limit = world->drawn.user_hold_us * MRT_MICROSECOND;
    if (limit > 0 && is_quiet(world) && world->resp &&
        client_now(client) - grip->got > limit + 4 * round_trip(world) + 2 * MRT_MILLISECOND)
        check_fail(world, client->index, grip->queue, "a hold goes on beyond its user's limit");
}

/* The weight of a client's valid holds. */
static uint64_t count_valid(struct world *world, struct client *client, int queue)
{
    uint64_t count = 0;
    for (int a = 0, left = client->grip_count; left > 0 && a < world->drawn.actors; a++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            struct grip *grip = &client->actors[a].grips[g];
            left -= grip->hold != NULL;
            if (grip->hold && grip->queue == queue)
                delay_note(world, client, &client->actors[a], grip);
            if (grip->hold && grip->queue == queue && is_valid(world, client, grip)) {
                check_limit(world, client, grip);
                if (!grip->broken && !check_covered(&client->actors[a], grip))
                    count += grip->weight;
                if (grip->broken)
                    check_broken_told(world, client, grip);
                if (grip->unheard_since > 0 && !grip->broken)
                    check_request_told(world, client, grip);
            }
        }
    return count;
}

/* Since when others wait behind the ticket whose turn it is. */
static void follow_truth(struct world *world, int queue, const struct truth *truth)
{
    struct queue_state *state = &world->queues[queue];
    uint64_t fence = truth->peer ? truth->fence : 0;
    detach_check(world, queue, truth);
    if (fence != state->turn_fence || !truth->others)
        state->contended_since = state->overdue_since = MRT_TIME_NEVER;
    if (truth->others && state->contended_since == MRT_TIME_NEVER)
        state->contended_since = world->now;
    state->turn_fence = fence;
}

static void follow_turn(struct world *world, int queue)
{
    struct truth truth;
    server_truth(world, queue, NULL, &truth);
    follow_truth(world, queue, &truth);
}

const struct truth *check_truth(struct world *world, int queue)
{
    struct known_truth *known = &world->truths[queue];
    if (!known->is_known)
        server_truth(world, queue, NULL, &known->truth);
    known->is_known = true;
    return &known->truth;
}

static mrt_time idle_limit(const struct world *world, int queue);

static void check_queue(struct world *world, int queue)
{
    uint64_t sum =
        delay_weight(world, queue) + detach_weight(world, queue) + resp_weight(world, queue);
    for (int c = 0; c < world->drawn.clients; c++) {
        struct client *client = &world->clients[c];
        uint64_t count = client->engine && !client->closing ? count_valid(world, client, queue) : 0;
        if (count > 0 && world->server_changed) {
            struct truth truth;
            server_truth(world, queue, client->peer, &truth);
            if (truth.granted < count && !truth.lawless)
                check_fail(world, c, queue, "a valid hold without a granted ticket at the server");
        }
        sum += count;
        if (sum > world->queues[queue].recipe.capacity)
            check_fail(world, c, queue, "more valid holds than the capacity");
    }
    if (world->drawn.lone > 0)
        lone_check_served(world, queue, sum > 0, 2 * idle_limit(world, queue));
}

/* Whether a thread of the client holds by this ticket. */
static bool is_had(const struct world *world, const struct client *client, int queue,
                   uint64_t fence, uint64_t span)
{
    for (int a = 0; a < world->drawn.actors; a++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct grip *grip = &client->actors[a].grips[g];
            if (grip->hold && grip->queue == queue && grip->fence - fence < span)
                return true;
        }
    return false;
}

static struct idle idle_of(const struct world *world, const struct idle *known, int count,
                           uint64_t fence)
{
    for (int i = 0; i < count; i++)
        if (known[i].fence == fence)
            return known[i];
    return (struct idle){.fence = fence, .since = world->now, .wanted = MRT_TIME_NEVER};
}

/* A hold of that fence has ended. */
void check_released(struct world *world, int queue, uint64_t fence)
{
    struct queue_state *state = &world->queues[queue];
    for (int i = 0; i < state->idle_count; i++)
        if (is_of(world, fence, state->idle[i].fence))
            state->idle[i--] = state->idle[--state->idle_count];
}

/* When its client begins to give it back: at once, or, if it lingers, when another waits for it,
   or when it has lingered for long enough by any clock. */
static mrt_time idle_until(const struct world *world, int queue, struct idle *idle, bool others)
{
    mrt_time linger = world_linger(world, queue);
    if (linger == 0)
        return idle->since;
    if (!others)
        idle->wanted = MRT_TIME_NEVER;
    else if (idle->wanted == MRT_TIME_NEVER)
        idle->wanted = world->now;
    mrt_time longest = linger * 5 / 4 + world->drawn.timer_late_us * MRT_MICROSECOND;
    return mrt_time_min(idle->since + longest, idle->wanted);
}

/* A release of a client on PostgreSQL comes after all it has sent: a command for each thread, one
   each for a cell, an observer and the session, and this one. Each is a transaction of three steps,
   and may wait for one of every other client to be done with the row of its queue. */
static mrt_time way_back(const struct world *world)
{
    const struct profile *p = &world->profile;
    if (p->model != MODEL_POSTGRES)
        return 2 * round_trip(world);
    int64_t steps = (p->actors + 4) * 3 * p->clients;
    return (12 * p->delay_us + steps * (p->pg_work_us + 2) + 200) * MRT_MICROSECOND;
}

/* Nobody is told behind a pooler. */
static mrt_time until_looked(const struct world *world)
{
    const struct profile *p = &world->drawn;
    return p->pg_pooled > 0 ? p->clients * p->actors * LOOK_MAX : 0;
}

/* Where each grant notifies the next waiter, a departure may let in several, one after the other.
 */
static mrt_time idle_limit(const struct world *world, int queue)
{
    const struct profile *p = &world->drawn;
    int64_t chain = world->queues[queue].lock == LOCK_SEMAPHORE ? 1 + p->capacity : 1;
    int64_t reactions = p->actors;
    if (p->several > 0) { /* it may come for others first, and not run in between */
        chain++;
        reactions += 2 * GRIPS_MAX + 2;
    }
    return chain * (way_back(world) + until_left(world) + until_looked(world)) +
           (reactions * (p->reaction_us + 1) + p->fair_us) * MRT_MICROSECOND;
}

/* A lock that was granted to a client is held by one of its threads, or released in time; if it
 * lingers, once another client wants it. */
static void check_idle(struct world *world, int queue)
{
    struct queue_state *state = &world->queues[queue];
    struct idle before[GRANTS_MAX];
    const struct truth *truth = check_truth(world, queue);
    int count = state->idle_count;
    memcpy(before, state->idle, (size_t)count * sizeof *before);
    state->idle_count = 0;
    for (int i = 0; i < truth->grant_count; i++) {
        uint64_t fence = truth->grants[i].fence;
        const struct client *client = truth->grants[i].peer->client;
        if (!client || client->closing || truth->grants[i].orphaned ||
            is_had(world, client, queue, fence, truth->span))
            continue;
        struct idle *idle = &state->idle[state->idle_count++];
        *idle = idle_of(world, before, count, fence);
        mrt_time until = idle_until(world, queue, idle, truth->others);
        if (!idle->due)
            rounds_begin(world, &idle->rounds);
        idle->due = world->now >= until;
        if (!idle->due)
            continue;
        bool over = rounds_over(world, client, &idle->rounds);
        if (over && world->now - until > idle_limit(world, queue))
            check_fail(world, client->index, queue, "ticket %llu lies idle for %lld us",
                       (unsigned long long)fence, (long long)(world->now - until) / 1000);
    }
}

void check_step(struct world *world)
{
    bool or_still = is_calm_or_still(world), calm = or_still && is_quiet(world);
    if (world->server_changed || world->owners_changed || !world->server->model->is_steady)
        for (int queue = 0; queue < world->drawn.queues; queue++)
            world->truths[queue].is_known = false;
    if (world_has(world, LOCK_ELECTION))
        election_check(world, calm && world->drawn.pg_pooled == 0, 3 * round_trip(world));
    for (int queue = 0; queue < world->drawn.queues; queue++) {
        check_queue(world, queue);
        if (or_still)
            check_idle(world, queue);
        else
            world->queues[queue].idle_count = 0; /* its steps meanwhile are not checked */
        if (world->resp)
            resp_check(world, queue, or_still, idle_limit(world, queue));
        if (world->server_changed)
            follow_truth(world, queue, check_truth(world, queue));
    }
    world->server_changed = world->owners_changed = false;
}

/* ------------------------------------------------------------- grants */

static void note_fence(struct queue_state *state, const struct grip *grip)
{
    if (grip->fence > state->last_fence)
        state->last_fence = grip->fence;
    if (grip->weight == state->recipe.capacity)
        state->last_alone = grip->fence;
}

static void check_fence(struct world *world, const struct client *client, const struct grip *grip)
{
    struct queue_state *state = &world->queues[grip->queue];
    struct truth truth;
    bool alone = grip->weight == state->recipe.capacity;
    if (world->drawn.model == MODEL_REDLOCK || world->drawn.model == MODEL_QUORUM ||
        world->drawn.pg_lag_us > 0)
        return; /* which has none; which goes back with the rest */
    uint64_t floor = alone ? state->last_fence : state->last_alone;
    if (grip->fence <= floor)
        check_fail(world, client->index, grip->queue, "fence %llu after %llu",
                   (unsigned long long)grip->fence, (unsigned long long)floor);
    note_fence(state, grip);
    if (state->recipe.capacity > 1)
        return;
    server_truth(world, grip->queue, client->peer, &truth);
    if (truth.lawless)
        return;
    if (truth.granted == 0)
        check_fail(world, client->index, grip->queue, "granted without a granted ticket");
    if (grip->fence < truth.fence || grip->fence - truth.fence >= truth.span)
        check_fail(world, client->index, grip->queue, "fence %llu is not of the ticket %llu",
                   (unsigned long long)grip->fence, (unsigned long long)truth.fence);
    if (world->drawn.budget_us == 0 && grip->fence != truth.fence && world->drawn.agents == 0)
        check_fail(world, client->index, grip->queue, "a hand-over though there is no budget");
}

/* No earlier waiter is passed over, if the order is strict or it has waited too long. */
static void check_order(struct world *world, const struct actor *actor)
{
    const struct client *client = actor->client;
    mrt_time now = client_now(client);
    if (world->queues[actor->queue].recipe.shared)
        return; /* the order is the store's */
    mrt_time fair = world->drawn.strict ? 0 : world->drawn.fair_us * MRT_MICROSECOND;
    for (int i = 0; i < world->drawn.actors; i++) {
        const struct actor *other = &client->actors[i];
        bool waits = (other->state == ACTOR_WAITING || other->state == ACTOR_WOKEN) &&
                     other->waiter.state != MRT_WAITER_DONE && !other->verifying &&
                     !other->detached;
        if (waits && other->queue == actor->queue && other->order < actor->order &&
            other->deadline > now && now - other->waiter.since >= fair)
            check_fail(world, client->index, actor->queue, "thread %d overtook thread %d",
                       actor->index, other->index);
    }
    if (multi_overtaken(client, actor->queue, actor->order, now - fair))
        check_fail(world, client->index, actor->queue, "thread %d overtook one that wants several",
                   actor->index);
}

/* A lingering client does not ask whether others wait: the store reports it, and if the report may
 * be lost or late, the next look shows it. */
static mrt_time untold_for(const struct world *world, int queue)
{
    if (world_linger(world, queue) == 0 || is_calm(world))
        return 0;
    return world->drawn.recheck_us * 5 / 4 * MRT_MICROSECOND;
}

/* A try does not wait for another thread. */
static void check_tries(struct world *world, const struct actor *actor)
{
    const struct client *client = actor->client;
    bool waits = multi_tries(client, actor->queue);
    if (world->queues[actor->queue].recipe.shared)
        return;
    for (int i = 0; i < world->drawn.actors; i++) {
        const struct actor *other = &client->actors[i];
        waits |= other != actor && other->waiter.try_only && other->queue == actor->queue &&
                 (other->state == ACTOR_WAITING || other->state == ACTOR_WOKEN) &&
                 other->waiter.state != MRT_WAITER_DONE;
    }
    if (waits)
        check_fail(world, client->index, actor->queue, "a try waits for thread %d", actor->index);
}

/* While others wait, a turn ends within the budget and the time it takes to learn of
   them: beyond the budget the engine asks, while one more thread may have the lock. */
static void check_budget(struct world *world, const struct client *client, int queue)
{
    const struct profile *p = &world->profile;
    struct queue_state *state = &world->queues[queue];
    mrt_time budget = p->budget_us * 5 / 4 * MRT_MICROSECOND + round_trip(world);
    budget += untold_for(world, queue);
    mrt_time more = round_trip(world);
    if (p->agents > 0) { /* the client that has it last has its own turn */
        more += budget;
        budget += AGENT_BUDGET * 5 / 4 + round_trip(world);
    }
    if (!is_quiet(world) || state->contended_since == MRT_TIME_NEVER ||
        world->now - state->contended_since < budget)
        return;
    if (state->overdue_since == MRT_TIME_NEVER)
        state->overdue_since = world->now;
    if (world->now - state->overdue_since > more)
        check_fail(world, client->index, queue, "a turn goes on %lld us after others came",
                   (long long)(world->now - state->contended_since) / 1000);
}

/* A turn goes on where it was, in other hands. */
static void check_adopted(struct world *world, struct actor *actor, struct grip *grip)
{
    struct queue_state *queue = &world->queues[grip->queue];
    detach_adopted(world, actor, grip);
    if (world->drawn.model == MODEL_ZK_LIBRARY)
        forget_revoked(world, grip);
    note_revoked(world, grip);
    note_fence(queue, grip);
    queue->contended_since = queue->overdue_since = MRT_TIME_NEVER;
    follow_turn(world, grip->queue);
}

void check_granted(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    if (mrt_hold_state(grip->hold, client_now(client)) == MORTISE_LOST)
        check_fail(world, client->index, grip->queue, "granted though it is lost already");
    grip->got = client_now(client);
    for (int a = 0; a < world->drawn.actors; a++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct grip *other = &client->actors[a].grips[g];
            if (other != grip && other->hold == grip->hold && other->generation == grip->generation)
                check_fail(world, client->index, grip->queue, "one hold granted to two");
        }
    if (check_was_broken(world, grip)) {
        grip->broken = true;
        grip->broken_at = world->now;
        return;
    }
    if (actor->detached) {
        check_adopted(world, actor, grip);
        return;
    }
    note_revoked(world, grip);
    check_fence(world, client, grip);
    check_order(world, actor);
    check_tries(world, actor);
    uint64_t asked_back = world->queues[grip->queue].asked_back;
    if (asked_back > 0 && !world->queues[grip->queue].recipe.shared &&
        is_of(world, grip->fence, asked_back))
        check_fail(world, client->index, grip->queue, "handed on though it was asked back");
    struct queue_state *queue = &world->queues[grip->queue];
    follow_turn(world, grip->queue);
    if (grip->fence == queue->turn_fence) /* the turn begins */
        queue->contended_since = queue->overdue_since = MRT_TIME_NEVER;
    follow_turn(world, grip->queue);
    if (queue->recipe.capacity == 1)
        check_budget(world, client, grip->queue);
}

/* ------------------------------------------------------------- commands */

static bool conflict(const struct mrt_command *a, const struct mrt_command *b)
{
    if (a->serial == b->serial)
        return true;
    if (!mrt_id_none(a->ticket) && a->queue && b->queue) /* an adopted ticket may come again */
        return mrt_id_equal(a->ticket, b->ticket) && mrt_id_equal(a->session, b->session);
    return a->type == b->type && mrt_id_equal(a->session, b->session) && !a->queue && !b->queue;
}

void check_refused(struct client *client, const struct mrt_command *command)
{
    if (command->type == MRT_APPEND && !command->adopt) /* which another may ask for */
        client->refused[client->refused_count++ % REFUSED_MAX] = command->ticket;
}

static bool was_refused(const struct client *client, const struct mrt_command *command)
{
    for (int i = 0; i < REFUSED_MAX && i < client->refused_count; i++)
        if (mrt_id_equal(client->refused[i], command->ticket))
            return command->type == MRT_APPEND;
    return false;
}

void check_submitted(struct world *world, struct client *client, const struct mrt_command *command)
{
    if (was_refused(client, command))
        check_fail(world, client->index, NO_QUEUE, "a ticket is asked for that was refused");
    struct mrt_command *free_slot = NULL;
    trace_note(world, TRACE_SUBMIT, client->index, NO_QUEUE, NULL, (int64_t)command->serial,
               command->type, (int64_t)command->ticket.low);
    if (command->serial == 0)
        check_fail(world, client->index, NO_QUEUE, "a command without a serial");
    for (int i = client->outstanding_count - 1; i >= 0; i--) {
        struct mrt_command *other = &client->outstanding[i];
        if (other->serial == 0)
            free_slot = other;
        else if (conflict(other, command))
            check_fail(world, client->index, NO_QUEUE,
                       "command %llu while %llu of the same is not answered",
                       (unsigned long long)command->serial, (unsigned long long)other->serial);
    }
    if (!free_slot && client->outstanding_count == OUTSTANDING_MAX)
        check_fail(world, client->index, NO_QUEUE, "too many commands outstanding");
    if (!free_slot)
        free_slot = &client->outstanding[client->outstanding_count++];
    *free_slot = *command;
}

void check_answered(struct world *world, struct client *client, const struct mrt_event *event)
{
    if (event->serial == 0)
        return;
    for (int i = client->outstanding_count - 1; i >= 0; i--)
        if (client->outstanding[i].serial == event->serial) {
            client->outstanding[i].serial = 0;
            while (client->outstanding_count > 0 &&
                   client->outstanding[client->outstanding_count - 1].serial == 0)
                client->outstanding_count--;
            return;
        }
    if (world->drawn.late_answer == 0)
        check_fail(world, client->index, NO_QUEUE, "the model answered %llu twice",
                   (unsigned long long)event->serial);
}

/* ------------------------------------------------------------- time and counts */

void check_ticked(struct world *world, struct client *client)
{
    mrt_time now = client_now(client);
    for (int i = 0; !client->closing && i < world->drawn.actors; i++) {
        const struct actor *actor = &client->actors[i];
        if (actor->state == ACTOR_WAITING && actor->waiter.deadline <= now)
            check_fail(world, client->index, actor->queue, "thread %d waits past its deadline", i);
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct grip *grip = &actor->grips[g];
            if (grip->hold && grip->told != MORTISE_LOST &&
                mrt_hold_state(grip->hold, now) == MORTISE_LOST)
                check_fail(world, client->index, grip->queue, "a loss is not told");
        }
    }
}

void check_closing(struct client *client)
{
    for (int i = 0; i < client->world->drawn.actors; i++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct grip *grip = &client->actors[i].grips[g];
            if (grip->hold && grip->told != MORTISE_LOST &&
                mrt_hold_state(grip->hold, client_now(client)) == MORTISE_LOST)
                client->losses++;
        }
}

static void check_count(struct world *world, const struct client *client, const char *what,
                        uint64_t counted, uint64_t seen)
{
    if (counted != seen)
        check_fail(world, client->index, NO_QUEUE, "counted %llu %s, but there were %llu",
                   (unsigned long long)counted, what, (unsigned long long)seen);
}

void check_counters(struct world *world, struct client *client)
{
    const struct mrt_engine_counters *counters = mrt_engine_counters(client->engine);
    check_count(world, client, "acquisitions", counters->acquisitions, client->acquisitions);
    check_count(world, client, "nested acquisitions", counters->nested, client->nested);
    check_count(world, client, "losses", counters->losses, client->losses);
    check_count(world, client, "commands", counters->commands, client->commands);
    if (counters->handovers > counters->acquisitions)
        check_fail(world, client->index, NO_QUEUE, "more hand-overs than acquisitions");
}
