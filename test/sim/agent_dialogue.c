/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next words of a connection: see agent_command.h. A step of its own comes after a while; a
 * reply is followed by one once all commands are answered. A dialogue that waits for a lock says
 * nothing that would make it wait for another one too, and waits for larger numbers only than it
 * has: so no circle of dialogues waits.
 */
#include "agent_command.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAUSE_US 100000 /* before a client that found no agent comes again */
#define WORD_SIZE 32

static void step(struct world *world, struct task *task);

static struct world *world_of(const struct dialogue *dialogue)
{
    return dialogue->client->client.world;
}

static int64_t below(const struct dialogue *dialogue, int64_t limit)
{
    return random_below(&world_of(dialogue)->random, limit);
}

static bool happens(const struct dialogue *dialogue, int64_t chance)
{
    return random_chance(&world_of(dialogue)->random, chance);
}

void dialogue_step_in(struct dialogue *dialogue, int64_t limit_us)
{
    struct world *world = world_of(dialogue);
    world_at(world, &dialogue->step, world->now + MRT_MICROSECOND + world_some(world, limit_us),
             step);
}

bool dialogue_has_asked(const struct dialogue *dialogue, enum verb verb)
{
    for (int i = 0; i < dialogue->asked_count; i++)
        if (dialogue->asked[i].verb == verb)
            return true;
    return false;
}

struct resp_hold *dialogue_hold(struct dialogue *dialogue, int queue)
{
    for (int i = 0; i < RESP_HOLDS_MAX; i++)
        if (dialogue->holds[i].is_there && dialogue->holds[i].queue == queue)
            return &dialogue->holds[i];
    return NULL;
}

/* Of those that were not given back, the one of the largest number; NULL: there is none. */
static struct resp_hold *last_hold(struct dialogue *dialogue)
{
    struct resp_hold *last = NULL;
    for (int i = 0; i < RESP_HOLDS_MAX; i++) {
        struct resp_hold *hold = &dialogue->holds[i];
        if (hold->is_there && !hold->is_given_back && (!last || hold->queue > last->queue))
            last = hold;
    }
    return last;
}

bool dialogue_idle(const struct dialogue *dialogue)
{
    for (int i = 0; i < RESP_HOLDS_MAX; i++)
        if (dialogue->holds[i].is_there)
            return false;
    return dialogue->operations == 0 && dialogue->asked_count == 0;
}

void dialogue_forget(struct dialogue *dialogue)
{
    world_cancel(world_of(dialogue), &dialogue->step);
    memset(dialogue->holds, 0, sizeof dialogue->holds);
    dialogue->asked_count = 0;
    dialogue->used = 0;
    dialogue->sent = 0;
    dialogue->fd = -1;
    dialogue->stream = NULL;
    dialogue->has_ended = dialogue->has_babbled = dialogue->has_quit = false;
    dialogue->has_reply = false;
    dialogue->was_cancelled = false;
}

void dialogue_begin(struct dialogue *dialogue, int64_t operations)
{
    dialogue->operations = operations;
    dialogue_step_in(dialogue, world_of(dialogue)->drawn.think_us);
}

/* ------------------------------------------------------------------ the commands */

/* One that has no words but its name and that of a lock. */
static void say(struct dialogue *dialogue, enum verb verb, const char *name, int queue)
{
    const char *lock = queue == NO_QUEUE ? NULL : world_of(dialogue)->queues[queue].name;
    const char *const words[] = {name, lock, NULL};
    dialogue_say(dialogue, (struct asked){.verb = verb, .queue = queue}, words);
}

static void say_held(struct dialogue *dialogue, int queue)
{
    say(dialogue, VERB_HELD, "HELD", queue);
}

static void say_ping(struct dialogue *dialogue)
{
    char number[WORD_SIZE];
    int64_t count = (int64_t)++world_of(dialogue)->resp->number;
    snprintf(number, sizeof number, "%" PRId64, count);
    const char *const words[] = {"PING", number, NULL};
    dialogue_say(dialogue, (struct asked){.verb = VERB_PING, .queue = NO_QUEUE, .ms = count},
                 words);
}

