/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of clients on their way to the store, and what the store says: see desk.h.
 *
 * The engine has the same store and the same session; its serials begin at 1, and the desk's have
 * the highest bit. The driver shows each event to the desk first, which takes what answers its
 * commands, and what is said of its tickets.
 *
 * Invariant: commands leave in the order in which they came, so those of one queue take effect in
 * that order. A command is freed after the call of the store that answered it.
 */
#include "agent/mutex.h"
#include "agent/peer.h"
#include "base/assert.h"

#include "store/agent/frame.h"
#include "store/kit/refusal.h"

#include <stdlib.h>
#include <string.h>

#define OWN_SERIAL (UINT64_C(1) << 63)
#define SUBMIT_PATIENCE (2 * MRT_MILLISECOND)
#define TURN_MAX (20 * MRT_MILLISECOND) /* then others have theirs */
#define BUSY_PAUSE (2 * MRT_MILLISECOND)

static struct mrt_agent *agent_of(struct mrt_driver *driver)
{
    return (struct mrt_agent *)((char *)driver - offsetof(struct mrt_agent, driver));
}

/* --------------------------------------------------------------------- commands */

/* Copies a text behind the command: where it stands, and the place behind it. */
static const char *copy_text(char **place, const char *text, size_t size)
{
    char *copy = *place;
    memcpy(copy, text, size);
    copy[size] = '\0';
    *place += size + 1;
    return copy;
}

static struct mrt_desk_command *new_command(struct mrt_agent *agent,
                                            const struct mrt_frame_command *frame)
{
    struct mrt_desk *desk = &agent->desk;
    size_t size = frame->queue.size + frame->kind.size + frame->value.size + 3;
    struct mrt_desk_command *command = calloc(1, sizeof *command + size);
    if (!command)
        return NULL;
    char *place = command->texts;
    command->command = frame->command;
    command->command.queue = copy_text(&place, frame->queue.text, frame->queue.size);
    command->command.kind = copy_text(&place, frame->kind.text, frame->kind.size);
    const char *value = copy_text(&place, frame->value.text, frame->value.size);
    command->command.value = frame->has_value ? value : NULL;
    command->command.session = desk->life.session;
    command->serial = frame->command.serial;
    command->command.serial = OWN_SERIAL | ++desk->serial;
    HASH_ADD(hh, desk->commands, command.serial, sizeof command->command.serial, command);
    if (!command->hh.tbl) {
        free(command);
        return NULL;
    }
    STAILQ_INSERT_TAIL(&desk->outbox, command, link);
    command->size = sizeof *command + size;
    return command;
}

/* Its session waits for its answer no longer. */
static void leave_session(struct mrt_desk_command *command)
{
    command->session->commands--;
    command->session->bytes -= command->size;
    command->session = NULL;
}

bool mrt_desk_pass(struct mrt_desk_session *session, const struct mrt_frame_command *frame)
{
    struct mrt_agent *agent = session->agent;
    struct mrt_desk_command *command = new_command(agent, frame);
    if (!command)
        return false;
    command->session = session;
    session->commands++;
    session->bytes += command->size;
    if (frame->command.type == MRT_APPEND && !agent->has_lease &&
        agent->driver.ops->capabilities.lock_delay) {
        command->command.delay_is_host = command->command.delay == 0;
        command->command.delay += agent->lease; /* rule 3 */
    }
    return true;
}

/* A command of the agent's own; NULL: no memory. */
static struct mrt_desk_command *new_own(struct mrt_agent *agent, enum mrt_command_type type,
                                        const struct mrt_desk_ticket *ticket)
{
    struct mrt_frame_command frame = {.command = {.type = type,
                                                  .ticket = ticket->id,
                                                  .fence = ticket->fence,
                                                  .claim = ticket->claim,
                                                  .watch_closely = ticket->watches,
                                                  .linger = ticket->lingers},
                                      .queue = {ticket->queue, strlen(ticket->queue)},
                                      .kind = {"", 0},
                                      .value = {"", 0}};
    return new_command(agent, &frame);
}

bool mrt_desk_remove(struct mrt_agent *agent, const struct mrt_desk_ticket *ticket)
{
    struct mrt_desk_command *command = new_own(agent, MRT_REMOVE, ticket);
    if (command)
        command->is_own = true;
    return command != NULL;
}

