/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's calls on the queues of the memory store's server. A detached ticket is treated
   like any other, except that it has no session to notify. */
#include "store/memory/server_parts.h"

int mrt_memory_server_revoke(struct mrt_memory_server *server, const char *name, uint64_t fence,
                             const struct mrt_memory_sink *sink)
{
    const struct queue *queue = mrt_memory_find_queue(server, name);
    struct ticket *ticket;
    uint64_t ahead = 0;
    int error = MORTISE_ENOTHELD;
    if (!queue)
        return error;
    TAILQ_FOREACH (ticket, &queue->tickets, link) {
        if (!mrt_memory_grants_behind(ticket, ahead, 0))
            break;
        ahead += ticket->weight;
        if (fence != 0 && fence != ticket->fence)
            continue;
        error = MORTISE_OK;
        ticket->revoked++;
        if (ticket->session == &server->nobody)
            continue;
        struct mrt_event event = {.type = MRT_REVOKED,
                                  .session = ticket->session->id,
                                  .ticket = ticket->id,
                                  .revoked = ticket->revoked};
        sink->emit(sink->context, ticket->session->peer, &event);
    }
    return error;
}

int mrt_memory_server_break(struct mrt_memory_server *server, const char *name, uint64_t fence,
                            const struct mrt_memory_sink *sink)
{
    const struct queue *queue = mrt_memory_find_queue(server, name);
    struct ticket *ticket;
    if (!queue)
        return MORTISE_ENOTHELD;
    TAILQ_FOREACH (ticket, &queue->tickets, link)
        if (ticket->fence == fence)
            break;
    if (!ticket)
        return MORTISE_ENOTHELD;
    struct mrt_event event = {
        .type = MRT_WAKE, .session = ticket->session->id, .ticket = ticket->id};
    if (ticket->session != &server->nobody)
        sink->emit(sink->context, ticket->session->peer, &event);
    mrt_memory_remove_ticket(server, ticket, sink);
    return MORTISE_OK;
}