/* `wrong`: by a fence that is not its own. */
static void say_unlock(struct dialogue *dialogue, struct resp_hold *hold, bool wrong)
{
    char fence[WORD_SIZE];
    const struct asked asked = {
        .verb = VERB_UNLOCK, .queue = hold->queue, .fence = hold->fence + wrong};
    snprintf(fence, sizeof fence, "%" PRIu64, asked.fence);
    const char *const words[] = {"unlock", world_of(dialogue)->queues[hold->queue].name, fence,
                                 NULL};
    hold->is_given_back |= !wrong;
    dialogue_say(dialogue, asked, words);
}

/* It may end a hold earlier than HELD has promised. */
static void say_extend(struct dialogue *dialogue, struct resp_hold *hold)
{
    char fence[WORD_SIZE], ms[WORD_SIZE];
    const struct asked asked = {
        .verb = VERB_EXTEND,
        .queue = hold->queue,
        .fence = hold->fence,
        .ms = 1 + world_some(world_of(dialogue), world_of(dialogue)->drawn.hold_max_us) /
                      MRT_MILLISECOND};
    snprintf(fence, sizeof fence, "%" PRIu64, hold->fence);
    snprintf(ms, sizeof ms, "%" PRId64, asked.ms);
    const char *const words[] = {"EXTEND", world_of(dialogue)->queues[hold->queue].name, fence, ms,
                                 NULL};
    mrt_time ends = client_now(&dialogue->client->client) + mrt_time_from_ms(asked.ms);
    if (resp_user(&dialogue->client->client) > 0) /* whose policy may have become another one */
        ends = 0;
    if (hold->until > ends)
        hold->until = ends;
    hold->at_least = 0; /* until the reply is there, nobody knows */
    hold->at_most = MRT_TIME_NEVER;
    dialogue_say(dialogue, asked, words);
}

/* These come with a LOCK, behind it. */
static void say_behind(struct dialogue *dialogue, int queue)
{
    struct resp_hold *other = last_hold(dialogue);
    if (below(dialogue, 4) == 0)
        say_ping(dialogue);
    if (below(dialogue, 3) == 0)
        say_held(dialogue, queue);
    if (other && other->queue != queue && below(dialogue, 4) == 0)
        say_held(dialogue, other->queue);
}

static int64_t draw_timeout(const struct dialogue *dialogue)
{
    struct world *world = world_of(dialogue);
    if (happens(dialogue, world->profile.try))
        return 0;
    if (happens(dialogue, world->profile.timed))
        return 1 + world_some(world, world->drawn.wait_us) / MRT_MILLISECOND;
    return -1;
}

static void say_lock(struct dialogue *dialogue, int queue, bool again)
{
    struct world *world = world_of(dialogue);
    const struct queue_state *state = &world->queues[queue];
    char timeout[WORD_SIZE], weight[WORD_SIZE], permits[WORD_SIZE], ttl[WORD_SIZE];
    const char *words[12] = {"LOCK", state->name, timeout};
    int count = 3;
    struct asked asked = {.verb = VERB_LOCK, .queue = queue, .again = again};
    asked.ms = draw_timeout(dialogue);
    asked.expected = resp_expected(world, agent_for(&dialogue->client->client), queue);
    asked.contentions = world->resp->contentions[queue];
    asked.weight = actor_draw_weight(world, &world->random, state->lock);
    asked.reads = state->lock == LOCK_READ_WRITE && asked.weight == MRT_READER;
    snprintf(timeout, sizeof timeout, "%" PRId64, asked.ms);
    snprintf(weight, sizeof weight, "%" PRIu64, asked.weight);
    snprintf(permits, sizeof permits, "%" PRIu64, state->recipe.capacity);
    if (state->lock == LOCK_READ_WRITE) {
        words[count++] = asked.weight == MRT_READER ? "READ" : "WRITE";
    } else if (state->lock == LOCK_SEMAPHORE) {
        words[count++] = "PERMITS";
        words[count++] = weight;
        words[count++] = "OF";
        words[count++] = permits;
    }
    if (world->profile.hold_max_us > 0 && below(dialogue, 2)) {
        asked.longest_ms = 1 + world_some(world, world->profile.hold_max_us) / MRT_MILLISECOND;
        snprintf(ttl, sizeof ttl, "%" PRId64, asked.longest_ms);
        words[count++] = "TTL";
        words[count++] = ttl;
    }
    if (below(dialogue, 4) == 0) {
        words[count++] = "LABEL";
        words[count++] = "simulated";
    }
    dialogue_say(dialogue, asked, words);
    if (below(dialogue, 3) == 0)
        say_behind(dialogue, queue);
    if (happens(dialogue, world->profile.cancel))
        dialogue_step_in(dialogue, world->drawn.wait_us);
}

