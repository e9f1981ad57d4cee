/*
 * Commands in, events out.
 *
 * What is lost, and how it is told. If the database has been replaced or removed, or
 * reading or writing it fails, nothing in it can be relied on: the command at hand FAILED,
 * and every session is told SESSION_LOST. The sessions are stopped without touching the
 * database; their files go, so whoever still uses it finds them dead. The next START
 * opens what lies at the path by then. A full disk is no such fault where nothing
 * was written; a ticket that cannot be taken out for it is given back by
 * ending its session.
 */
#include "base/error.h"
#include "core/rule.h"
#include "store/kit/refusal.h"
#include "store/sqlite/internal.h"

/* A REFRESH looks at the files no more often than this; an APPEND always does. */
#define CHECK_AGAIN (100 * MRT_MILLISECOND)

/* ------------------------------------------------------------------- events */

void mrt_sqlite_tell(struct mrt_store *store, enum mrt_event_type type, struct mrt_id session,
                     struct mrt_id ticket)
{
    const struct mrt_event event = {.type = type, .session = session, .ticket = ticket};
    store->sink.deliver(store->sink.context, &event);
}

void mrt_sqlite_tell_place(struct mrt_store *store, const struct mrt_sqlite_place *place)
{
    const struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, place->ticket);
    if (!ticket)
        return; /* it has gone meanwhile */
    if (!mrt_rule_grants(place->weight_ahead, ticket->weight, ticket->capacity)) {
        mrt_sqlite_tell(store, MRT_WAKE, ticket->session->id, ticket->id);
        return;
    }
    const struct mrt_event event = {.type = MRT_VIEW,
                                    .session = ticket->session->id,
                                    .ticket = ticket->id,
                                    .fence = ticket->number << MRT_SQLITE_FENCE_BITS,
                                    .fence_span = UINT64_C(1) << MRT_SQLITE_FENCE_BITS,
                                    .weight_ahead = place->weight_ahead,
                                    .others_behind = place->others_behind != 0,
                                    .recheck = MRT_SECOND};
    store->sink.deliver(store->sink.context, &event);
}

static bool answer(struct mrt_store *store, const struct mrt_command *command,
                   enum mrt_event_type type)
{
    const struct mrt_event event = {.type = type,
                                    .serial = command->serial,
                                    .session = command->session,
                                    .ticket = command->ticket};
    store->sink.deliver(store->sink.context, &event);
    return true;
}

/* Answers FAILED with the thread's error detail. */
static bool answer_failed(struct mrt_store *store, const struct mrt_command *command, int error)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    const struct mrt_event event = {.type = MRT_FAILED,
                                    .serial = command->serial,
                                    .session = command->session,
                                    .ticket = command->ticket,
                                    .error = error,
                                    .detail = detail[0] ? detail : NULL};
    store->sink.deliver(store->sink.context, &event);
    return true;
}

static bool answer_view(struct mrt_store *store, const struct mrt_command *command,
                        const struct mrt_sqlite_view *view)
{
    const struct mrt_event event = {.type = MRT_VIEW,
                                    .serial = command->serial,
                                    .session = command->session,
                                    .ticket = command->ticket,
                                    .fence = view->fence,
                                    .fence_span = UINT64_C(1) << MRT_SQLITE_FENCE_BITS,
                                    .weight_ahead = view->weight_ahead,
                                    .others_behind = view->others_behind,
                                    .recheck = view->recheck,
                                    .revoked = view->revoked,
                                    .place = view->place};
    store->sink.deliver(store->sink.context, &event);
    return true;
}

/* Ends all trust in what is open; the particulars are the thread's error detail. */
static void lose_everything(struct mrt_store *store)
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
        const struct mrt_event event = {.type = MRT_SESSION_LOST,
                                        .session = session->id,
                                        .error = MORTISE_ESTORE,
                                        .detail = detail[0] ? detail : NULL};
        store->sink.deliver(store->sink.context, &event);
    }
}

static void note_store_error(const struct mrt_store *store)
{
    mrt_error(MORTISE_ESTORE, "%s: %s", store->file.path, sqlite3_errstr(store->db.last_error));
}

