/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promises of the agent to clients of its commands: see agent_command.h.
 *
 * The order. The agent gives a mutex to LOCKs in the order in which it has read them. Its fences
 * grow with each grant, so the order of two LOCKs is compared with that of their fences.
 */
#include "agent_command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void resp_fail(const struct dialogue *dialogue, int queue, const char *format, ...)
{
    char text[256];
    const struct client *client = &dialogue->client->client;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    host_current = NULL;
    check_fail(client->world, client->index, queue, "connection %d: %s", dialogue->index, text);
}

/* ------------------------------------------------------------------ belief */

static bool is_broken(const struct world *world, const struct resp_hold *hold)
{
    return check_was_broken(world,
                            &(const struct grip){.queue = hold->queue, .fence = hold->fence});
}

/* Nothing can end a session, and nothing could since the lock was granted. */
static bool is_calm(const struct world *world, mrt_time since)
{
    return check_keeps_sessions(world, since) && since >= world->resp->calm_since;
}

static bool is_believed(const struct world *world, const struct dialogue *dialogue,
                        const struct resp_hold *hold)
{
    mrt_time now = client_now(&dialogue->client->client);
    if (!hold->is_there || hold->is_given_back || is_broken(world, hold))
        return false;
    return now < hold->until ||
           (is_calm(world, hold->granted) && !dialogue->has_ended && now < hold->at_least);
}

uint64_t resp_weight(struct world *world, int queue)
{
    uint64_t sum = 0;
    for (int i = 0; world->resp && i < world->resp->count; i++)
        for (int d = 0; d < world->resp->clients[i].count; d++)
            for (int h = 0; h < RESP_HOLDS_MAX; h++) {
                const struct dialogue *dialogue = &world->resp->clients[i].dialogues[d];
                const struct resp_hold *hold = &dialogue->holds[h];
                if (hold->queue == queue && is_believed(world, dialogue, hold))
                    sum += hold->weight;
            }
    return sum;
}

/* Nobody has been granted the lock after a client that holds it. */
static void check_fence(struct dialogue *dialogue, const struct resp_hold *hold)
{
    struct world *world = dialogue->client->client.world;
    struct queue_state *state = &world->queues[hold->queue];
    bool alone = hold->weight == state->recipe.capacity;
    if (!is_believed(world, dialogue, hold))
        return;
    uint64_t floor = alone ? state->last_fence : state->last_alone;
    if (hold->fence < floor)
        resp_fail(dialogue, hold->queue, "it holds by fence %llu, and %llu was granted",
                  (unsigned long long)hold->fence, (unsigned long long)floor);
    if (hold->fence > state->last_fence)
        state->last_fence = hold->fence;
    if (alone)
        state->last_alone = hold->fence;
}

/* Whether a hold may be found lost, or so near its end that not a millisecond is left. */
static bool may_be_lost(const struct dialogue *dialogue, const struct resp_hold *hold)
{
    const struct world *world = dialogue->client->client.world;
    return !is_calm(world, hold->granted) || is_broken(world, hold) ||
           client_now(&dialogue->client->client) + MRT_MILLISECOND > hold->at_least;
}

/* A store without leases is of the host, and has its clock; here it has another one, by which a
   delay may be shorter than it was promised. */
static mrt_time on_slowest_clock(const struct world *world, mrt_time promised)
{
    return world->drawn.lease_us > 0 ? promised
                                     : promised / 1000000 * (1000000 - 2 * world->drawn.drift_ppm);
}

void resp_promised(struct dialogue *dialogue, const struct asked *asked, int64_t ms)
{
    struct resp_hold *hold = dialogue_hold(dialogue, asked->queue);
    mrt_time until = asked->sent + mrt_time_from_ms(ms);
    if (!hold)
        resp_fail(dialogue, asked->queue, "HELD has replied %lld without a hold", (long long)ms);
    if (ms > 0 && hold->at_most != MRT_TIME_NEVER && until > hold->at_most)
        resp_fail(dialogue, asked->queue, "HELD promises more than the hold's own time");
    if (ms == 0 && !may_be_lost(dialogue, hold))
        resp_fail(dialogue, asked->queue, "a hold was lost without a cause");
    until = asked->sent + on_slowest_clock(dialogue->client->client.world, mrt_time_from_ms(ms));
    if (ms > 0 && until > hold->until)
        hold->until = until;
    check_fence(dialogue, hold);
}

/* ------------------------------------------------------------------ grants */

void resp_taken(const struct stream *stream, uint64_t bytes)
{
    struct world *world = stream->client->world;
    const struct agent_host *agent = agent_of(world, stream->server);
    for (int i = 0; world->resp && i < world->resp->count; i++)
        for (int d = 0; d < world->resp->clients[i].count; d++) {
            struct dialogue *dialogue = &world->resp->clients[i].dialogues[d];
            struct asked *first = &dialogue->asked[0];
            if (dialogue->stream != stream || dialogue->asked_count == 0 || first->agent ||
                first->ends > bytes)
                continue;
            first->order = ++world->resp->order;
            first->agent = agent->client.peer;
            first->policy = agent->policy;
        }
}

