/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands in, events out.
 *
 * Loss of the database. If it has been replaced or removed, or reading or writing it fails,
 * nothing in it can be relied on: the command at hand FAILED, and every session gets
 * SESSION_LOST. The sessions are stopped without touching the database. Their files are removed,
 * so a process that still uses the database finds the sessions dead. The next START
 * opens the file that is at the path by then. A full disk is no such fault if nothing
 * was written. If a full disk keeps a ticket from being removed, the ticket is given up by
 * ending its session.
 */
#include "store/sqlite/command.h"

#include "base/error.h"
#include "store/kit/refusal.h"
#include "store/sqlite/death.h"
#include "store/sqlite/detach.h"
#include "store/sqlite/leave.h"
#include "store/sqlite/observe.h"
#include "store/sqlite/queue.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"
#include "store/sqlite/watch.h"

/* The least time between two checks of the files by REFRESH; an APPEND always checks them. */
#define CHECK_AGAIN (100 * MRT_MILLISECOND)

/* ------------------------------------------------------------------- events */

static bool answer(struct mrt_sqlite_store *store, const struct mrt_command *command,
                   enum mrt_event_type type)
{
    mrt_sink_deliver(&store->sink, mrt_answer_to(command, type));
    return true;
}

static bool answer_ended(struct mrt_sqlite_store *store, const struct mrt_command *command)
{
    mrt_sink_deliver(&store->sink, mrt_answer_ended(command));
    return true;
}

/* Answers FAILED with the thread's error detail. */
static bool answer_failed(struct mrt_sqlite_store *store, const struct mrt_command *command,
                          int error)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    struct mrt_event event = mrt_answer_to(command, MRT_FAILED);
    event.error = error;
    event.detail = detail[0] ? detail : NULL;
    mrt_sink_deliver(&store->sink, event);
    return true;
}

static bool answer_view(struct mrt_sqlite_store *store, const struct mrt_command *command,
                        const struct mrt_sqlite_view *view)
{
    struct mrt_event event = mrt_answer_to(command, MRT_VIEW);
    event.fence = view->fence;
    event.fence_span = UINT64_C(1) << MRT_SQLITE_FENCE_BITS;
    event.weight_ahead = view->weight_ahead;
    event.others_behind = view->others_behind;
    event.recheck = view->recheck;
    event.revoked = view->revoked;
    event.place = view->place;
    mrt_sink_deliver(&store->sink, event);
    return true;
}

/* Marks the open database as not usable any longer; the thread's error detail says why. */
static void lose_everything(struct mrt_sqlite_store *store)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    store->fault = false;
    store->broken = true;
    struct mrt_sqlite_session *session;
    TAILQ_FOREACH (session, &store->sessions, link) {
        if (session->lost)
            continue;
        session->lost = true;
        mrt_sink_deliver(&store->sink, (struct mrt_event){.type = MRT_SESSION_LOST,
                                                          .session = session->id,
                                                          .error = MORTISE_ESTORE,
                                                          .detail = detail[0] ? detail : NULL});
    }
}

static void note_store_error(const struct mrt_sqlite_store *store)
{
    mrt_error(MORTISE_ESTORE, "%s: %s", store->file.path, sqlite3_errstr(store->db.last_error));
}

/* The answer to a command whose transaction has not been completed. */
static bool answer_outcome(struct mrt_sqlite_store *store, const struct mrt_command *command,
                           enum mrt_outcome outcome)
{
    if (outcome == MRT_BUSY)
        return false;
    if (outcome == MRT_FULL && (store->db.last_error & 0xff) != SQLITE_FULL) {
        mrt_error(MORTISE_ENOMEM, "%s", "");
        return answer_failed(store, command, MORTISE_ENOMEM);
    }
    bool removes = command->type == MRT_REMOVE; /* the answer ends the command */
    note_store_error(store);
    answer_failed(store, command, MORTISE_ESTORE);
    if (outcome == MRT_BROKEN || removes)
        lose_everything(store);
    return true;
}

/* ----------------------------------------------------------------- sessions */

int mrt_sqlite_open_file(struct mrt_sqlite_store *store, mrt_time patience)
{
    int error = mrt_sqlite_file_open(&store->file, store->configured, store->any_filesystem);
    if (error)
        return error;
    if (mrt_sqlite_fork_inherited(store->file.device, store->file.inode))
        error = mrt_error(MORTISE_EFORKED,
                          "%s was open in this process when it was forked off: open it after "
                          "the fork, or exec first",
                          store->file.path);
    if (!error)
        store->noted = mrt_sqlite_fork_note_database(store->file.device, store->file.inode);
    if (!error && !store->noted)
        error = MORTISE_ENOMEM;
    if (!error)
        error = mrt_sqlite_db_open(&store->db, &store->file, store->short_lived, patience);
    if (error) {
        mrt_sqlite_fork_forget_database(store->noted);
        store->noted = NULL;
        mrt_sqlite_file_close(&store->file);
        return error;
    }
    snprintf(store->address, sizeof store->address, "sqlite:%s", store->file.path);
    return 0;
}

