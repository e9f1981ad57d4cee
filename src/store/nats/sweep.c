/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ask.h. Where somebody waits, a waiter removes the tickets of the dead (walk.h). Those in
 * queues that nobody uses stay, until an operator's `init` looks through the oldest tickets.
 *
 * A session that is not there, or dead, is looked up again when its lease has passed. Neither comes
 * back, and its client believes in it no longer than that; grave.h does the rest.
 */
#include "store/nats/ask.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICKETS_MAX 1000            /* the oldest: they are what is left */
#define LEASE_MAX (60 * MRT_SECOND) /* longer ones are not waited for */

/* A ticket whose session seems dead. */
struct left {
    struct left *next;
    struct mrt_id session;
    uint64_t sequence, lease;
    const char *name; /* behind the token */
    char token[];
};

/* The session that was looked up last. */
struct looked {
    struct mrt_id session;
    bool is_dead;
};

static bool is_dead(struct mrt_nats_operation *operation, const struct mrt_nats_ticket *ticket,
                    struct looked *looked)
{
    struct mrt_nats_grave grave = {.wire = &operation->wire,
                                   .lease = ticket->lease,
                                   .session = ticket->session,
                                   .looks = true};
    if (!mrt_id_equal(looked->session, ticket->session))
        *looked = (struct looked){ticket->session, mrt_nats_judge(operation, &grave)};
    return looked->is_dead;
}

/* Adds a ticket in front. False: no memory. */
static bool add(struct left **all, const char *subject, uint64_t sequence,
                const struct mrt_nats_ticket *ticket)
{
    size_t size = strlen(subject) + 1;
    struct left *left = malloc(sizeof *left + size);
    if (!left)
        return false;
    memcpy(left->token, subject, size);
    char *dot = strrchr(left->token, '.');
    *dot = '\0';
    left->name = dot + 1;
    left->session = ticket->session;
    left->sequence = sequence;
    left->lease = ticket->lease;
    left->next = *all;
    *all = left;
    return true;
}

static void take(struct mrt_nats_operation *operation, const struct mrt_nats_message *message,
                 struct looked *looked, struct left **all)
{
    struct mrt_nats_ticket ticket;
    mrt_time lease;
    if (!mrt_nats_ticket_parse(message->bytes, message->size, &ticket) ||
        mrt_id_none(ticket.session) ||
        __builtin_mul_overflow((mrt_time)ticket.lease, MRT_MILLISECOND, &lease) ||
        lease > LEASE_MAX || !is_dead(operation, &ticket, looked))
        return;
    add(all, message->subject + strlen(operation->address->base) + 3, message->sequence, &ticket);
}

static struct left *find_left(struct mrt_nats_operation *operation)
{
    char filter[MRT_NATS_SUBJECT_SIZE];
    struct left *all = NULL;
    struct looked looked = {.is_dead = false};
    struct mrt_nats_message message;
    mrt_nats_subject(operation->address, 'q', "*", "*", filter);
    uint64_t cursor = 1;
    for (int i = 0; i < TICKETS_MAX; i++) {
        if (mrt_nats_read_next(operation, cursor, filter, &message) != MORTISE_OK || !message.bytes)
            break;
        cursor = message.sequence + 1;
        take(operation, &message, &looked, &all);
        mrt_nats_message_free(&message);
    }
    return all;
}

static void wait_for_leases(const struct left *all)
{
    uint64_t longest = 0;
    for (; all; all = all->next)
        longest = all->lease > longest ? all->lease : longest;
    const struct timespec pause = {(time_t)(longest / 1000), (long)(longest % 1000) * 1000000};
    ppoll(NULL, 0, &pause, NULL);
}

/* Its lease has passed; of one that has adopted the ticket since this is not known. */
static bool knows(struct mrt_nats_grave *grave, uint64_t sequence)
{
    const struct left *left = grave->judge;
    return sequence == 0 && mrt_id_equal(grave->session, left->session);
}

void mrt_nats_sweep(struct mrt_nats_operation *operation)
{
    struct left *all = find_left(operation), *left;
    if (all)
        wait_for_leases(all);
    while ((left = all)) {
        struct mrt_nats_grave grave = {.wire = &operation->wire,
                                       .token = left->token,
                                       .name = left->name,
                                       .sequence = left->sequence,
                                       .lease = left->lease,
                                       .session = left->session,
                                       .knows = knows,
                                       .judge = left};
        mrt_nats_judge(operation, &grave);
        all = left->next;
        free(left);
    }
}