/* What is common to all transactions that did not come to an end. */
static bool answer_outcome(struct mrt_store *store, const struct mrt_command *command,
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

/* Opens what lies at the path now. */
static int reopen(struct mrt_store *store, mrt_time patience)
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

static bool start(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
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

static bool stop(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (!session)
        return answer(store, command, MRT_STOPPED);
    /* If the tickets cannot be taken out, who comes upon them will find the session dead. */
    bool buries = command->died && !session->lost;
    if (!session->lost && !buries && mrt_sqlite_remove_all(store, session, patience) == MRT_BUSY)
        return false;
    mrt_sqlite_session_end(store, session);
    if (buries)
        mrt_sqlite_bury(store, command->session, patience);
    return answer(store, command, MRT_STOPPED);
}

/* Whether others still see the session, and the database at its path. */
static bool check_in_place(struct mrt_store *store, const struct mrt_sqlite_session *session)
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

/* ------------------------------------------------------------------ tickets */

/* Also LIGHTEN and SET_VALUE, which are looks at a ticket that was changed before. */
static bool refresh(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    struct mrt_sqlite_view view = {0};
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, command->ticket);
    if (!ticket || ticket->session->lost || !mrt_id_equal(ticket->session->id, command->session))
        return answer(store, command, MRT_GONE);
    bool due = mrt_time_now() >= store->checked + CHECK_AGAIN;
    if (due && !check_in_place(store, ticket->session)) {
        answer_failed(store, command, MORTISE_ESTORE);
        lose_everything(store);
        return true;
    }
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

static bool adopt(struct mrt_store *store, struct mrt_sqlite_session *session,
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

static bool detach(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    const struct mrt_sqlite_view view = {.recheck = MRT_SECOND};
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    mrt_error_clear();
    if (!session || session->lost)
        return answer_failed(store, command, mrt_error(MORTISE_ELOST, MRT_REFUSAL_ENDED));
    if (!check_in_place(store, session)) {
        answer_failed(store, command, MORTISE_ESTORE);
        lose_everything(store);
        return true;
    }
    enum mrt_outcome outcome = mrt_sqlite_detach(store, command, patience, &verdict);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    return verdict == MRT_IN_QUEUE ? answer_view(store, command, &view)
                                   : answer(store, command, MRT_GONE);
}

static bool append(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    enum mrt_verdict verdict = MRT_ABSENT;
    struct mrt_sqlite_view view = {0};
    struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    mrt_error_clear();
    if (!session || session->lost)
        return answer_failed(store, command, mrt_error(MORTISE_ELOST, MRT_REFUSAL_ENDED));
    if (mrt_sqlite_ticket_find(store, command->ticket))
        return refresh(store, command, patience);
    if (!check_in_place(store, session)) {
        answer_failed(store, command, MORTISE_ESTORE);
        lose_everything(store);
        return true;
    }
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

static bool remove_ticket(struct mrt_store *store, const struct mrt_command *command,
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
static bool answer_other(struct mrt_store *store, const struct mrt_command *command,
                         mrt_time patience)
{
    struct mrt_event event = {.type = MRT_HOLDER,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket};
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (!session || session->lost)
        return answer_failed(store, command, mrt_error(MORTISE_ELOST, MRT_REFUSAL_ENDED));
    if (!check_in_place(store, session)) {
        answer_failed(store, command, MORTISE_ESTORE);
        lose_everything(store);
        return true;
    }
    enum mrt_outcome outcome = command->type == MRT_OBSERVE
                                   ? mrt_sqlite_observe(store, command, patience, &event)
                                   : mrt_sqlite_cell(store, command, patience, &event);
    if (outcome != MRT_DONE)
        return answer_outcome(store, command, outcome);
    store->sink.deliver(store->sink.context, &event);
    return true;
}

static bool renew(struct mrt_store *store, const struct mrt_command *command)
{
    const struct mrt_sqlite_session *session = mrt_sqlite_session_find(store, command->session);
    if (session && !session->lost)
        return answer(store, command, MRT_RENEWED);
    return answer_failed(store, command, mrt_error(MORTISE_ELOST, MRT_REFUSAL_ENDED));
}

void mrt_sqlite_tell_of_fault(struct mrt_store *store)
{
    if (!store->fault)
        return;
    note_store_error(store);
    lose_everything(store);
}

bool mrt_sqlite_dispatch(struct mrt_store *store, const struct mrt_command *command,
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