/* A later LOCK has a larger fence. */
static void check_order(const struct dialogue *dialogue, const struct take *take)
{
    const struct resp_world *resp = dialogue->client->client.world->resp;
    for (size_t i = 0; i < TAKES_MAX && i < resp->take_count; i++) {
        const struct take *other = &resp->takes[i];
        if (other->agent == take->agent && other->queue == take->queue &&
            (other->order < take->order) != (other->fence < take->fence))
            resp_fail(dialogue, take->queue, "fences %llu and %llu are not in the order of LOCKs",
                      (unsigned long long)other->fence, (unsigned long long)take->fence);
    }
}

static void note_take(const struct dialogue *dialogue, const struct asked *asked, uint64_t fence)
{
    struct world *world = dialogue->client->client.world;
    const struct take take = {
        .agent = asked->agent, .queue = asked->queue, .order = asked->order, .fence = fence};
    if (asked->order == 0 || world->queues[asked->queue].recipe.shared)
        return; /* there the order is the store's */
    check_order(dialogue, &take);
    world->resp->takes[world->resp->take_count++ % TAKES_MAX] = take;
}

void resp_granted(struct dialogue *dialogue, const struct asked *asked, uint64_t fence)
{
    struct world *world = dialogue->client->client.world;
    mrt_time now = client_now(&dialogue->client->client);
    struct resp_hold *hold = dialogue_hold(dialogue, asked->queue);
    if (hold && (!asked->again || is_believed(world, dialogue, hold)))
        resp_fail(dialogue, asked->queue, "LOCK is granted beside a hold of the same connection");
    if (!hold)
        hold = &dialogue->holds[dialogue->holds[0].is_there];
    if (fence == 0)
        resp_fail(dialogue, asked->queue, "LOCK is granted without a fence");
    *hold = (struct resp_hold){.is_there = true,
                               .queue = asked->queue,
                               .fence = fence,
                               .weight = asked->weight,
                               .order = asked->order,
                               .agent = asked->agent,
                               .granted = world->now,
                               .got = now,
                               .is_given_back = dialogue->has_quit,
                               .at_least = MRT_TIME_NEVER,
                               .at_most = MRT_TIME_NEVER};
    mrt_time longest = policy_longest(dialogue, asked);
    if (longest > 0) {
        hold->at_least = asked->sent + longest;
        hold->at_most = now + longest;
    }
    policy_check_granted(dialogue, asked);
    dialogue->hold_until = now + world_some(world, world->drawn.hold_us);
    world->operations++;
    note_take(dialogue, asked, fence);
    agent_locked(world, asked->queue, fence);
    resp_check_turn(dialogue, asked, fence);
    check_fence(dialogue, hold);
}

/* ------------------------------------------------------------------ refusals */

static bool starts(const char *line, const char *word)
{
    size_t size = strlen(word);
    return strncmp(line, word, size) == 0 && line[size] == ' ';
}

static bool may_refuse(const struct dialogue *dialogue, const struct asked *asked, const char *line)
{
    const struct world *world = dialogue->client->client.world;
    mrt_time waited = client_now(&dialogue->client->client) - asked->sent;
    if (starts(line, "BUSY"))
        return asked->ms == 0;
    if (starts(line, "TIMEOUT"))
        return asked->ms > 0 && waited >= mrt_time_from_ms(asked->ms);
    if (starts(line, "CANCELLED"))
        return dialogue_has_asked(dialogue, VERB_CANCEL) || dialogue->has_quit;
    if (starts(line, "DEADLOCK"))
        return asked->again;
    if (starts(line, "FULL"))
        return resp_user(&dialogue->client->client) > 0;
    if (starts(line, "NOPERM"))
        return policy_refuses(dialogue, asked);
    if (starts(line, "AGAIN"))
        return world->drawn.agent_signal_every_us > 0;
    return starts(line, "STORE") && !is_calm(world, asked->since);
}

/* A second LOCK of a name finds that the hold was lost, and takes its place. */
static void replace(struct dialogue *dialogue, struct resp_hold *hold)
{
    if (is_believed(dialogue->client->client.world, dialogue, hold))
        resp_fail(dialogue, hold->queue, "another LOCK has taken the place of a hold");
    hold->is_there = false;
}

void resp_check_error(struct dialogue *dialogue, const struct asked *asked, const char *line)
{
    struct resp_hold *hold = dialogue_hold(dialogue, asked->queue);
    bool has_it = hold && hold->fence == asked->fence;
    bool may = false;
    switch (asked->verb) {
    case VERB_LOCK:
        may = may_refuse(dialogue, asked, line);
        break;
    case VERB_HELD:
        may = starts(line, "NOTHELD") && !hold;
        break;
    case VERB_UNLOCK:
    case VERB_EXTEND:
        may = !has_it || hold->is_doubted ? starts(line, "NOTHELD") : false;
        may |= has_it && starts(line, "LOST") &&
               (may_be_lost(dialogue, hold) || asked->verb == VERB_EXTEND);
        break;
    default:
        may = starts(line, "ERR Protocol");
    }
    if (!may)
        resp_fail(dialogue, asked->queue, "command %d is answered by %.60s", asked->verb, line);
    if (hold && asked->again && !starts(line, "DEADLOCK") && !starts(line, "AGAIN") &&
        !starts(line, "NOPERM"))
        replace(dialogue, hold);
}
