/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the agents' store, the memory store's; and which client each of its tickets is of,
 * which that server does not know. A ticket is a client's from its APPEND on. One that several want
 * to adopt is his whose command the agent lets do so.
 */
#include "agent_command.h"

#include "agent/peer.h"

#include <stdlib.h>

struct note {
    struct mrt_id ticket;
    struct peer *peer;
    int queue;
    uint64_t fence; /* 0: not known */
    bool is_adopted;
};

struct agent_world {
    void *memory; /* first: the server's state */
    struct world *world;
    struct note *notes;
    size_t note_count, note_room;
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
    if (command->type != MRT_APPEND)
        return;
    struct note *note = find_note(agents, command->ticket);
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
    const struct note before = *note;
    if (!command->adopt || !note->peer)
        note->peer = client->peer;
    note->is_adopted |= command->adopt;
    note->queue = server_queue_index(world, command->queue);
    world->owners_changed |= note->peer != before.peer || note->queue != before.queue;
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

static void told(struct world *world, void *server, const struct peer *peer,
                 const struct mrt_event *event)
{
    struct note *note =
        event->fence > 0 && !mrt_id_none(event->ticket) ? find_note(server, event->ticket) : NULL;
    if (!note)
        return;
    world->owners_changed |= note->fence != event->fence;
    note->fence = event->fence;
    struct peer *adopter =
        note->is_adopted && peer->client ? find_client(peer->client->agent, event->ticket) : NULL;
    world->owners_changed |= adopter && adopter != note->peer;
    if (adopter)
        note->peer = adopter;
}

static struct peer *owner(void *server, int queue, uint64_t fence)
{
    const struct agent_world *agents = server;
    for (size_t i = agents->note_count; i > 0; i--)
        if (agents->notes[i - 1].fence == fence && agents->notes[i - 1].queue == queue)
            return agents->notes[i - 1].peer;
    return NULL;
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