void mrt_sqlite_close_file(struct mrt_sqlite_store *store)
{
    mrt_sqlite_unwatch_all(store);
    mrt_sqlite_db_close(&store->db);
    mrt_sqlite_fork_forget_database(store->noted);
    store->noted = NULL;
    mrt_sqlite_file_close(&store->file);
}

/* Opens the file that is at the path now. */
static int reopen(struct mrt_sqlite_store *store, mrt_time patience)
{
    struct mrt_sqlite_session *session;
    while ((session = TAILQ_FIRST(&store->sessions)))
        mrt_sqlite_session_end(store, session);
    mrt_sqlite_close_file(store);
    store->broken = true;
    int error = mrt_sqlite_open_file(store, patience);
    store->broken = error != 0;
    return error;
}

static bool start(struct mrt_sqlite_store *store, const struct mrt_command *command,
                  mrt_time patience)
{
    int error = 0;
    mrt_error_clear();
    const struct mrt_sqlite_session *known = mrt_sqlite_session_find(store, command->session);
    if (known && !known->lost)
        return answer(store, command, MRT_STARTED);
    if (TAILQ_EMPTY(&store->sessions) && !store->broken &&
        (!mrt_sqlite_file_in_place(&store->file) || !mrt_sqlite_sessions_visible(store)))
        store->broken = true;
    if (store->broken)
        error = reopen(store, patience);
    if (!error)
        error = mrt_sqlite_session_start(store, command->session);
    if (error)
        return answer_failed(store, command, error);
    mrt_sqlite_sweep(store, patience);
    return answer(store, command, MRT_STARTED);
}

static bool stop(struct mrt_sqlite_store *store, const struct mrt_command *command,
                 mrt_time patience)
{
    struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (!session)
        return answer(store, command, MRT_STOPPED);
    /* If the tickets cannot be taken out, the next client that meets them finds the session dead.
     */
    bool buries = command->died && !session->lost;
    if (!session->lost && !buries && mrt_sqlite_remove_all(store, session, patience) == MRT_BUSY)
        return false;
    mrt_sqlite_session_end(store, session);
    if (buries)
        mrt_sqlite_bury(store, command->session, patience);
    return answer(store, command, MRT_STOPPED);
}

/* Whether others still see the session, and the database at its path. */
static bool check_in_place(struct mrt_sqlite_store *store, const struct mrt_sqlite_session *session)
{
    if (!mrt_sqlite_file_in_place(&store->file)) {
        mrt_error(MORTISE_ESTORE, "%s has been replaced or removed", store->file.path);
        return false;
    }
    if (!mrt_sqlite_session_visible(session)) {
        mrt_error(MORTISE_ESTORE, "this session's file in %s has been removed",
                  store->file.sessions);
        return false;
    }
    store->checked = mrt_time_now();
    return true;
}

/* The thread's error detail tells what check_in_place has found. */
static bool answer_lost(struct mrt_sqlite_store *store, const struct mrt_command *command)
{
    answer_failed(store, command, MORTISE_ESTORE);
    lose_everything(store);
    return true;
}

/* ------------------------------------------------------------------ tickets */

/* Also LIGHTEN and SET_VALUE, which are looks at a ticket that was changed before. */
static bool refresh(struct mrt_sqlite_store *store, const struct mrt_command *command,
                    mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    struct mrt_sqlite_view view = {0};
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, command->ticket);
    if (!ticket || ticket->session->lost || !mrt_id_equal(ticket->session->id, command->session))
        return answer(store, command, MRT_GONE);
    bool due = mrt_time_now() >= store->checked + CHECK_AGAIN;
    if (due && !check_in_place(store, ticket->session))
        return answer_lost(store, command);
    enum mrt_outcome outcome = MRT_DONE;
    if (command->type == MRT_LIGHTEN)
        outcome = mrt_sqlite_lighten(store, ticket, command->weight, patience);
    else if (command->type == MRT_SET_VALUE)
        outcome =
            mrt_sqlite_set_value(store, ticket, command->value, command->value_size, patience);
    if (outcome == MRT_DONE)
        outcome =
            mrt_sqlite_refresh(store, ticket, command->watch_closely, patience, &verdict, &view);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    if (verdict == MRT_IN_QUEUE && command->wants_place)
        view.place = mrt_sqlite_place(store, ticket);
    if (verdict == MRT_IN_QUEUE)
        return answer_view(store, command, &view);
    mrt_sqlite_ticket_free(store, ticket);
    return answer(store, command, MRT_GONE);
}

