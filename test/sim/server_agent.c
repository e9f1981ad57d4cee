/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the agents' store, the memory store's; and which client each of its tickets is of,
 * which that server does not know. A ticket that the agent passes on is a client's from its APPEND
 * on. One that several want to adopt is his whose command the agent lets do so. A ticket of the
 * agent itself, by which a mutex is handed on, is that client's who was told of the newest grant by
 * it.
 */
#include "agent_command.h"

#include "agent/peer.h"

#include <stdlib.h>
#include <string.h>

struct note {
    struct mrt_id ticket;
    struct peer *peer;
    int queue;
    uint64_t fence; /* 0: not known */
    bool is_adopted;
    /* Of one that the agent hands on: */
    bool plain;
    const struct peer *agent; /* the agent's life in which it was appended */
    mrt_time sent, waits;     /* when the client sent it, and was told that it waits; 0: not */
    bool over;                /* granted, or given up */
    bool lent, left;          /* it was told of the agent's queue; given up */
    bool gone;                /* the agent has said so */
};

/* A ticket of an agent itself. */
struct own_ticket {
    struct mrt_id ticket;
    uint64_t fence;
    bool is_locks; /* it was appended for a LOCK: no client with the library had part in it */
};

struct agent_world {
    void *memory; /* first: the server's state */
    struct world *world;
    struct note *notes;
    size_t note_count, note_room;
    uint64_t locked[QUEUES_MAX];                   /* newest fence of a LOCK */
    struct own_ticket own[AGENTS_MAX][QUEUES_MAX]; /* the newest of each agent */
    struct agent_host agents[AGENTS_MAX];
};

static struct agent_world *state_of(const struct world *world)
{
    return world->server->state;
}

struct agent_host *agent_of(const struct world *world, int number)
{
    return &state_of(world)->agents[number];
}

struct agent_host *agent_for(const struct client *client)
{
    return agent_of(client->world, client->index % (int)client->world->drawn.agents);
}

/* ------------------------------------------------------------------ whose a ticket is */

static struct note *find_note(const struct agent_world *agents, struct mrt_id ticket)
{
    for (size_t i = agents->note_count; i > 0; i--)
        if (mrt_id_equal(agents->notes[i - 1].ticket, ticket))
            return &agents->notes[i - 1];
    return NULL;
}

void agent_note(struct world *world, const struct client *client, const struct mrt_command *command)
{
    struct agent_world *agents = state_of(world);
    struct note *note = find_note(agents, command->ticket);
    world->server_changed |= world->resp != NULL; /* whose a ticket is, if nothing else */
    if (note && command->type == MRT_REMOVE)
        note->over = note->left = true;
    for (size_t i = 0; i < agents->note_count && command->type < MRT_APPEND; i++)
        if (command->type != MRT_RENEW && agents->notes[i].peer == client->peer)
            agents->notes[i].over = agents->notes[i].left =
                true; /* its session ends, or an earlier one has */
    if (command->type != MRT_APPEND)
        return;
    if (!note && agents->note_count == agents->note_room) {
        agents->note_room = 2 * agents->note_room + 64;
        agents->notes = realloc(agents->notes, agents->note_room * sizeof *note);
        if (!agents->notes)
            abort();
    }
    if (!note) {
        note = &agents->notes[agents->note_count++];
        *note = (struct note){.ticket = command->ticket};
    }
    note->agent = agent_for(client)->client.peer;
    note->plain = strcmp(command->kind, "mutex") == 0 && !command->linger && command->delay == 0 &&
                  !command->adopt && !command->try_only;
    note->sent = world->now;
    note->waits = 0;
    note->over = note->left = note->gone = false;
    if (!command->adopt || !note->peer)
        note->peer = client->peer;
    note->is_adopted |= command->adopt;
    note->queue = server_queue_index(world, command->queue);
    world->owners_changed = true;
}

/* The client for which the agent has this ticket; NULL: for none. */
static struct peer *find_client(const struct agent_host *agent, struct mrt_id id)
{
    const struct mrt_agent *own;
    if (!agent || !agent->driver)
        return NULL;
    own = (const void *)((const char *)agent->driver - offsetof(struct mrt_agent, driver));
    const struct mrt_desk_ticket *ticket = mrt_desk_find(&own->desk, id);
    if (!ticket || !ticket->session)
        return NULL;
    const struct agent_socket *socket =
        (const struct agent_socket *)host_socket_of(&agent->host, ticket->session->peer->fd);
    return socket->stream ? socket->stream->client->peer : NULL;
}

