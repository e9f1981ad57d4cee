/*
 * A ticket: one place in one queue of the store.
 *
 *   FREE -> NEW -> WAITING -> GRANTED -> LEAVING -> FREE
 *           any of them, when the session dies -> ORPHAN -> FREE
 *
 * Invariants:
 *  - At most one command of a ticket is under way. What is wanted meanwhile is
 *    kept as state (LEAVING, look_again) and sent when the answer comes.
 *  - A ticket that may be in the store is not freed before its removal is proven
 *    or its session is dead. So an acquire that was given up leaves nothing.
 *  - The memory of a fetched command stays until it is answered (ORPHAN). Its identity does not:
 *    what was to be adopted may be asked for again in the next session.
 *  - GRANTED is for good: an answer that says otherwise means that the ticket in the store is
 *    not ours any more, and the hold is lost.
 */
#include "base/assert.h"
#include "core/defect.h"
#include "core/parts.h"
#include "core/rule.h"

#include <stdlib.h>

/* How often an APPEND that failed is repeated; with the pauses about four seconds. */
#define ATTEMPTS_MAX 10

/* Moves that may happen, a row for each state as a set of next states. */
static const unsigned moves[] = {
    [MRT_TICKET_FREE] = 1u << MRT_TICKET_NEW,
    [MRT_TICKET_NEW] = 1u << MRT_TICKET_WAITING | 1u << MRT_TICKET_LEAVING |
                       1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_WAITING] = 1u << MRT_TICKET_GRANTED | 1u << MRT_TICKET_LEAVING |
                           1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_GRANTED] =
        1u << MRT_TICKET_LEAVING | 1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_LEAVING] = 1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_ORPHAN] = 1u << MRT_TICKET_FREE,
};

static void move(struct mrt_ticket *ticket, enum mrt_ticket_state state)
{
    MRT_ASSERT(moves[ticket->state] & 1u << state);
    ticket->state = state;
}

static bool under_way(const struct mrt_ticket *ticket)
{
    return ticket->command.queued || ticket->command.outstanding;
}

static void send(struct mrt_ticket *ticket, enum mrt_command_type type)
{
    struct mrt_engine *engine = ticket->queue->engine;
    mrt_heap_clear(&engine->timers, &ticket->timer);
    ticket->command.session = engine->session.id;
    ticket->command.ticket = ticket->id;
    ticket->command.fence = ticket->fence;
    ticket->command.queue = ticket->queue->name;
    ticket->command.kind = ticket->queue->recipe.kind;
    ticket->command.capacity = ticket->queue->recipe.capacity;
    ticket->command.weight = ticket->weight;
    ticket->command.claim = ticket->queue->recipe.claim;
    ticket->command.adopt = ticket->adopts;
    ticket->command.heir = ticket->heir;
    ticket->command.try_only = ticket->try_only && !MRT_DEFECT(TRY_LEAVES_TICKET);
    ticket->command.queue_max = engine->config.queue_max;
    ticket->command.attend = ticket->attend;
    ticket->command.linger = ticket->may_linger;
    ticket->command.delay = ticket->delay;
    ticket->command.count = mrt_queue_counts(ticket);
    ticket->command.likely_last = !ticket->waited && !ticket->others_behind;
    if (ticket->sent != ticket->value)
        free(ticket->sent);
    ticket->sent = ticket->value;
    ticket->command.value = ticket->value;
    ticket->command.value_size = ticket->value_size;
    mrt_engine_send(engine, &ticket->command, type);
}

/* `id`: none for a new one. */
static struct mrt_ticket *take(struct mrt_engine *engine, struct mrt_id id)
{
    struct mrt_ticket *ticket = TAILQ_FIRST(&engine->free_tickets);
    if (ticket) {
        TAILQ_REMOVE(&engine->free_tickets, ticket, link);
        memset(ticket, 0, sizeof *ticket);
    } else {
        ticket = calloc(1, sizeof *ticket);
        if (!ticket)
            return NULL;
    }
    ticket->timer.kind = MRT_TIMER_TICKET;
    TAILQ_INIT(&ticket->verifiers);
    ticket->id = mrt_id_none(id) ? mrt_engine_identity(engine) : id;
    HASH_ADD(hh, engine->tickets_by_id, id, sizeof ticket->id, ticket);
    if (!ticket->hh.tbl) {
        TAILQ_INSERT_HEAD(&engine->free_tickets, ticket, link);
        return NULL;
    }
    return ticket;
}