static bool adopt(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session,
                  const struct mrt_command *command, mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    enum mrt_outcome outcome = mrt_sqlite_adopt(store, session, command, patience, &verdict);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    if (verdict == MRT_MISMATCH)
        return answer_failed(store, command, mrt_error(MORTISE_EMISMATCH, MRT_REFUSAL_ADOPT));
    if (verdict == MRT_ABSENT)
        return answer_failed(store, command, MORTISE_ENOTHELD);
    return refresh(store, command, patience);
}

static bool detach(struct mrt_sqlite_store *store, const struct mrt_command *command,
                   mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    const struct mrt_sqlite_view view = {.recheck = MRT_SECOND};
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    mrt_error_clear();
    if (!session || session->lost)
        return answer_ended(store, command);
    if (!check_in_place(store, session))
        return answer_lost(store, command);
    enum mrt_outcome outcome = mrt_sqlite_detach(store, command, patience, &verdict);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    return verdict == MRT_IN_QUEUE ? answer_view(store, command, &view)
                                   : answer(store, command, MRT_GONE);
}

static bool append(struct mrt_sqlite_store *store, const struct mrt_command *command,
                   mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    struct mrt_sqlite_view view = {0};
    struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    mrt_error_clear();
    if (!session || session->lost)
        return answer_ended(store, command);
    if (mrt_sqlite_ticket_find(store, command->ticket))
        return refresh(store, command, patience);
    if (!check_in_place(store, session))
        return answer_lost(store, command);
    if (command->adopt)
        return adopt(store, session, command, patience);
    enum mrt_outcome outcome =
        mrt_sqlite_append(store, session, command, patience, &verdict, &view);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    if (verdict == MRT_MISMATCH)
        return answer_failed(store, command, MORTISE_EMISMATCH);
    if (verdict == MRT_CROWDED)
        return answer_failed(
            store, command,
            mrt_error(MORTISE_EFULL, MRT_REFUSAL_FULL, command->queue_max, command->queue));
    if (verdict == MRT_NO_ROOM)
        return answer(store, command, MRT_BLOCKED);
    if (command->wants_place)
        view.place = mrt_sqlite_place(store, mrt_sqlite_ticket_find(store, command->ticket));
    return answer_view(store, command, &view);
}

static bool remove_ticket(struct mrt_sqlite_store *store, const struct mrt_command *command,
                          mrt_time patience)
{
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, command->ticket);
    if (!ticket || ticket->session->lost || !mrt_id_equal(ticket->session->id, command->session))
        return answer(store, command, MRT_REMOVED);
    enum mrt_outcome outcome = mrt_sqlite_remove(store, ticket, patience);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    return answer(store, command, MRT_REMOVED);
}

/* OBSERVE, CELL_GET, CELL_SET. */
static bool answer_other(struct mrt_sqlite_store *store, const struct mrt_command *command,
                         mrt_time patience)
{
    struct mrt_event event = mrt_answer_to(command, MRT_HOLDER);
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (!session || session->lost)
        return answer_ended(store, command);
    if (!check_in_place(store, session))
        return answer_lost(store, command);
    enum mrt_outcome outcome = command->type == MRT_OBSERVE
                                   ? mrt_sqlite_observe(store, command, patience, &event)
                                   : mrt_sqlite_cell(store, command, patience, &event);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    mrt_sink_deliver(&store->sink, event);
    return true;
}

static bool renew(struct mrt_sqlite_store *store, const struct mrt_command *command)
{
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (session && !session->lost)
        return answer(store, command, MRT_RENEWED);
    return answer_ended(store, command);
}

void mrt_sqlite_tell_of_fault(struct mrt_sqlite_store *store)
{
    if (!store->fault)
        return;
    note_store_error(store);
    lose_everything(store);
}

bool mrt_sqlite_dispatch(struct mrt_sqlite_store *store, const struct mrt_command *command,
                         mrt_time patience)
{
    switch (command->type) {
    case MRT_START:
        return start(store, command, patience);
    case MRT_STOP:
        return stop(store, command, patience);
    case MRT_RENEW:
        return renew(store, command);
    case MRT_APPEND:
        return append(store, command, patience);
    case MRT_REFRESH:
    case MRT_LIGHTEN:
    case MRT_SET_VALUE:
        return refresh(store, command, patience);
    case MRT_REMOVE:
        return remove_ticket(store, command, patience);
    case MRT_DETACH:
        return detach(store, command, patience);
    default:
        return answer_other(store, command, patience);
    }
}