/* Whether no client with the library has or wants a lock at its agent, as far as that may know. */
static bool is_left_to_locks(const struct agent_world *agents, const struct agent_host *agent,
                             int queue)
{
    for (size_t i = 0; i < agents->note_count; i++)
        if (agents->notes[i].queue == queue && agents->notes[i].agent == agent->client.peer &&
            !agents->notes[i].gone)
            return false;
    return true;
}

void agent_submits(struct world *world, const struct agent_host *agent,
                   const struct mrt_command *command)
{
    struct agent_world *agents = state_of(world);
    int queue = server_queue_index(world, command->queue);
    if (command->type == MRT_APPEND && queue != NO_QUEUE && !find_note(agents, command->ticket))
        agents->own[agent->number][queue] = (struct own_ticket){
            .ticket = command->ticket, .is_locks = is_left_to_locks(agents, agent, queue)};
}

static void note_own(struct agent_world *agents, const struct mrt_event *event)
{
    for (int i = 0; i < AGENTS_MAX && event->type == MRT_VIEW; i++)
        for (int queue = 0; queue < QUEUES_MAX; queue++)
            if (mrt_id_equal(agents->own[i][queue].ticket, event->ticket))
                agents->own[i][queue].fence = event->fence;
}

bool agent_keeps(const struct world *world, const struct agent_host *agent, int queue,
                 uint64_t fence)
{
    const struct agent_world *agents = state_of(world);
    const struct own_ticket *own = &agents->own[agent->number][queue];
    uint64_t locked = agents->locked[queue], span = (uint64_t)world->drawn.fence_span;
    return own->is_locks && own->fence == fence && locked >= fence && locked - fence < span / 2;
}

static void told(struct world *world, void *server, const struct peer *peer,
                 const struct mrt_event *event)
{
    note_own(server, event);
    bool waits_here = event->in_order && event->weight_ahead > 0; /* it has no ticket of its own */
    bool has_fence = event->fence > 0 && !waits_here;
    struct note *note =
        has_fence && !mrt_id_none(event->ticket) ? find_note(server, event->ticket) : NULL;
    if (!note)
        return;
    world->owners_changed |= note->fence != event->fence;
    note->fence = event->fence;
    note->lent = event->in_order;
    struct peer *adopter = note->is_adopted && peer && peer->client
                               ? find_client(peer->client->agent, event->ticket)
                               : NULL;
    world->owners_changed |= adopter && adopter != note->peer;
    if (adopter)
        note->peer = adopter;
}

/* A client has a mutex: none of the same agent waits for it that was told so before this one sent
   its APPEND. */
static void check_handed(struct world *world, const struct note *note)
{
    const struct agent_world *agents = state_of(world);
    for (size_t i = 0; i < agents->note_count; i++) {
        const struct note *other = &agents->notes[i];
        if (other->plain && !other->over && other->waits > 0 && other->waits < note->sent &&
            other->queue == note->queue && other->agent == note->agent &&
            other->peer != note->peer && other->peer->client &&
            check_keeps_sessions(world, other->waits))
            check_fail(world, note->peer->index, note->queue, "client %d was overtaken",
                       other->peer->index);
    }
}

void agent_told(struct world *world, const struct mrt_event *event)
{
    struct note *note = find_note(state_of(world), event->ticket);
    world->server_changed |= world->resp != NULL;
    if (event->type == MRT_VIEW)
        told(world, state_of(world), NULL, event);
    if (note)
        note->gone |=
            event->type == MRT_REMOVED || event->type == MRT_GONE || event->type == MRT_BLOCKED;
    if (!note || !note->plain)
        return;
    if (event->type == MRT_GONE) {
        note->over = true;
    } else if (event->type != MRT_VIEW) {
        return;
    } else if (event->weight_ahead > 0) {
        if (note->waits == 0)
            note->waits = world->now;
    } else if (!note->over) {
        note->over = true;
        check_handed(world, note);
    }
}

static struct peer *owner(void *server, int queue, uint64_t fence)
{
    const struct agent_world *agents = server;
    const struct note *newest = NULL;
    uint64_t span = (uint64_t)agents->world->drawn.fence_span;
    for (size_t i = agents->note_count; i > 0; i--) {
        const struct note *note = &agents->notes[i - 1];
        if (note->queue == queue && note->fence >= fence && note->fence - fence < span &&
            (!newest || (!newest->is_adopted && (note->is_adopted || note->fence > newest->fence))))
            newest = note; /* what is adopted was handed on before, and is no longer */
    }
    /* It may be a LOCK's by now. */
    if (agents->world->resp && newest && newest->lent &&
        (newest->left || newest->fence < agents->locked[queue]))
        return NULL;
    return newest ? newest->peer : NULL;
}