/* A copy that is not NULL, though it may be empty; NULL: no memory. */
static void *copy_of(const void *value, size_t size)
{
    void *copy = malloc(size + 1);
    if (copy && size > 0)
        memcpy(copy, value, size);
    return copy;
}

static void forget_value(struct mrt_ticket *ticket)
{
    if (ticket->sent != ticket->value)
        free(ticket->sent);
    free(ticket->value);
    ticket->value = ticket->sent = NULL;
}

void mrt_ticket_free(struct mrt_ticket *ticket)
{
    forget_value(ticket);
    free(ticket);
}

static bool in_queue(const struct mrt_ticket *ticket)
{
    return ticket->state == MRT_TICKET_NEW || ticket->state == MRT_TICKET_WAITING ||
           ticket->state == MRT_TICKET_GRANTED;
}

/* Out of the list it is in: that of its queue, or of the loose ones. */
static void unlist(struct mrt_ticket *ticket)
{
    struct mrt_queue *queue = ticket->queue;
    if (!in_queue(ticket)) {
        TAILQ_REMOVE(&queue->engine->loose_tickets, ticket, link);
        return;
    }
    TAILQ_REMOVE(&queue->tickets, ticket, link);
    if (queue->ticket == ticket)
        queue->ticket = NULL;
}

/* Back to the free ones. */
static void put(struct mrt_ticket *ticket)
{
    struct mrt_queue *queue = ticket->queue;
    struct mrt_engine *engine = queue->engine;
    MRT_ASSERT(!under_way(ticket) && ticket->holds == 0 && !ticket->waiter);
    unlist(ticket);
    if (ticket->state != MRT_TICKET_ORPHAN)
        HASH_DEL(engine->tickets_by_id, ticket);
    move(ticket, MRT_TICKET_FREE);
    mrt_heap_clear(&engine->timers, &ticket->timer);
    forget_value(ticket);
    TAILQ_INSERT_HEAD(&engine->free_tickets, ticket, link);
    mrt_queue_put(queue);
}

/* Takes a ticket out of its queue; it lives on for its command's sake, as `state`. */
static void loosen(struct mrt_ticket *ticket, enum mrt_ticket_state state)
{
    unlist(ticket);
    if (state == MRT_TICKET_ORPHAN)
        HASH_DEL(ticket->queue->engine->tickets_by_id, ticket);
    move(ticket, state);
    TAILQ_INSERT_TAIL(&ticket->queue->engine->loose_tickets, ticket, link);
}

struct mrt_ticket *mrt_ticket_append(struct mrt_queue *queue, const struct mrt_waiter *waiter)
{
    void *value = waiter->value ? copy_of(waiter->value, waiter->value_size) : NULL;
    struct mrt_ticket *ticket =
        value || !waiter->value ? take(queue->engine, waiter->adopts) : NULL;
    if (!ticket) {
        free(value);
        return NULL;
    }
    ticket->value = value;
    ticket->value_size = waiter->value_size;
    ticket->queue = queue;
    mrt_queue_reference(queue);
    move(ticket, MRT_TICKET_NEW);
    TAILQ_INSERT_TAIL(&queue->tickets, ticket, link);
    ticket->weight = waiter->weight;
    ticket->try_only = waiter->try_only;
    ticket->command.hopeful = waiter->hopeful;
    ticket->delay = queue->delay;
    ticket->may_linger = queue->linger > 0;
    ticket->adopts = !mrt_id_none(waiter->adopts);
    ticket->last_fence = waiter->last_fence;
    send(ticket, MRT_APPEND);
    return ticket;
}

