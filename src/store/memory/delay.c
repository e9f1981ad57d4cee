/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that a dead session leaves behind: they go on holding for a while, although no client
 * holds by them. So the dead holder's late writes can still arrive, or be refused, before the next
 * holder begins.
 *
 * Invariant: such a ticket has an `until` and belongs to the session of nobody. It keeps its
 * identity, but an identity is found only within a session, and detaching and adopting skip it.
 * A waiter behind it looks again when its time is over, at the latest.
 */
#include "store/memory/server_parts.h"

/* Wakes all tickets behind it, so that they learn when it will go. */
static void wake_behind(const struct mrt_memory_server *server, const struct ticket *ticket,
                        const struct mrt_memory_sink *sink)
{
    while ((ticket = TAILQ_NEXT(ticket, link))) {
        const struct mrt_event event = {
            .type = MRT_WAKE, .session = ticket->session->id, .ticket = ticket->id};
        if (ticket->session != &server->nobody)
            sink->emit(sink->context, ticket->session->peer, &event);
    }
}

void mrt_memory_leave_behind(struct mrt_memory_server *server, struct session *session,
                             mrt_time died, const struct mrt_memory_sink *sink)
{
    struct ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (ticket, &session->tickets, session_link, next) {
        if (ticket->delay <= 0 ||
            !mrt_memory_grants_behind(ticket, mrt_memory_weight_ahead(ticket), 0))
            continue;
        ticket->until = mrt_time_add(died, ticket->delay);
        ticket->linger = false;
        ticket->session = &server->nobody;
        TAILQ_REMOVE(&session->tickets, ticket, session_link);
        TAILQ_INSERT_TAIL(&server->nobody.tickets, ticket, session_link);
        wake_behind(server, ticket, sink);
    }
}

void mrt_memory_end_delays(struct mrt_memory_server *server, mrt_time now,
                           const struct mrt_memory_sink *sink)
{
    struct ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (ticket, &server->nobody.tickets, session_link, next)
        if (ticket->until > 0 && ticket->until <= now)
            mrt_memory_remove_ticket(server, ticket, sink);
}

mrt_time mrt_memory_next_delay(const struct mrt_memory_server *server)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct ticket *ticket;
    TAILQ_FOREACH (ticket, &server->nobody.tickets, session_link)
        if (ticket->until > 0)
            next = mrt_time_min(next, ticket->until);
    return next;
}

mrt_time mrt_memory_recheck(const struct mrt_memory_server *server, const struct ticket *ticket,
                            mrt_time now)
{
    mrt_time longest = server->config.recheck;
    const struct ticket *left;
    TAILQ_FOREACH (left, &server->nobody.tickets, session_link)
        if (left->until > now && left->queue == ticket->queue && left->fence < ticket->fence)
            longest = mrt_time_min(longest, left->until - now);
    return longest;
}
