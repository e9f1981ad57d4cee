/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The knowledge of this process: its tickets, and the wakes to send after the commit.
 *
 * A ticket of a session of this store is in `buckets` exactly while its row is, as
 * far as this process knows. So no search by id is ever needed, and a command for a ticket
 * that is not there is answered without a transaction.
 */
#include "store/sqlite/ticket.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static struct mrt_sqlite_bucket *bucket_of(struct mrt_sqlite_store *store, struct mrt_id id)
{
    return &store->buckets[id.low % MRT_SQLITE_BUCKETS];
}

struct mrt_sqlite_ticket *mrt_sqlite_ticket_find(struct mrt_sqlite_store *store, struct mrt_id id)
{
    struct mrt_sqlite_ticket *ticket;
    TAILQ_FOREACH (ticket, bucket_of(store, id), bucket_link)
        if (mrt_id_equal(ticket->id, id))
            return ticket;
    return NULL;
}

void mrt_sqlite_ticket_free(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket)
{
    MRT_ASSERT(mrt_sqlite_ticket_find(store, ticket->id) == ticket);
    TAILQ_REMOVE(bucket_of(store, ticket->id), ticket, bucket_link);
    TAILQ_REMOVE(&ticket->session->tickets, ticket, link);
    free(ticket);
}

struct mrt_sqlite_ticket *mrt_sqlite_ticket_new(struct mrt_sqlite_session *session,
                                                const struct mrt_command *command)
{
    size_t size = strlen(command->queue) + 1;
    struct mrt_sqlite_ticket *ticket = calloc(1, sizeof *ticket + size);
    if (!ticket)
        return NULL;
    ticket->session = session;
    ticket->id = command->ticket;
    ticket->weight = command->weight;
    ticket->capacity = command->capacity;
    ticket->valued = command->value != NULL;
    memcpy(ticket->queue, command->queue, size);
    return ticket;
}

void mrt_sqlite_ticket_enter(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket)
{
    MRT_ASSERT(ticket->number > 0 && !mrt_sqlite_ticket_find(store, ticket->id));
    TAILQ_INSERT_TAIL(bucket_of(store, ticket->id), ticket, bucket_link);
    TAILQ_INSERT_TAIL(&ticket->session->tickets, ticket, link);
}

void mrt_sqlite_take_value(struct mrt_sqlite_store *store, sqlite3_stmt *row, int column,
                           struct mrt_event *answer)
{
    const void *value = sqlite3_column_blob(row, column);
    int size = sqlite3_column_bytes(row, column);
    answer->value = store->value;
    answer->value_size = value && size <= MORTISE_VALUE_MAX ? (size_t)size : 0;
    if (answer->value_size > 0)
        memcpy(store->value, value, answer->value_size);
}

/* ------------------------------------------------------------------ notes */

bool mrt_sqlite_ids_add(struct mrt_sqlite_ids *ids, struct mrt_id id)
{
    if (ids->count && mrt_id_equal(ids->items[ids->count - 1], id))
        return true;
    if (ids->count == ids->room) {
        size_t room = ids->room ? ids->room * 2 : 16;
        struct mrt_id *items = realloc(ids->items, room * sizeof *items);
        if (!items)
            return false;
        ids->items = items;
        ids->room = room;
    }
    ids->items[ids->count++] = id;
    return true;
}

struct mrt_sqlite_wake *mrt_sqlite_wake_later(struct mrt_sqlite_store *store, struct mrt_id session,
                                              struct mrt_id ticket, uint64_t weight_ahead)
{
    struct mrt_sqlite_wakes *wakes = &store->wakes;
    if (mrt_id_none(session))
        return NULL; /* nobody hears */
    if (wakes->count == wakes->room) {
        size_t room = wakes->room ? wakes->room * 2 : 16;
        struct mrt_sqlite_wake *items = realloc(wakes->items, room * sizeof *items);
        if (!items)
            return NULL; /* it will see by its recheck */
        wakes->items = items;
        wakes->room = room;
    }
    struct mrt_sqlite_wake *wake = &wakes->items[wakes->count++];
    *wake = (struct mrt_sqlite_wake){session, {ticket, weight_ahead, 0}};
    return wake;
}