void mrt_ticket_look(struct mrt_ticket *ticket)
{
    bool entered = ticket->state == MRT_TICKET_WAITING || ticket->state == MRT_TICKET_GRANTED;
    if (ticket->command.outstanding)
        ticket->look_again =
            entered ||
            !MRT_DEFECT(EARLY_WAKE_LOST); /* also while NEW: the wake may overtake the answer */
    else if (entered && !ticket->command.queued)
        send(ticket, MRT_REFRESH);
}

void mrt_ticket_attend(struct mrt_ticket *ticket)
{
    if (ticket->attend)
        return;
    ticket->attend = true;
    if (ticket->command.queued)
        ticket->command.attend = true;
    else
        mrt_ticket_look(ticket);
}

void mrt_ticket_lighten(struct mrt_ticket *ticket, uint64_t weight)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED);
    if (weight >= ticket->weight)
        return;
    ticket->weight = weight;
    ticket->lightening = true;
    if (!under_way(ticket))
        send(ticket, MRT_LIGHTEN);
}

int mrt_ticket_set_value(struct mrt_ticket *ticket, const void *value, size_t size)
{
    void *copy = copy_of(value, size);
    if (!copy)
        return MORTISE_ENOMEM;
    if (ticket->value != ticket->sent)
        free(ticket->value);
    ticket->value = copy;
    ticket->value_size = size;
    ticket->revaluing = !MRT_DEFECT(VALUE_FORGOTTEN) || !under_way(ticket);
    if (!under_way(ticket) && ticket->state != MRT_TICKET_NEW)
        send(ticket, MRT_SET_VALUE);
    return MORTISE_OK;
}

/* How it leaves: for good, or to be nobody's. */
static enum mrt_command_type way_out(const struct mrt_ticket *ticket)
{
    return mrt_id_none(ticket->heir) ? MRT_REMOVE : MRT_DETACH;
}

void mrt_ticket_remove(struct mrt_ticket *ticket)
{
    MRT_ASSERT(ticket->holds == 0);
    if (ticket->adopts && !MRT_DEFECT(ADOPTED_REMOVED))
        ticket->heir = ticket->id; /* nobody has had it yet: it is to be as it was */
    struct mrt_engine *engine = ticket->queue->engine;
    if (!MRT_DEFECT(LINGER_REMOVED_ONCE))
        ticket->lingers = 0; /* its timer is that of the removal now */
    mrt_ticket_end_verifiers(ticket, MORTISE_ENOTHELD);
    bool never_sent = ticket->state == MRT_TICKET_NEW && !ticket->maybe;
    if (mrt_engine_unsend(engine, &ticket->command) || !under_way(ticket)) {
        mrt_heap_clear(&engine->timers, &ticket->timer);
        if (never_sent || MRT_DEFECT(CANCEL_LEAVES_TICKET)) {
            put(ticket);
            return;
        }
        loosen(ticket, MRT_TICKET_LEAVING);
        send(ticket, way_out(ticket));
        return;
    }
    MRT_ASSERT(ticket->command.type != MRT_REMOVE);
    loosen(ticket, MRT_TICKET_LEAVING);
    ticket->unsent = true;
    ticket->queue->unsent++;
}

/* What the next ticket of the queue had to wait for has been sent, or is not needed. */
static void is_sent(struct mrt_ticket *ticket)
{
    if (ticket->unsent)
        ticket->queue->unsent--;
    ticket->unsent = false;
}

void mrt_ticket_drop(struct mrt_ticket *ticket)
{
    struct mrt_engine *engine = ticket->queue->engine;
    MRT_ASSERT(ticket->holds == 0);
    bool maybe = ticket->command.type == MRT_DETACH && !MRT_DEFECT(DETACH_NOT_LOST) &&
                 (ticket->command.outstanding || ticket->maybe);
    mrt_engine_unsend(engine, &ticket->command);
    mrt_ticket_end_verifiers(ticket, maybe ? MORTISE_EUNKNOWN : MORTISE_ELOST);
    mrt_heap_clear(&engine->timers, &ticket->timer);
    is_sent(ticket);
    if (ticket->command.outstanding) {
        loosen(ticket, MRT_TICKET_ORPHAN);
        return;
    }
    put(ticket);
}