bool mrt_desk_look(struct mrt_agent *agent, const struct mrt_desk_ticket *ticket)
{
    return new_own(agent, MRT_REFRESH, ticket) != NULL;
}

void mrt_desk_recall(struct mrt_desk_session *session, bool answers)
{
    struct mrt_desk_command *command, *next;
    struct mrt_desk_ticket *ticket;
    TAILQ_FOREACH (ticket, &session->tickets, link)
        if (ticket->mutex)
            mrt_desk_mutex_recall(ticket->mutex, answers);
    HASH_ITER (hh, session->agent->desk.commands, command, next) {
        if (command->session != session)
            continue;
        struct mrt_event event = mrt_answer_ended(&command->command);
        if (command->command.type == MRT_CELL_SET) { /* it may have been written */
            event = mrt_answer_to(&command->command, MRT_UNKNOWN);
            event.error = MORTISE_EUNKNOWN;
        }
        event.serial = command->serial;
        if (answers)
            mrt_desk_answer(session, &event);
        leave_session(command);
    }
}

void mrt_desk_drop_outbox(struct mrt_desk *desk)
{
    struct mrt_desk_command *command;
    while ((command = STAILQ_FIRST(&desk->outbox))) {
        MRT_ASSERT(desk->commands); /* what is in the outbox is there, too */
        STAILQ_REMOVE_HEAD(&desk->outbox, link);
        HASH_DEL(desk->commands, command);
        free(command);
    }
}

/* Submits one command; false: the store does not take it now. The driver's mutex is let go
   meanwhile. */
static bool submit_first(struct mrt_agent *agent)
{
    struct mrt_desk *desk = &agent->desk;
    struct mrt_driver *driver = &agent->driver;
    struct mrt_desk_command *command = STAILQ_FIRST(&desk->outbox);
    STAILQ_REMOVE_HEAD(&desk->outbox, link); /* the answer may come within the call */
    command->command.more = !STAILQ_EMPTY(&desk->outbox);
    mrt_driver_borrow_store(driver);
    bool taken =
        driver->ops->submit(driver->store, &command->command, mrt_time_now() + SUBMIT_PATIENCE);
    mrt_driver_give_back_store(driver);
    if (!taken)
        STAILQ_INSERT_HEAD(&desk->outbox, command, link);
    return taken;
}

static void free_answered(struct mrt_desk *desk)
{
    struct mrt_desk_command *command;
    while ((command = STAILQ_FIRST(&desk->answered))) {
        STAILQ_REMOVE_HEAD(&desk->answered, link);
        free(command);
    }
}

static void submit_all(struct mrt_agent *agent)
{
    struct mrt_desk *desk = &agent->desk;
    mrt_time now = mrt_time_now(), until = now + TURN_MAX;
    while (!STAILQ_EMPTY(&desk->outbox) && now >= desk->busy_until && now < until) {
        bool taken = submit_first(agent);
        free_answered(desk);
        now = mrt_time_now();
        if (!taken)
            desk->busy_until = now + BUSY_PAUSE;
    }
    if (!STAILQ_EMPTY(&desk->outbox))
        agent->driver.want_process = true; /* the store was told that more follows */
    free_answered(desk);
}

/* ----------------------------------------------------------------------- events */

/* Tells the client whose ticket it is. */
static void forward(struct mrt_desk_ticket *ticket, const struct mrt_event *event)
{
    struct mrt_desk_session *session = ticket->session;
    struct mrt_event told = *event;
    if (!session || session->state != MRT_DESK_LIVE)
        return;
    mrt_desk_ticket_trim(session->agent, ticket, &told);
    mrt_desk_answer(session, &told);
}

