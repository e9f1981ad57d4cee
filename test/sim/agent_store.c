/* SPDX-License-Identifier: Apache-2.0 */
/* The store of an agent: commands go to the server by the link, and events come back. */
#include "agent_host.h"
#include "io/driver.h"

#include <stdlib.h>
#include <string.h>

static struct agent_host *running(void)
{
    return host_current->client->agent;
}

static struct mrt_store_ops ops;

static int store_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                      struct mrt_sink sink, struct mrt_store **store)
{
    struct agent_host *agent = running();
    (void)uri, (void)options;
    agent->driver = sink.context;
    *store = (struct mrt_store *)agent;
    return MORTISE_OK;
}

/* The names that outlive the agent's. */
static void keep_names(const struct world *world, struct mrt_command *command)
{
    int queue = server_queue_index(world, command->queue);
    if (queue == NO_QUEUE)
        return;
    command->queue = world->queues[queue].name;
    command->kind = world->queues[queue].recipe.kind;
}

static bool store_submit(struct mrt_store *store, const struct mrt_command *command,
                         mrt_time patience)
{
    struct agent_host *agent = (struct agent_host *)store;
    struct world *world = agent->client.world;
    struct mrt_command copy = *command;
    (void)patience;
    if (agent->dead)
        return true;
    if (random_chance(&world->random, world->profile.busy))
        return false;
    keep_names(world, &copy);
    trace_note(world, TRACE_SUBMIT, agent->client.index, NO_QUEUE, NULL, (int64_t)command->serial,
               command->type, (int64_t)command->ticket.low);
    agent_submits(world, agent, &copy);
    link_submit(world, &agent->client, &copy);
    return true;
}

void agent_store_event(struct world *world, struct agent_host *agent, const struct mrt_event *event)
{
    struct agent_told *told = calloc(1, sizeof *told);
    if (!told)
        abort();
    trace_note(world, TRACE_EVENT, agent->client.index, NO_QUEUE, NULL, event->type,
               (int64_t)event->serial, (int64_t)(event->fence + event->weight_ahead));
    told->event = *event;
    if (event->value)
        memcpy(&told->value, event->value, sizeof told->value);
    STAILQ_INSERT_TAIL(&agent->told, told, link);
    agent_ready(agent);
}

static void store_process(struct mrt_store *store, mrt_time now)
{
    struct agent_host *agent = (struct agent_host *)store;
    struct agent_told *told;
    (void)now;
    while (!agent->dead && (told = STAILQ_FIRST(&agent->told))) {
        STAILQ_REMOVE_HEAD(&agent->told, link);
        if (told->event.value)
            told->event.value = &told->value;
        agent->driver->sink.deliver(agent->driver->sink.context, &told->event);
        free(told);
    }
}

void agent_store_forget(struct agent_host *agent)
{
    struct agent_told *told;
    while ((told = STAILQ_FIRST(&agent->told))) {
        STAILQ_REMOVE_HEAD(&agent->told, link);
        free(told);
    }
}

static int store_fd(struct mrt_store *store)
{
    struct agent_host *agent = (struct agent_host *)store;
    return host_socket_new(&agent->host, &agent->store);
}

static mrt_time store_next(struct mrt_store *store)
{
    (void)store;
    return MRT_TIME_NEVER;
}

static const char *store_address(const struct mrt_store *store)
{
    (void)store;
    return "sim:";
}

static void store_close(struct mrt_store *store)
{
    struct agent_host *agent = (struct agent_host *)store;
    agent->driver = NULL;
}

int agent_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **found)
{
    const struct profile *p = &running()->client.world->drawn;
    (void)uri;
    ops = (struct mrt_store_ops){.scheme = "sim",
                                 .values = true,
                                 .cells = true,
                                 .capabilities = {.size = sizeof(mortise_capabilities),
                                                  .fair = true,
                                                  .exclusive_fair = true,
                                                  .fence = true,
                                                  .notify = true,
                                                  .detach = true,
                                                  .linger = true,
                                                  .lock_delay = true,
                                                  .lease_ms = p->lease_us / 1000},
                                 .open = store_open,
                                 .submit = store_submit,
                                 .fd = store_fd,
                                 .next = store_next,
                                 .process = store_process,
                                 .address = store_address,
                                 .close = store_close};
    *found = &ops;
    return MORTISE_OK;
}
