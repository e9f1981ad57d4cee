/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached tickets: rows whose session is 16 zero bytes, which is no session's id.
 *
 * Both changes of session are on disk when they are answered. So a power cut does not undo a detach
 * that was reported. Nor does it bring back, as a detached ticket, one that was adopted and
 * released since, which would then hold for ever.
 *
 * A waiter watches the session of the ticket ahead of it. So after an adoption the first waiter is
 * woken, to find out whom to watch.
 */
#include "store/sqlite/detach.h"

#include "store/sqlite/leave.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"

#include <stdlib.h>
#include <string.h>

static const struct mrt_id nobody;

/* One change of hands. */
struct change {
    struct mrt_sqlite_store *store;
    const char *queue;
    uint64_t number, weight, capacity;
    struct mrt_id id, session; /* before */
    struct mrt_id new_id, new_session;
    mrt_time delay; /* from then on */
    bool linger;    /* and so */
    bool there;     /* the row was found */
};

/* Finds the queue's ticket that is nobody's and called so; fills in the rest but for the kind. */
static enum mrt_outcome find_detached(struct change *change, const char *kind, bool *same_kind)
{
    struct mrt_sqlite_db *db = &change->store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_DETACHED);
    if (!row)
        return mrt_sqlite_outcome(db);
    sqlite3_bind_text(row, 1, change->queue, -1, SQLITE_STATIC);
    mrt_sqlite_bind_id(row, 2, &nobody);
    mrt_sqlite_bind_id(row, 3, &change->id);
    change->there = mrt_sqlite_step(db, row) == SQLITE_ROW;
    if (change->there) {
        const char *found = (const char *)sqlite3_column_text(row, 1);
        change->number = (uint64_t)sqlite3_column_int64(row, 0);
        change->capacity = (uint64_t)sqlite3_column_int64(row, 2);
        change->weight = (uint64_t)sqlite3_column_int64(row, 3);
        *same_kind = found && strcmp(found, kind) == 0;
    }
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}

/* In a transaction. */
static enum mrt_outcome move(struct mrt_sqlite_db *db, void *argument)
{
    struct change *change = argument;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_MOVE);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(statement, change->queue, change->number);
    mrt_sqlite_bind_id(statement, 3, &change->id);
    mrt_sqlite_bind_id(statement, 4, &change->new_session);
    mrt_sqlite_bind_id(statement, 5, &change->new_id);
    mrt_sqlite_bind_id(statement, 6, &change->session);
    sqlite3_bind_int64(statement, 7, change->delay);
    sqlite3_bind_int(statement, 8, change->linger);
    enum mrt_outcome outcome = mrt_sqlite_run(db, MRT_SQLITE_MOVE);
    change->there = sqlite3_changes(db->handle) == 1;
    return outcome;
}

enum mrt_outcome mrt_sqlite_detach(struct mrt_sqlite_store *store,
                                   const struct mrt_command *command, mrt_time patience,
                                   enum mrt_verdict *verdict)
{
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, command->ticket);
    struct change change = {.store = store, .queue = command->queue, .id = command->detached_id};
    enum mrt_outcome outcome = MRT_DONE;
    bool same_kind;
    store->db.patience = patience;
    if (!ticket) {
        outcome = find_detached(&change, command->kind, &same_kind);
    } else {
        change.id = command->ticket;
        change.session = command->session;
        change.new_id = command->detached_id;
        change.number = ticket->number;
        outcome = mrt_sqlite_lighten(store, ticket, command->weight, patience);
        if (outcome == MRT_DONE)
            outcome = mrt_sqlite_write_durably(&store->db, patience, move, &change);
        if (outcome == MRT_DONE)
            mrt_sqlite_ticket_free(store, ticket);
    }
    *verdict = change.there ? MRT_IN_QUEUE : MRT_ABSENT;
    return outcome;
}

enum mrt_outcome mrt_sqlite_adopt(struct mrt_sqlite_store *store,
                                  struct mrt_sqlite_session *session,
                                  const struct mrt_command *command, mrt_time patience,
                                  enum mrt_verdict *verdict)
{
    struct change change = {.store = store,
                            .queue = command->queue,
                            .id = command->ticket,
                            .new_id = command->ticket,
                            .new_session = session->id,
                            .delay = command->delay,
                            .linger = command->linger};
    bool same_kind = false;
    store->db.patience = patience;
    enum mrt_outcome outcome = find_detached(&change, command->kind, &same_kind);
    *verdict = MRT_ABSENT;
    if (outcome != MRT_DONE || !change.there)
        return outcome;
    *verdict = MRT_MISMATCH;
    if (!same_kind || change.capacity != command->capacity || change.weight != command->weight)
        return MRT_DONE;
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_new(session, command);
    if (!ticket)
        return MRT_FULL;
    ticket->number = change.number;
    if (command->linger)
        mrt_sqlite_listen(store, session); /* before anybody can send to it */
    outcome = mrt_sqlite_write_durably(&store->db, patience, move, &change);
    *verdict = change.there ? MRT_IN_QUEUE : MRT_ABSENT;
    if (outcome != MRT_DONE || !change.there) {
        free(ticket);
        return outcome;
    }
    mrt_sqlite_ticket_enter(store, ticket);
    mrt_sqlite_note_first_waiting(
        store, ticket->queue); /* a waiter that is not told reads by itself before long */
    return MRT_DONE;
}
