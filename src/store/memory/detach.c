/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached tickets. They stand in their queues like all others. Their session never started and
 * never ends.
 *
 * Invariant: a detached ticket has another identity than before, so the client that detached it
 * cannot find it any longer.
 */
#include "store/memory/server_parts.h"

#include <stdlib.h>
#include <string.h>

static struct ticket *find(const struct mrt_memory_server *server, struct mrt_id session,
                           struct mrt_id id, const char *queue)
{
    const struct mrt_command wanted = {.session = session, .ticket = id, .queue = queue};
    struct ticket *found = mrt_memory_find_ticket(server, &wanted);
    return found && found->until == 0 ? found : NULL;
}

/* Puts a copy, called `id` and nobody's, into the ticket's place. NULL: no memory. */
static struct ticket *replace(struct mrt_memory_server *server, struct ticket *ticket,
                              struct mrt_id id)
{
    struct ticket *heir = malloc(sizeof *heir), *added = heir;
    if (!heir)
        return NULL;
    *heir = *ticket;
    heir->id = id;
    heir->session = &server->nobody;
    heir->linger = false;
    heir->delay = 0;
    HASH_ADD(hh, server->tickets_by_id, id, sizeof heir->id, added);
    if (!added) {
        free(heir);
        return NULL;
    }
    TAILQ_INSERT_BEFORE(ticket, heir, link);
    TAILQ_INSERT_TAIL(&heir->session->tickets, heir, session_link);
    TAILQ_REMOVE(&ticket->queue->tickets, ticket, link);
    TAILQ_REMOVE(&ticket->session->tickets, ticket, session_link);
    HASH_DEL(server->tickets_by_id, ticket);
    free(ticket); /* the value is the heir's */
    return heir;
}

int mrt_memory_detach(struct mrt_memory_server *server, const struct mrt_command *command,
                      struct ticket **ticket)
{
    struct ticket *had = find(server, command->session, command->ticket, command->queue);
    *ticket = find(server, server->nobody.id, command->detached_id, command->queue);
    if (*ticket)
        return MORTISE_OK;
    if (!had)
        return MORTISE_ENOTHELD;
    if (mrt_id_equal(command->ticket, command->detached_id)) { /* it was adopted, and given up */
        TAILQ_REMOVE(&had->session->tickets, had, session_link);
        TAILQ_INSERT_TAIL(&server->nobody.tickets, had, session_link);
        had->session = &server->nobody;
        had->linger = false;
        had->delay = 0;
        *ticket = had;
    } else {
        *ticket = replace(server, had, command->detached_id);
    }
    return *ticket ? MORTISE_OK : MORTISE_ENOMEM;
}

int mrt_memory_adopt(struct mrt_memory_server *server, const struct mrt_command *command,
                     struct session *session, struct ticket **ticket)
{
    struct ticket *found = find(server, server->nobody.id, command->ticket, command->queue);
    if (!found)
        return MORTISE_ENOTHELD;
    const struct queue *queue = found->queue;
    if (strcmp(queue->kind, command->kind) != 0 || queue->capacity != command->capacity ||
        found->weight != command->weight)
        return MORTISE_EMISMATCH;
    TAILQ_REMOVE(&found->session->tickets, found, session_link);
    TAILQ_INSERT_TAIL(&session->tickets, found, session_link);
    found->session = session;
    found->linger = command->linger;
    found->delay = command->delay;
    *ticket = found;
    return MORTISE_OK;
}