/* When a command is due, or lingering ends. */
static void set_timer(struct mrt_ticket *ticket)
{
    mrt_time at = ticket->due;
    if (ticket->lingers > 0)
        at = mrt_time_min(at, ticket->lingers);
    if (at != MRT_TIME_NEVER)
        mrt_heap_set(&ticket->queue->engine->timers, &ticket->timer, at);
}

void mrt_ticket_linger(struct mrt_ticket *ticket, mrt_time until)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED && ticket->holds == 0);
    ticket->lingers = until;
    if (!under_way(ticket))
        set_timer(ticket);
}

/* The removal, or what has to be repeated, after a pause. */
static void again_later(struct mrt_ticket *ticket, mrt_time now)
{
    struct mrt_engine *engine = ticket->queue->engine;
    mrt_time pause = mrt_engine_pause(engine, ticket->attempts++);
    ticket->due = mrt_time_add(now, pause);
    set_timer(ticket);
}

void mrt_ticket_timer(struct mrt_ticket *ticket, mrt_time now)
{
    if (ticket->lingers > 0 && now >= ticket->lingers) {
        mrt_queue_serve(ticket->queue, now);
        return;
    }
    if (under_way(ticket))
        return;
    if (now < ticket->due) {
        set_timer(ticket); /* it was set for lingering, which has ended otherwise */
        return;
    }
    switch (ticket->state) {
    case MRT_TICKET_NEW:
        if (MRT_DEFECT(GHOST_APPEND))
            ticket->id.high ^= ticket->attempts;
        send(ticket, MRT_APPEND);
        break;
    case MRT_TICKET_LEAVING:
        send(ticket, way_out(ticket));
        break;
    default:
        send(ticket, ticket->lightening  ? MRT_LIGHTEN
                     : ticket->revaluing ? MRT_SET_VALUE
                                         : MRT_REFRESH);
    }
}

static void gone(struct mrt_ticket *ticket, mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    if (MRT_DEFECT(GONE_IGNORED) && ticket->holds)
        return;
    mrt_queue_ticket_gone(ticket);
    mrt_queue_serve(queue, now);
}

void mrt_ticket_revoked(struct mrt_ticket *ticket, uint64_t number)
{
    struct mrt_hold *hold;
    if (number <= ticket->revoked)
        return;
    ticket->revoked = number;
    TAILQ_FOREACH (hold, &ticket->queue->holds, link)
        if (hold->ticket == ticket)
            mrt_hold_ask(hold);
}

/* Whether others wait behind it, by what is newest. What was not asked for may be older than what
   is known, or newer than the answer that is under way. Who lingers keeps the lock if it is not
   told, so then an unasked word that there is nobody is not believed, and one of others asked
   about. */
static bool has_others(struct mrt_ticket *ticket, const struct mrt_event *event)
{
    if (event->serial > 0 || !ticket->may_linger || MRT_DEFECT(LINGER_BY_HEARSAY))
        return event->others_behind;
    if (event->others_behind && ticket->command.outstanding)
        mrt_ticket_look(ticket);
    return event->others_behind || ticket->others_behind;
}

