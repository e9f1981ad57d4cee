/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of agents whose commands users send: see agent_command.h. It is a file in memory,
 * which is replaced now and then, and then each agent gets a signal (SIGHUP). The agent's worker,
 * which reads it, is none here: it has read it as soon as it is asked to.
 *
 * An agent reads a command by the rules that it had then, which are known here: the simulator sees
 * when it takes a policy over, and when it reads the bytes.
 */
#include "agent_command.h"

#include "agent/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_USER 1000
#define FIRST_OF_LIBRARY 2000
#define TEXT_MAX 2048

void __wrap_mrt_worker_begin(struct mrt_worker *worker, struct mrt_operation *operation);
struct mrt_operation *__wrap_mrt_worker_next(struct mrt_worker *worker);

/* ------------------------------------------------------------------ the file */

static struct policy draw(struct world *world)
{
    struct random *random = &world->random;
    struct policy policy = {0};
    for (int i = 0; i < world->drawn.users; i++) {
        struct user_policy *user = &policy.users[i];
        int64_t right = random_below(random, 12);
        user->acquires = right < 9;
        user->shares = right < 11;
        user->first_alone = random_below(random, 6) == 0;
        user->connections = random_between(random, 1, 4);
        user->tickets = random_between(random, 1, 5);
        user->names = random_between(random, 1, 3);
        user->waiters = random_between(random, 1, 4);
        if (random_below(random, 2))
            user->hold_ms = 1 + world_some(world, 2 * world->drawn.hold_us) / MRT_MILLISECOND;
    }
    return policy;
}

static size_t write_user(char *text, size_t room, int number, const struct user_policy *user)
{
    size_t size = 0;
    if (user->acquires || user->shares)
        size =
            (size_t)snprintf(text, room, "allow user %d %s on lock%s\n", FIRST_USER + number,
                             user->acquires ? "acquire" : "shared", user->first_alone ? "0" : "");
    size += (size_t)snprintf(text + size, room - size,
                             "limit user %d connections %lld tickets %lld names %lld waiters %lld",
                             FIRST_USER + number, (long long)user->connections,
                             (long long)user->tickets, (long long)user->names,
                             (long long)user->waiters);
    if (user->hold_ms > 0)
        size +=
            (size_t)snprintf(text + size, room - size, " hold %lldms", (long long)user->hold_ms);
    return size + (size_t)snprintf(text + size, room - size, "\n");
}

static void write_file(struct resp_world *resp)
{
    char text[TEXT_MAX];
    size_t size = 0;
    const struct policy *policy = &resp->policies[resp->policy_count - 1];
    for (int i = 0; i < resp->world->drawn.users; i++)
        size += write_user(text + size, sizeof text - size, i, &policy->users[i]);
    for (int i = 0; resp->world->drawn.user_hold_us > 0 && i < resp->world->drawn.clients; i++)
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 "allow user %d acquire list cells adopt on *\n"
                                 "limit user %d hold %lldms\n",
                                 FIRST_OF_LIBRARY + i, FIRST_OF_LIBRARY + i,
                                 (long long)(1 + resp->world->drawn.user_hold_us / 1000));
    if (ftruncate(resp->file, 0) != 0 || pwrite(resp->file, text, size, 0) != (ssize_t)size)
        abort();
}

static void replace(struct world *world, struct task *task)
{
    struct resp_world *resp = world->resp;
    if (resp->policy_count == POLICIES_MAX || world->phase != PHASE_CHAOS)
        return;
    resp->policies[resp->policy_count++] = draw(world);
    write_file(resp);
    trace_note(world, TRACE_PHASE, -1, NO_QUEUE, "another policy", (int64_t)resp->policy_count, 0,
               0);
    for (int i = 0; i < world->drawn.agents; i++) {
        agent_of(world, i)->is_renewed = true;
        agent_ready(agent_of(world, i));
    }
    world_at(world, task, world->now + world_about(world, resp->policy_every_us), replace);
}

