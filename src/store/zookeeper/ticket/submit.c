/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of tickets, as they come from the port. Each is given its ticket, an old one or a new
 * one, and begins in the file of its kind.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/ticket/submit.h"

#include "base/assert.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/ticket/append.h"
#include "store/zookeeper/ticket/claim.h"
#include "store/zookeeper/ticket/data.h"
#include "store/zookeeper/ticket/detach.h"
#include "store/zookeeper/ticket/refresh.h"
#include "store/zookeeper/ticket/remove.h"

#include <stdlib.h>
#include <string.h>

/* Of a ticket with a place in an order. */
static void begin_ordered(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    const struct mrt_command *command = mrt_zk_ticket_command(ticket);
    ticket->tries = 0;
    switch (command->type) {
    case MRT_APPEND:
        if (command->adopt)
            mrt_zk_adopt_begin(session, ticket);
        else
            mrt_zk_append_begin(session, ticket);
        break;
    case MRT_DETACH:
        mrt_zk_detach_begin(session, ticket);
        break;
    case MRT_REMOVE:
        mrt_zk_remove_begin(session, ticket);
        break;
    case MRT_LIGHTEN:
    case MRT_SET_VALUE:
        mrt_zk_data_begin(session, ticket);
        break;
    default:
        MRT_ASSERT(command->type == MRT_REFRESH);
        mrt_zk_refresh_begin(session, ticket);
    }
}

static struct mrt_zk_ticket *new_ticket(struct mrt_zk_session *session,
                                        const struct mrt_command *command, const char *path)
{
    struct mrt_zk_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->id = command->ticket;
    ticket->place = mrt_zk_place_for(session->store->address.layout, command->kind,
                                     command->capacity, command->weight);
    ticket->begin = ticket->place.family == MRT_ZK_EXCLUSIVE ? mrt_zk_claim_begin : begin_ordered;
    ticket->lingers = command->linger;
    /* An answer to one of this identity that was freed is not for this one. */
    ticket->attempt = ++session->numbers << 32;
    TAILQ_INIT(&ticket->jobs);
    mrt_zk_uuid(command->ticket, &ticket->place, ticket->uuid);
    MRT_ASSERT(strlen(path) < sizeof ticket->path);
    memcpy(ticket->path, path, strlen(path) + 1);
    HASH_ADD(hh, session->tickets, id, sizeof ticket->id, ticket);
    if (ticket->hh.tbl)
        return ticket;
    free(ticket);
    return NULL;
}

void mrt_zk_ticket_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path)
{
    struct mrt_store *store = session->store;
    const struct mrt_command *command = &job->command;
    struct mrt_zk_ticket *ticket = mrt_zk_ticket_find(session, command->ticket);
    if (!ticket && command->type != MRT_APPEND && command->type != MRT_DETACH) {
        mrt_zk_answer(store, job, command->type == MRT_REMOVE ? MRT_REMOVED : MRT_GONE);
        return;
    }
    if (!ticket)
        ticket = new_ticket(session, command, path);
    if (!ticket) {
        mrt_zk_fail(store, job, MORTISE_ENOMEM);
        return;
    }
    bool idle = TAILQ_EMPTY(&ticket->jobs);
    TAILQ_INSERT_TAIL(&ticket->jobs, job, link);
    if (idle)
        ticket->begin(session, ticket);
}