static bool take_unasked(struct mrt_agent *agent, const struct mrt_event *event)
{
    struct mrt_desk *desk = &agent->desk;
    struct mrt_desk_session *session;
    if (event->type != MRT_WAKE && event->type != MRT_VIEW && event->type != MRT_REVOKED &&
        event->type != MRT_CHANGED)
        return false;
    if (!desk->lives || !mrt_id_equal(event->session, desk->life.session))
        return false;
    if (mrt_id_none(event->ticket)) {
        TAILQ_FOREACH (session, &desk->sessions, link)
            if (session->state == MRT_DESK_LIVE)
                mrt_desk_answer(session, event);
        return false; /* the engine's are meant too */
    }
    struct mrt_desk_ticket *ticket = mrt_desk_find(desk, event->ticket);
    if (!ticket) {
        mrt_desk_mutex_seen(agent, event);
        return false;
    }
    mrt_desk_ticket_follow(agent, ticket, event, NULL);
    ticket = mrt_desk_find(desk, event->ticket);
    if (ticket)
        forward(ticket, event);
    /* It is told once, and observes again: unless this is an earlier OBSERVE's, told twice. */
    if (ticket && ticket->observes && event->type == MRT_CHANGED && !ticket->is_asked)
        mrt_desk_ticket_free(agent, ticket);
    return true;
}

bool mrt_desk_tap(struct mrt_driver *driver, const struct mrt_event *event)
{
    struct mrt_agent *agent = agent_of(driver);
    struct mrt_desk *desk = &agent->desk;
    struct mrt_desk_command *command;
    if (event->serial == 0)
        return take_unasked(agent, event);
    HASH_FIND(hh, desk->commands, &event->serial, sizeof event->serial, command);
    if (!command && !(event->serial & OWN_SERIAL))
        mrt_desk_mutex_seen(agent, event);
    if (!command)
        return event->serial & OWN_SERIAL;
    HASH_DEL(desk->commands, command);
    STAILQ_INSERT_TAIL(&desk->answered, command, link);
    struct mrt_event answer = *event;
    answer.serial = command->serial;
    if (event->type == MRT_VIEW && !TAILQ_EMPTY(&desk->kept))
        answer.recheck = mrt_desk_recheck(desk, command->command.queue, event->recheck);
    struct mrt_desk_ticket *ticket = mrt_desk_find(desk, command->command.ticket);
    if (ticket)
        mrt_desk_ticket_trim(agent, ticket, &answer);
    if (command->session) {
        mrt_desk_answer(command->session, &answer);
        leave_session(command);
    } else if (ticket && !command->is_own) { /* the agent has looked: so does its client */
        const struct mrt_event wake = {.type = MRT_WAKE, .ticket = ticket->id};
        forward(ticket, &wake);
    }
    if (ticket && mrt_id_equal(command->command.session, desk->life.session))
        mrt_desk_ticket_follow(agent, ticket, event, command);
    return true;
}

/* ------------------------------------------------------------------------ turns */

void mrt_desk_turn(struct mrt_agent *agent)
{
    submit_all(agent);
    mrt_desk_check(agent, mrt_time_now());
}

mrt_time mrt_desk_next(const struct mrt_desk *desk)
{
    mrt_time next = mrt_heap_next(&desk->timers);
    if (!STAILQ_EMPTY(&desk->outbox))
        next = mrt_time_min(next, desk->busy_until);
    return next;
}

bool mrt_desk_owes(const struct mrt_desk *desk)
{
    const struct mrt_desk_ticket *ticket, *next;
    HASH_ITER (hh, desk->tickets, ticket, next)
        if (!ticket->is_kept)
            return desk->lives;
    return false;
}

void mrt_desk_init(struct mrt_desk *desk)
{
    *desk = (struct mrt_desk){.lives = false};
    TAILQ_INIT(&desk->sessions);
    TAILQ_INIT(&desk->kept);
    TAILQ_INIT(&desk->pending);
    STAILQ_INIT(&desk->outbox);
    STAILQ_INIT(&desk->answered);
}

void mrt_desk_free(struct mrt_desk *desk)
{
    struct mrt_desk_command *command, *next;
    struct mrt_desk_ticket *ticket, *next_ticket;
    free_answered(desk);
    HASH_ITER (hh, desk->commands, command, next) {
        HASH_DEL(desk->commands, command);
        free(command);
    }
    HASH_ITER (hh, desk->tickets, ticket, next_ticket) {
        HASH_DEL(desk->tickets, ticket);
        free(ticket->mutex); /* the engine was freed */
        free(ticket);
    }
}