void policy_begin(struct world *world)
{
    struct resp_world *resp = world->resp;
    const struct profile *p = &world->drawn;
    resp->file = -1;
    if (p->users + p->user_hold_us == 0)
        return;
    resp->file = memfd_create("policy", MFD_CLOEXEC);
    if (resp->file < 0 || fchmod(resp->file, 0600) != 0)
        abort();
    snprintf(resp->path, sizeof resp->path, "/proc/self/fd/%d", resp->file);
    resp->policies[resp->policy_count++] = draw(world);
    write_file(resp);
    resp->policy_every_us = p->operations * (p->hold_us + p->think_us) / 2 + 1000;
    world_at(world, &resp->policy, world_about(world, resp->policy_every_us), replace);
}

void policy_end(struct resp_world *resp)
{
    if (resp->file >= 0)
        close(resp->file);
}

const char *policy_path(const struct world *world)
{
    return world->resp && world->resp->file >= 0 ? world->resp->path : NULL;
}

/* ------------------------------------------------------------------ the agent */

uint32_t policy_worker_state(const struct agent_host *agent)
{
    return agent->worker && !STAILQ_EMPTY(&agent->worker->done) ? EPOLLIN : 0;
}

void policy_read_at_start(struct agent_host *agent)
{
    const struct resp_world *resp = agent->client.world->resp;
    agent->policy = agent->policy_checked = resp ? resp->policy_count : 0;
}

void __wrap_mrt_worker_begin(struct mrt_worker *worker, struct mrt_operation *operation)
{
    if (operation->kind != MRT_OPERATION_POLICY)
        abort();
    operation->error = mrt_access_read(operation->name, &operation->access);
    if (operation->error != MORTISE_OK)
        abort();
    host_current->client->agent->policy_read = host_current->client->world->resp->policy_count;
    STAILQ_INSERT_TAIL(&worker->done, operation, link);
}

struct mrt_operation *__wrap_mrt_worker_next(struct mrt_worker *worker)
{
    struct mrt_operation *operation = STAILQ_FIRST(&worker->done);
    struct agent_host *agent = host_current->client->agent;
    if (!operation)
        return NULL;
    STAILQ_REMOVE_HEAD(&worker->done, link);
    if (STAILQ_EMPTY(&worker->done))
        agent->policy = agent->policy_read;
    return operation;
}

bool policy_rests(const struct mrt_agent *agent)
{
    const struct mrt_user *user, *next;
    HASH_ITER (hh, agent->users, user, next)
        if (user->connections + user->tickets + user->bytes > 0 || user->names)
            return false;
    return true;
}

/* ------------------------------------------------------------------ users */

int64_t resp_user(const struct client *client)
{
    const struct world *world = client->world;
    int64_t number = client->index - RESP_INDEX;
    if (client->index < CLIENTS_MAX && world->drawn.user_hold_us > 0)
        return FIRST_OF_LIBRARY + client->index;
    if (number < 0 || world->drawn.users == 0)
        return 0;
    number %= world->drawn.users + 1;
    return number < world->drawn.users ? FIRST_USER + number : 0; /* the agent's own */
}

static const struct user_policy *policy_of(const struct dialogue *dialogue,
                                           const struct asked *asked)
{
    const struct client *client = &dialogue->client->client;
    int64_t user = resp_user(client);
    return user == 0 || asked->policy == 0
               ? NULL
               : &client->world->resp->policies[asked->policy - 1].users[user - FIRST_USER];
}

static bool allows(const struct user_policy *user, const struct asked *asked)
{
    bool reads = asked->reads && user->shares;
    return (user->acquires || reads) && (asked->queue == 0 || !user->first_alone);
}

bool policy_refuses(const struct dialogue *dialogue, const struct asked *asked)
{
    const struct user_policy *user = policy_of(dialogue, asked);
    if (resp_user(&dialogue->client->client) == 0)
        return false;
    return !user || !allows(user, asked);
}