void agent_locked(struct world *world, int queue, uint64_t fence)
{
    struct agent_world *agents = state_of(world);
    world->server_changed = true;
    if (fence > agents->locked[queue])
        agents->locked[queue] = fence;
}

/* ------------------------------------------------------------------ all agents */

void agents_heal(struct world *world)
{
    for (int i = 0; i < world->drawn.agents; i++) {
        agent_of(world, i)->client.cut_until = 0;
        agent_arm(agent_of(world, i));
    }
}

static bool rests(const struct agent_host *host)
{
    const struct mrt_agent *agent;
    if (!host->driver)
        return false;
    agent = (const void *)((const char *)host->driver - offsetof(struct mrt_agent, driver));
    return !agent->desk.tickets && !agent->desk.commands && TAILQ_EMPTY(&agent->desk.sessions) &&
           agent->peer_count == 0 && policy_rests(agent);
}

bool agents_rest(const struct world *world)
{
    for (int i = 0; i < world->drawn.agents; i++)
        if (!rests(agent_of(world, i)))
            return false;
    return true;
}

void agents_end(struct world *world)
{
    for (int i = 0; i < world->drawn.agents; i++)
        agent_end(agent_of(world, i));
}

bool agents_ended(const struct world *world)
{
    for (int i = 0; i < world->drawn.agents; i++)
        if (agent_of(world, i)->runs)
            return false;
    return true;
}

/* ------------------------------------------------------------------ the model */

static void *begin(struct world *world)
{
    struct agent_world *agents = calloc(1, sizeof *agents);
    if (!agents)
        abort();
    agents->world = world;
    agents->memory = memory_model.new(world);
    return agents;
}

static void begin_agents(struct world *world, void *server)
{
    struct agent_world *agents = server;
    resp_begin(world);
    for (int i = 0; i < world->drawn.agents; i++) {
        agents->agents[i].client.offset = random_below(&world->random, 1000 * MRT_SECOND);
        agents->agents[i].client.rate_ppm = client_draw_rate(world);
        agent_boot(world, &agents->agents[i], i);
    }
}

static void end(void *server)
{
    struct agent_world *agents = server;
    for (int i = 0; i < agents->world->drawn.agents; i++)
        agent_free(&agents->agents[i]);
    memory_model.free(agents->memory);
    free(agents->notes);
    free(agents);
}

static void *memory_of(void *server)
{
    return ((struct agent_world *)server)->memory;
}

static void apply(struct world *world, void *server, struct peer *peer,
                  const struct mrt_command *command)
{
    memory_model.apply(world, memory_of(server), peer, command);
}

static void died(struct world *world, void *server, struct peer *peer)
{
    if (peer->index >= CLIENTS_MAX)
        memory_model.died(world, memory_of(server), peer);
}

/* The store gives up the session of the client's agent. */
static void kill_session(struct world *world, void *server, struct peer *peer)
{
    struct agent_host *agent = agent_for(peer->client);
    if (agent->runs && !client_paused(&agent->client))
        memory_model.kill(world, memory_of(server), agent->client.peer);
}

static bool break_ticket(struct world *world, void *server, int queue, uint64_t fence)
{
    return memory_model.break_ticket(world, memory_of(server), queue, fence);
}

static bool revoke(struct world *world, void *server, int queue, uint64_t fence)
{
    return memory_model.revoke(world, memory_of(server), queue, fence);
}

static void truth(struct world *world, void *server, int queue, const struct peer *peer,
                  struct truth *truth)
{
    memory_model.truth(world, memory_of(server), queue, peer, truth);
}

static int left(struct world *world, void *server)
{
    return memory_model.left(world, memory_of(server));
}

static uint64_t cell(void *server)
{
    return memory_model.cell(memory_of(server));
}

const struct server_model agent_model = {.is_steady = true,
                                         .streams = &agent_streams,
                                         .new = begin,
                                         .populate = begin_agents,
                                         .free = end,
                                         .apply = apply,
                                         .died = died,
                                         .kill = kill_session,
                                         .break_ticket = break_ticket,
                                         .revoke = revoke,
                                         .truth = truth,
                                         .left = left,
                                         .cell = cell,
                                         .told = told,
                                         .owner = owner};
