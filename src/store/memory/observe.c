/* SPDX-License-Identifier: Apache-2.0 */
/* The memory store's server, continued: tickets with values, and observers of their queues. */
#include "store/memory/server_parts.h"

#include <stdlib.h>
#include <string.h>

/* A session that is told, once, that the first ticket of a queue is another one. */
struct observer {
    struct mrt_id id;
    struct session *session;
    TAILQ_ENTRY(observer) link;
    char queue[];
};

bool mrt_memory_set_value(struct ticket *ticket, const struct mrt_command *command)
{
    void *value = malloc(command->value_size + 1);
    if (!value)
        return false;
    if (command->value_size > 0)
        memcpy(value, command->value, command->value_size);
    free(ticket->value);
    ticket->value = value;
    ticket->value_size = command->value_size;
    return true;
}

static void forget(struct mrt_memory_server *server, struct observer *observer)
{
    TAILQ_REMOVE(&server->observers, observer, link);
    free(observer);
}

void mrt_memory_tell_observers(struct mrt_memory_server *server, const char *queue,
                               const struct mrt_memory_sink *sink)
{
    struct observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &server->observers, link, next) {
        if (strcmp(observer->queue, queue) != 0)
            continue;
        const struct mrt_event event = {
            .type = MRT_CHANGED, .session = observer->session->id, .ticket = observer->id};
        sink->emit(sink->context, observer->session->peer, &event);
        forget(server, observer);
    }
}

void mrt_memory_forget_observers(struct mrt_memory_server *server, const struct session *session)
{
    struct observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &server->observers, link, next)
        if (observer->session == session)
            forget(server, observer);
}

/* Unless it is there already. If there is no memory for it `recheck` makes up for that. */
static void add(struct mrt_memory_server *server, const struct mrt_command *command,
                struct session *session)
{
    struct observer *observer;
    size_t size = strlen(command->queue) + 1;
    TAILQ_FOREACH (observer, &server->observers, link)
        if (observer->session == session && mrt_id_equal(observer->id, command->ticket))
            return;
    observer = calloc(1, sizeof *observer + size);
    if (!observer)
        return;
    observer->id = command->ticket;
    observer->session = session;
    memcpy(observer->queue, command->queue, size);
    TAILQ_INSERT_TAIL(&server->observers, observer, link);
}

void mrt_memory_observe(struct mrt_memory_server *server, const struct mrt_command *command,
                        struct session *session, struct mrt_event *answer)
{
    const struct queue *queue = mrt_memory_find_queue(server, command->queue);
    const struct ticket *first = queue ? TAILQ_FIRST(&queue->tickets) : NULL;
    if (!command->once)
        add(server, command, session);
    answer->recheck = server->config.recheck;
    if (!first)
        return;
    answer->fence = first->fence;
    answer->value = first->value;
    answer->value_size = first->value_size;
}