static void viewed(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    struct mrt_engine *engine = queue->engine;
    bool grants = mrt_rule_grants(event->weight_ahead, ticket->weight, queue->recipe.capacity);
    if (ticket->state == MRT_TICKET_GRANTED && !grants) {
        if (event->serial == 0 || event->serial <= ticket->granted_serial)
            mrt_ticket_look(ticket); /* as old as that, it says nothing against the grant */
        else
            gone(ticket, now);
        return;
    }
    if (ticket->state == MRT_TICKET_NEW) {
        ticket->revoked = 0; /* what came before may be of one that was broken unseen */
        move(ticket, MRT_TICKET_WAITING);
    }
    mrt_ticket_revoked(ticket, event->revoked);
    if (ticket->try_only && !grants) { /* not to be, by (i) of the port; it must not stay */
        mrt_queue_blocked(ticket);
        if (MRT_DEFECT(TRY_LEAVES_TICKET))
            mrt_ticket_drop(ticket);
        else
            mrt_ticket_remove(ticket);
        mrt_queue_serve(queue, now);
        return;
    }
    ticket->adrift = false;
    if (!grants) {
        ticket->waited = true;
        mrt_queue_placed(ticket, event->place);
    }
    ticket->attempts = 0;
    ticket->fence = event->fence;
    ticket->fence_span = event->fence_span;
    ticket->others_behind = has_others(ticket, event);
    ticket->recheck = event->recheck;
    bool looks = ticket->recheck > 0 && !MRT_DEFECT(NO_RECHECK);
    ticket->due = looks ? mrt_time_add(now, ticket->recheck) : MRT_TIME_NEVER;
    set_timer(ticket);
    if (ticket->state == MRT_TICKET_WAITING && grants) {
        move(ticket, MRT_TICKET_GRANTED);
        ticket->granted_serial = engine->serial;
        ticket->fresh = true;
        if (ticket->adopts)
            mrt_ticket_resume(ticket);
        mrt_queue_granted(queue, now);
    } else if (ticket->asking && !ticket->others_behind) {
        queue->turn_began = now;
        queue->turn_count = 0;
    }
    ticket->asking = false;
}

static void answered_view(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    uint64_t asked = ticket->command.serial;
    if (ticket->command.type == MRT_LIGHTEN && ticket->command.weight == ticket->weight)
        ticket->lightening = false;
    if (ticket->command.type == MRT_SET_VALUE && ticket->sent == ticket->value)
        ticket->revaluing = false;
    viewed(ticket, event, now);
    if (in_queue(ticket))
        mrt_ticket_verified(ticket, asked);
    if (in_queue(ticket) && (ticket->look_again || !TAILQ_EMPTY(&ticket->verifiers))) {
        ticket->look_again = false;
        mrt_ticket_look(ticket);
    }
    if (in_queue(ticket) && ticket->lightening && !under_way(ticket))
        send(ticket, MRT_LIGHTEN);
    if (in_queue(ticket) && ticket->revaluing && !under_way(ticket))
        send(ticket, MRT_SET_VALUE);
}

/* Whether a failed APPEND, and those before it, have put nothing into the store. */
static bool was_not_done(const struct mrt_ticket *ticket, const struct mrt_event *event)
{
    return !ticket->maybe ||
           (ticket->adopts && mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY);
}

static void answered_in_queue(struct mrt_ticket *ticket, const struct mrt_event *event,
                              mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    switch (event->type) {
    case MRT_VIEW:
        answered_view(ticket, event, now);
        break;
    case MRT_BLOCKED:
        mrt_queue_blocked(ticket);
        if (!MRT_DEFECT(LOCAL_KEPT))
            mrt_queue_ticket_gone(ticket);
        mrt_queue_serve(queue, now);
        break;
    case MRT_FAILED:
        if (ticket->state == MRT_TICKET_NEW && was_not_done(ticket, event) &&
            (ticket->try_only || ticket->attempts >= ATTEMPTS_MAX ||
             event->error == MORTISE_EFULL ||
             mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY)) {
            mrt_queue_refused(ticket, event->error);
            mrt_queue_serve(queue, now);
            break;
        }
        ticket->adrift = event->error == MORTISE_EUNREACHABLE;
        again_later(ticket, now);
        break;
    case MRT_UNKNOWN:
        ticket->maybe = true;
        ticket->adrift = true;
        again_later(ticket, now);
        break;
    default:
        gone(ticket, now);
    }
    if (in_queue(ticket))
        mrt_queue_serve(queue, now);
}