mrt_time policy_longest(const struct dialogue *dialogue, const struct asked *asked)
{
    const struct user_policy *user = policy_of(dialogue, asked);
    mrt_time longest = mrt_time_from_ms(asked->longest_ms);
    mrt_time most = user ? mrt_time_from_ms(user->hold_ms) : 0;
    return most == 0 || (longest > 0 && longest < most) ? longest : most;
}

bool policy_extends(const struct dialogue *dialogue, const struct asked *asked,
                    const struct resp_hold *hold, int64_t ms)
{
    const struct user_policy *user = policy_of(dialogue, asked);
    return !user || user->hold_ms == 0 ||
           asked->sent + mrt_time_from_ms(ms) <= hold->got + mrt_time_from_ms(user->hold_ms);
}

/* It may have ended by its own time, which its client need not know yet. */
static bool may_have_ended(const struct resp_client *owner, const struct resp_hold *hold)
{
    return client_now(&owner->client) + MRT_MILLISECOND > hold->at_least;
}

/* The locks of the dialogue's user at its agent that he had when that read a LOCK of this order;
 *names: and their names, with this one. */
static int64_t count_before(const struct dialogue *dialogue, const struct asked *asked,
                            int64_t *names)
{
    const struct client *client = &dialogue->client->client;
    const struct resp_world *resp = client->world->resp;
    unsigned seen = 1U << asked->queue;
    int64_t count = 0;
    for (int i = 0; i < resp->count; i++)
        for (int d = 0; d < resp->clients[i].count; d++)
            for (int h = 0; h < RESP_HOLDS_MAX; h++) {
                const struct resp_client *other = &resp->clients[i];
                const struct resp_hold *hold = &other->dialogues[d].holds[h];
                if (!hold->is_there || hold->is_given_back || hold->order == 0 ||
                    hold->order >= asked->order || hold->agent != asked->agent ||
                    may_have_ended(other, hold) || other->dialogues[d].has_ended ||
                    resp_user(&other->client) != resp_user(client))
                    continue;
                count++;
                seen |= 1U << hold->queue;
            }
    *names = __builtin_popcount(seen);
    return count;
}

void policy_check_granted(const struct dialogue *dialogue, const struct asked *asked)
{
    const struct user_policy *user = policy_of(dialogue, asked);
    int64_t names;
    if (!user)
        return;
    if (!allows(user, asked))
        resp_fail(dialogue, asked->queue, "granted against the policy");
    int64_t before = count_before(dialogue, asked, &names);
    if (before >= user->tickets)
        resp_fail(dialogue, asked->queue, "a user has %lld locks and gets one more, limit %lld",
                  (long long)before, (long long)user->tickets);
    if (names > user->names)
        resp_fail(dialogue, asked->queue, "a user has locks of %lld names, limit %lld",
                  (long long)names, (long long)user->names);
}

/* How many connections the agent may have accepted for a user in this turn, in which it may have
   taken another policy over. */
static int64_t most_connections(const struct agent_host *agent, int user)
{
    const struct policy *policies = agent->client.world->resp->policies;
    int64_t before = policies[agent->policy_checked - 1].users[user].connections;
    int64_t now = policies[agent->policy - 1].users[user].connections;
    return before > now ? before : now;
}

/* A user has as many connections as he may, or, if that has become less, no more than before. */
void policy_check_connections(struct agent_host *agent)
{
    struct world *world = agent->client.world;
    if (!policy_path(world) || agent->policy == 0 || !agent->runs)
        return;
    for (int i = 0; i < world->drawn.users; i++) {
        const struct agent_socket *own;
        int64_t count = 0, most = most_connections(agent, i);
        TAILQ_FOREACH (own, &agent->sockets, link)
            count += own->accepted && own->socket.uid == FIRST_USER + i;
        if (count > most && count > agent->connections[i]) {
            host_current = NULL; /* a client may wait for the agent */
            check_fail(world, agent->client.index, NO_QUEUE,
                       "user %d has %lld connections, limit %lld", FIRST_USER + i, (long long)count,
                       (long long)most);
        }
        agent->connections[i] = count;
    }
    agent->policy_checked = agent->policy;
}