void dialogue_break_off(struct dialogue *dialogue)
{
    static const char frame[] = "*3\r\n$4\r\nLOCK\r\n$5\r\nlock0\r\n$2\r\n-1\r\n";
    if (dialogue->fd < 0 || dialogue->has_ended)
        return;
    host_current = dialogue->client->client.host;
    dialogue_send(dialogue, frame, (size_t)below(dialogue, sizeof frame - 1));
    host_current = NULL;
}

/* ------------------------------------------------------------------ the connection */

/* False: the agent is not there. */
static bool connect_it(struct dialogue *dialogue)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/agent.sock"};
    struct epoll_event event = {.events = EPOLLIN};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return false;
    }
    dialogue->fd = fd;
    dialogue->stream = (struct stream *)host_socket_of(host_current, fd);
    return epoll_ctl(dialogue->client->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* With it goes all that it has. */
static void disconnect(struct dialogue *dialogue)
{
    struct client *client = &dialogue->client->client;
    trace_note(client->world, TRACE_CLIENT, client->index, NO_QUEUE, "disconnects", dialogue->index,
               0, 0);
    close(dialogue->fd);
    dialogue_forget(dialogue);
    dialogue_step_in(dialogue, world_of(dialogue)->drawn.think_us);
}

/* The agent has closed its side. The client may believe on while it keeps its own open. */
static void leave(struct dialogue *dialogue)
{
    mrt_time until = 0, now = client_now(&dialogue->client->client);
    for (int i = 0; i < RESP_HOLDS_MAX; i++)
        if (dialogue->holds[i].is_there && !dialogue->holds[i].is_given_back &&
            dialogue->holds[i].until > until)
            until = dialogue->holds[i].until;
    if (until > now && below(dialogue, 4))
        world_at(world_of(dialogue), &dialogue->step, client_true(&dialogue->client->client, until),
                 step);
    else
        disconnect(dialogue);
}

/* No command begins so: the agent ends the connection. */
static void babble(struct dialogue *dialogue)
{
    static const char nonsense[] = "*1\r\n+LOCK\r\n";
    const struct client *client = &dialogue->client->client;
    trace_note(client->world, TRACE_SUBMIT, client->index, NO_QUEUE, "nonsense", dialogue->index, 0,
               0);
    dialogue->has_babbled = true;
    dialogue_send(dialogue, nonsense, sizeof nonsense - 1);
}

/* ------------------------------------------------------------------ steps */

static void quit(struct dialogue *dialogue)
{
    for (int i = 0; i < RESP_HOLDS_MAX; i++)
        dialogue->holds[i].is_given_back = true;
    dialogue->has_quit = true;
    say(dialogue, VERB_QUIT, "QUIT", NO_QUEUE);
}

static void abandon(struct dialogue *dialogue)
{
    if (below(dialogue, 3) == 0)
        quit(dialogue);
    else
        disconnect(dialogue);
}

/* It has waited for long enough, or has other things to say meanwhile. */
static void step_waiting(struct dialogue *dialogue)
{
    struct resp_hold *hold = last_hold(dialogue);
    if (dialogue->asked_count > ASKED_MAX / 2)
        return;
    if (hold && below(dialogue, 2))
        say_unlock(dialogue, hold, false);
    else if (below(dialogue, 4) == 0)
        abandon(dialogue);
    else if (happens(dialogue, world_of(dialogue)->profile.misuse))
        babble(dialogue);
    else if (!dialogue_has_asked(dialogue, VERB_CANCEL))
        say(dialogue, VERB_CANCEL, "CANCEL", NO_QUEUE);
}

static void step_free(struct dialogue *dialogue)
{
    if (dialogue->operations == 0)
        return;
    dialogue->operations--;
    say_lock(dialogue, (int)below(dialogue, world_of(dialogue)->drawn.queues), false);
}

static void misuse(struct dialogue *dialogue, struct resp_hold *hold)
{
    switch (below(dialogue, 4)) {
    case 0:
        babble(dialogue);
        break;
    case 1:
        say_unlock(dialogue, hold, true);
        break;
    default:
        hold->is_doubted = true;
        say_lock(dialogue, hold->queue, true);
    }
}

static void give_back(struct dialogue *dialogue, struct resp_hold *hold)
{
    if (world_of(dialogue)->phase == PHASE_CHAOS && below(dialogue, 8) == 0)
        abandon(dialogue);
    else
        say_unlock(dialogue, hold, false);
}

static void step_holding(struct dialogue *dialogue, struct resp_hold *hold)
{
    const struct profile *p = &world_of(dialogue)->profile;
    int last = hold->queue;
    if (client_now(&dialogue->client->client) >= dialogue->hold_until)
        give_back(dialogue, hold);
    else if (happens(dialogue, p->misuse))
        misuse(dialogue, hold);
    else if (last + 1 < p->queues && dialogue->holds[0].is_there != dialogue->holds[1].is_there &&
             happens(dialogue, p->nest))
        say_lock(dialogue, last + 1, false);
    else if (hold->at_most != MRT_TIME_NEVER && below(dialogue, 4) == 0)
        say_extend(dialogue, hold);
    else if (below(dialogue, 8) == 0)
        say(dialogue, VERB_LIST, "LIST", below(dialogue, 2) ? last : NO_QUEUE);
    else if (below(dialogue, 8) == 0)
        say(dialogue, VERB_INFO, "INFO", NO_QUEUE);
    else if (below(dialogue, 4) == 0)
        say_ping(dialogue);
    else
        say_held(dialogue, last);
}

static void go_on(struct dialogue *dialogue)
{
    struct resp_hold *hold = last_hold(dialogue);
    if (dialogue->fd < 0 && dialogue->operations > 0 && !connect_it(dialogue))
        dialogue_step_in(dialogue, PAUSE_US + world_of(dialogue)->drawn.restart_us);
    else if (dialogue->has_ended)
        leave(dialogue);
    else if (dialogue->fd < 0 || dialogue->has_babbled || dialogue->has_quit)
        return;
    else if (dialogue_has_asked(dialogue, VERB_LOCK))
        step_waiting(dialogue);
    else if (dialogue->asked_count > 0)
        return; /* there is another one after the replies */
    else if (hold)
        step_holding(dialogue, hold);
    else
        step_free(dialogue);
}

static void step(struct world *world, struct task *task)
{
    struct dialogue *dialogue = (struct dialogue *)task;
    struct client *client = &dialogue->client->client;
    if (client_paused(client)) {
        world_at(world, task, client->paused_until, step);
        return;
    }
    host_current = client->host;
    go_on(dialogue);
    host_current = NULL;
}

void dialogue_continue(struct dialogue *dialogue)
{
    const struct profile *p = &world_of(dialogue)->drawn;
    if (dialogue->asked_count == 0 && last_hold(dialogue))
        dialogue_step_in(dialogue, p->hold_us / 4);
    else if (dialogue->asked_count == 0)
        dialogue_step_in(dialogue, p->think_us);
}
