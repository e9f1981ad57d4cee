/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tickets by which agents have mutexes for clients of their commands, as the server knows them.
 *
 * Where nothing goes wrong, such a ticket is had by one of these clients, or goes to the next one,
 * or is given back once somebody waits at the server; if nobody wants it, after a second (linger).
 * Within that second the next LOCK gets it again, unless it was queued for a client with the
 * library when there was no LOCK. While others wait at the server, a turn of the agent ends: by its
 * budget, and the time that it takes to learn of them.
 */
#include "agent_command.h"

#include <string.h>

#define LINGER MRT_SECOND            /* src/agent/lock.c */
#define BUDGET (2 * MRT_MILLISECOND) /* src/agent/agent.c */
#define SPAN_MIN 1000                /* fences: a ticket that has fewer is left before */

static bool is_mutex(const struct world *world, int queue)
{
    return !world->queues[queue].recipe.shared;
}

/* The agent that has the mutex by a ticket of its own; NULL: none, or one that is dead. */
static const struct agent_host *find_holder(struct world *world, int queue, struct truth *truth)
{
    const struct server plain = {.model = &memory_model};
    void *memory = *(void **)world->server->state; /* its first member */
    truth_begin(truth, &plain, queue);
    memory_model.truth(world, memory, queue, NULL, truth);
    truth->server = world->server;
    if (truth->grant_count != 1 || truth->fence != truth->grants[0].fence ||
        agent_model.owner(world->server->state, queue, truth->fence) || !truth->peer->client)
        return NULL;
    return truth->peer->client->agent;
}

static void follow(struct world *world, int queue)
{
    struct resp_turn *turn = &world->resp->turns[queue];
    struct truth truth;
    const struct agent_host *holder = find_holder(world, queue, &truth);
    if (!holder || turn->holder != holder || turn->fence != truth.fence)
        *turn = (struct resp_turn){.holder = holder,
                                   .fence = holder ? truth.fence : 0,
                                   .span = truth.span,
                                   .idle_since = world->now,
                                   .contended_since = MRT_TIME_NEVER,
                                   .overdue_since = MRT_TIME_NEVER};
    world->resp->contentions[queue] += truth.others;
    turn->was_contended |= truth.others;
    if (!truth.others)
        turn->contended_since = turn->overdue_since = MRT_TIME_NEVER;
    else if (turn->contended_since == MRT_TIME_NEVER)
        turn->contended_since = world->now;
}

/* Whether one of the agent's clients has the lock; and since when one waits for it. */
static bool is_had(struct world *world, int queue, const struct agent_host *agent,
                   mrt_time *waits_since)
{
    bool had = false;
    *waits_since = MRT_TIME_NEVER;
    for (int i = 0; i < world->resp->count; i++)
        for (int d = 0; d < world->resp->clients[i].count; d++) {
            struct dialogue *dialogue = &world->resp->clients[i].dialogues[d];
            if (agent_for(&dialogue->client->client) != agent)
                continue;
            had |= dialogue_hold(dialogue, queue) != NULL;
            for (int a = 0; a < dialogue->asked_count; a++)
                if (dialogue->asked[a].verb == VERB_LOCK && dialogue->asked[a].queue == queue)
                    *waits_since = mrt_time_min(*waits_since, dialogue->asked[a].since);
        }
    return had;
}

static void check_idle(struct world *world, int queue, mrt_time limit)
{
    struct resp_turn *turn = &world->resp->turns[queue];
    mrt_time waits_since, until;
    bool had = is_had(world, queue, turn->holder, &waits_since);
    if (had || turn->is_had)
        turn->idle_since = world->now;
    turn->is_had = had;
    if (had)
        return;
    until = mrt_time_min(turn->contended_since, waits_since);
    until = until < turn->idle_since ? turn->idle_since : until;
    until = mrt_time_min(until, turn->idle_since + LINGER * 5 / 4);
    if (world->now > until + limit)
        check_fail(world, turn->holder->client.index, queue,
                   "ticket %llu lies idle for %lld us, and is waited for%s",
                   (unsigned long long)turn->fence,
                   (long long)(world->now - turn->idle_since) / 1000,
                   waits_since != MRT_TIME_NEVER             ? " here"
                   : turn->contended_since != MRT_TIME_NEVER ? " at the server"
                                                             : " by nobody");
}

/* A command that waits for no lock is answered immediately. */
static void check_answers(const struct world *world, mrt_time limit)
{
    for (int i = 0; i < world->resp->count; i++)
        for (int d = 0; d < world->resp->clients[i].count; d++) {
            const struct dialogue *dialogue = &world->resp->clients[i].dialogues[d];
            const struct asked *first = &dialogue->asked[0];
            if (dialogue->asked_count > 0 && first->verb != VERB_LOCK && !dialogue->has_ended &&
                world->now - dialogue->first_since > limit && world->now - first->since > limit &&
                check_keeps_sessions(world, first->since))
                resp_fail(dialogue, first->queue, "command %d is answered late", first->verb);
        }
}

void resp_check(struct world *world, int queue, bool calm, mrt_time limit)
{
    if (!check_keeps_sessions(world, 0))
        world->resp->calm_since = world->now + 1;
    if (!is_mutex(world, queue))
        return;
    if (world->server_changed)
        follow(world, queue);
    struct resp_turn *turn = &world->resp->turns[queue];
    if (!calm)
        turn->idle_since = world->now;
    else if (turn->holder)
        check_idle(world, queue, limit);
    if (calm)
        check_answers(world, limit);
    world->resp->limit = calm ? limit : MRT_TIME_NEVER;
}

/* An agent that has seen others behind its ticket, or was asked to give it up, need not keep it. */
uint64_t resp_expected(const struct world *world, const struct agent_host *agent, int queue)
{
    const struct resp_turn *turn = &world->resp->turns[queue];
    bool keeps = turn->holder == agent && !turn->was_contended &&
                 world->drawn.revoke_every_us == 0 && world->now - turn->idle_since < LINGER / 2;
    return keeps && agent_keeps(world, agent, queue, turn->fence) ? turn->fence : 0;
}

void resp_check_turn(struct dialogue *dialogue, const struct asked *asked, uint64_t fence)
{
    struct world *world = dialogue->client->client.world;
    struct resp_turn *turn = &world->resp->turns[asked->queue];
    mrt_time limit = world->resp->limit;
    if (!is_mutex(world, asked->queue) || limit == MRT_TIME_NEVER)
        return;
    if (asked->expected > 0 && asked->contentions == world->resp->contentions[asked->queue] &&
        fence - asked->expected >= turn->span && turn->span >= SPAN_MIN &&
        world->now - asked->since < LINGER / 4)
        resp_fail(dialogue, asked->queue, "ticket %llu was not kept",
                  (unsigned long long)asked->expected);
    if (fence - turn->fence >= turn->span || turn->contended_since == MRT_TIME_NEVER ||
        asked->since - turn->contended_since < BUDGET * 5 / 4 + limit)
        return;
    if (turn->overdue_since == MRT_TIME_NEVER)
        turn->overdue_since = world->now;
    if (world->now - turn->overdue_since > limit)
        resp_fail(dialogue, asked->queue, "a turn goes on %lld us after others came",
                  (long long)(world->now - turn->contended_since) / 1000);
}
