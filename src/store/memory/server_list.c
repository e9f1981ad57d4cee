/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the queues of the memory store's server in order, for mortise_list and for tests that check
   the server. */
#include "core/rule.h"
#include "store/memory/server_parts.h"

static int list_queue(const struct mrt_memory_server *server, const struct queue *queue,
                      int (*visit)(void *context, const struct mrt_memory_entry *entry),
                      void *context)
{
    struct mrt_memory_entry entry = {.queue = queue->name,
                                     .kind = queue->kind,
                                     .capacity = queue->capacity,
                                     .fence_span = server->config.fence_span};
    const struct ticket *ticket;
    TAILQ_FOREACH (ticket, &queue->tickets, link) {
        if (entry.place > 0 ||
            !mrt_rule_grants(entry.weight_ahead, ticket->weight, queue->capacity))
            entry.place++;
        entry.session = ticket->session->id;
        entry.detached = ticket->session == &server->nobody && ticket->until == 0;
        entry.delay = ticket->delay;
        entry.until = ticket->until;
        entry.ticket = ticket->id;
        entry.peer = ticket->session->peer;
        entry.fence = ticket->fence;
        entry.weight = ticket->weight;
        entry.since = ticket->since;
        entry.value = ticket->value;
        entry.value_size = ticket->value_size;
        int result = visit(context, &entry);
        if (result != 0)
            return result;
        entry.weight_ahead += ticket->weight;
    }
    return 0;
}

int mrt_memory_server_list(const struct mrt_memory_server *server,
                           int (*visit)(void *context, const struct mrt_memory_entry *entry),
                           void *context)
{
    const struct queue *queue;
    TAILQ_FOREACH (queue, &server->queues, link) {
        int result = list_queue(server, queue, visit, context);
        if (result != 0)
            return result;
    }
    return 0;
}

int mrt_memory_server_list_queue(const struct mrt_memory_server *server, const char *name,
                                 int (*visit)(void *context, const struct mrt_memory_entry *entry),
                                 void *context)
{
    const struct queue *queue = mrt_memory_find_queue(server, name);
    return queue ? list_queue(server, queue, visit, context) : 0;
}

bool mrt_memory_server_has(const struct mrt_memory_server *server,
                           const struct mrt_command *command)
{
    return command->queue ? mrt_memory_find_ticket(server, command) != NULL
                          : mrt_memory_find_session(server, command->session) != NULL;
}

uint64_t mrt_memory_server_next_fence(const struct mrt_memory_server *server)
{
    return server->next_fence;
}

size_t mrt_memory_server_sessions(const struct mrt_memory_server *server)
{
    return HASH_COUNT(server->sessions_by_id);
}

void mrt_memory_server_cell(struct mrt_memory_server *server, const char *name,
                            struct mrt_event *cell)
{
    const struct mrt_command get = {.type = MRT_CELL_GET, .queue = name};
    mrt_memory_cell_apply(&server->cells, &get, cell);
}