/* The answer to a DETACH. True: the ticket is ours no more. */
static bool answered_detach(struct mrt_ticket *ticket, const struct mrt_event *event)
{
    bool refused = event->type == MRT_FAILED && !ticket->maybe && !ticket->adopts &&
                   mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY;
    bool done = event->type == MRT_VIEW || (MRT_DEFECT(DETACH_ONCE) && event->type == MRT_UNKNOWN);
    if (done)
        mrt_ticket_end_verifiers(ticket, MORTISE_OK);
    if (done || event->type == MRT_GONE)
        return true;
    ticket->maybe |= event->type == MRT_UNKNOWN;
    if (refused) {
        mrt_ticket_end_verifiers(ticket, event->error);
        ticket->heir = (struct mrt_id){0, 0};
    }
    return false;
}

/* An answer to a ticket that is to go, or whose removal has been asked for. */
static void answered_leaving(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    enum mrt_command_type asked = ticket->command.type;
    bool absent = event->type == MRT_REMOVED || event->type == MRT_GONE ||
                  event->type == MRT_BLOCKED ||
                  (asked == MRT_APPEND && event->type == MRT_FAILED && was_not_done(ticket, event));
    is_sent(ticket);
    if (asked == MRT_DETACH)
        absent = answered_detach(ticket, event);
    if (absent || (MRT_DEFECT(REMOVE_ONCE) && asked == MRT_REMOVE)) {
        mrt_ticket_end_verifiers(ticket, MORTISE_ELOST);
        put(ticket);
    } else if (asked != way_out(ticket)) {
        if (event->type == MRT_VIEW)
            ticket->fence = event->fence;
        send(ticket, way_out(ticket));
    } else {
        again_later(ticket, now);
    }
    mrt_queue_serve(queue, now); /* a next ticket may have waited for this one's removal */
}

/* A view that was not asked for; it may end the ticket. */
static void seen(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    viewed(ticket, event, now);
    if (queue->linger > 0)
        mrt_queue_serve(queue, now); /* it may be wanted elsewhere */
}

/* Whether a view is told late that was of an earlier one of this identity: which was taken out,
   unseen or for want of copies, and appended again behind others. */
static bool is_of_another(const struct mrt_ticket *ticket, const struct mrt_event *event)
{
    return ticket->fence > 0 && event->fence > 0 && event->fence != ticket->fence &&
           !MRT_DEFECT(OLD_VIEW_BELIEVED);
}

void mrt_ticket_told(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    if (MRT_DEFECT(PASS_RULE_8_CANCELLED) && ticket->queue->ticket)
        ticket = ticket->queue->ticket;
    bool entered = ticket->state == MRT_TICKET_WAITING || ticket->state == MRT_TICKET_GRANTED;
    if ((entered && !is_of_another(ticket, event)) || MRT_DEFECT(PASS_RULE_8_CANCELLED))
        seen(ticket, event, now);
    else
        mrt_ticket_look(ticket); /* or it has overtaken the answer that it is to follow */
}

void mrt_ticket_answer(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    switch (ticket->state) {
    case MRT_TICKET_ORPHAN:
        put(ticket);
        break;
    case MRT_TICKET_LEAVING:
        answered_leaving(ticket, event, now);
        break;
    default:
        MRT_ASSERT(in_queue(ticket));
        answered_in_queue(ticket, event, now);
    }
}

void mrt_ticket_unsubmitted(struct mrt_ticket *ticket)
{
    if (ticket->state == MRT_TICKET_ORPHAN) {
        mrt_engine_unsend(ticket->queue->engine, &ticket->command);
        put(ticket);
    } else if (ticket->state == MRT_TICKET_LEAVING && ticket->command.type != way_out(ticket)) {
        mrt_engine_unsend(ticket->queue->engine, &ticket->command);
        is_sent(ticket);
        if (ticket->command.type == MRT_APPEND && !ticket->maybe)
            put(ticket);
        else
            send(ticket, way_out(ticket));
    }
}
