/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store agent: commands go to the agent as frames, and its frames are events.
 *
 * A connection is a session. When the connection ends, nobody has said that the session has ended:
 * the agent may be dead, and then its own session at the store keeps the locks for a lease. So if a
 * ticket of the session may be granted, the session is believed until the engine gives it up by the
 * clock, and meanwhile the outcome of each command is UNKNOWN. If none may be, the session is lost
 * immediately, and waiting acquires queue again by a new one.
 *
 * Invariant (rule 1 of the agent): the socket of a session that is believed is not closed, for an
 * agent that is alive takes the end of it as the client's word that nothing is held.
 *
 * A new connection begins with the START that needs it, at a random time after the end of the last
 * one, so that the clients of an agent that was started again do not all come at once. An agent on
 * another store or of another namespace is refused.
 *
 * A client that is killed holds nothing, but a forked child may have its socket open. So the agent
 * is to watch the process, too. Not with MORTISE_SHORT_LIVED: the guard of `mortise run` is such a
 * child, and the lock is to stay taken until the guard has ended the command.
 *
 * Dates (rule 2). STARTED and RENEWED say how old the agent's proof of life was when the agent
 * answered, which is after the question was sent. So the proof is no older than the instant that
 * the question was sent, minus that age. No clock is shared, and nothing unasked is dated.
 *
 * Threads: any, one at a time.
 */
#include "base/backoff.h"
#include "base/error.h"
#include "base/uri.h"
#include "core/rule.h"
#include "store/agent/frame.h"
#include "store/agent/internal.h"
#include "store/kit/job.h"
#include "store/kit/refusal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define OUTPUT_MAX (UINT64_C(256) << 10)
#define RECEIVES_MAX 16 /* in one call, so that nobody keeps the loop to himself */
#define JITTER (300 * MRT_MILLISECOND)

static struct mrt_agent_store *of(struct mrt_store *store)
{
    return (struct mrt_agent_store *)store;
}

/* ---------------------------------------------------------------------- tickets */

static struct mrt_agent_ticket *find_ticket(struct mrt_agent_store *store, struct mrt_id id)
{
    struct mrt_agent_ticket *ticket;
    HASH_FIND(hh, store->tickets, &id, sizeof id, ticket);
    return ticket;
}

static void set_granted(struct mrt_agent_store *store, struct mrt_agent_ticket *ticket,
                        bool is_granted)
{
    store->granted += is_granted;
    store->granted -= ticket->is_granted;
    ticket->is_granted = is_granted;
}

static void drop_ticket(struct mrt_agent_store *store, struct mrt_agent_ticket *ticket)
{
    set_granted(store, ticket, false);
    HASH_DEL(store->tickets, ticket);
    free(ticket);
}

static void drop_tickets(struct mrt_agent_store *store)
{
    struct mrt_agent_ticket *ticket, *next;
    HASH_ITER (hh, store->tickets, ticket, next)
        drop_ticket(store, ticket);
}

/* Notes a ticket that is appended; false: no memory. */
static bool note_ticket(struct mrt_agent_store *store, const struct mrt_command *command)
{
    struct mrt_agent_ticket *ticket = find_ticket(store, command->ticket);
    if (!ticket) {
        ticket = calloc(1, sizeof *ticket);
        if (!ticket)
            return false;
        ticket->id = command->ticket;
        HASH_ADD(hh, store->tickets, id, sizeof ticket->id, ticket);
        if (!ticket->hh.tbl) {
            free(ticket);
            return false;
        }
    }
    ticket->weight = command->weight;
    ticket->capacity = command->capacity;
    return true;
}

/* Follows what an event says of a ticket. `asked`: the type of the command that it answers. */
static void follow(struct mrt_agent_store *store, const struct mrt_event *event, int asked)
{
    struct mrt_agent_ticket *ticket = find_ticket(store, event->ticket);
    if (!ticket)
        return;
    bool has_left = event->type == MRT_GONE || event->type == MRT_REMOVED ||
                    event->type == MRT_BLOCKED ||
                    (event->type == MRT_VIEW && asked == (int)MRT_DETACH) ||
                    (event->type == MRT_FAILED && asked == (int)MRT_APPEND && !ticket->is_granted);
    if (has_left)
        drop_ticket(store, ticket);
    else if (event->type == MRT_VIEW &&
             mrt_rule_grants(event->weight_ahead, ticket->weight, ticket->capacity))
        set_granted(store, ticket, true);
}

/* ------------------------------------------------------------------ the end of it */

static void deliver(const struct mrt_agent_store *store, struct mrt_event event)
{
    store->sink.deliver(store->sink.context, &event);
}

static void answer_with(const struct mrt_agent_store *store, const struct mrt_command *command,
                        enum mrt_event_type type, int error, const char *why)
{
    struct mrt_event event = mrt_answer_to(command, type);
    event.error = error;
    event.detail = why;
    deliver(store, event);
}

/* The session is believed no longer, here or by the engine: its socket may go. */
static void forget_session(struct mrt_agent_store *store)
{
    drop_tickets(store);
    store->session = (struct mrt_id){0, 0};
    if (store->is_over)
        mrt_agent_wire_close(&store->wire);
    store->is_over = false;
}

static void lose_session(struct mrt_agent_store *store, const char *why)
{
    struct mrt_event event = {
        .type = MRT_SESSION_LOST, .session = store->session, .error = MORTISE_ELOST, .detail = why};
    if (mrt_id_none(store->session))
        return;
    deliver(store, event); /* before the socket is closed */
    forget_session(store);
}

static void answer_all_unknown(struct mrt_agent_store *store)
{
    struct mrt_agent_asked *asked, *next;
    HASH_ITER (hh, store->asked, asked, next) {
        HASH_DEL(store->asked, asked);
        mrt_traffic_answered(&store->traffic);
        answer_with(store, &asked->command, MRT_UNKNOWN, MORTISE_EUNKNOWN, store->why);
        free(asked);
    }
}

/* The connection has ended, or is of no use. */
static void end_connection(struct mrt_agent_store *store, const char *why)
{
    struct mrt_event event = {.type = MRT_FAILED, .error = MORTISE_EUNREACHABLE};
    uint64_t chance = (uint64_t)mrt_time_now() ^ (uint64_t)getpid() << 20;
    snprintf(store->why, sizeof store->why, "the agent at %s: %s", store->address.path, why);
    store->not_before = mrt_time_now() + mrt_backoff_spread(JITTER / 2, chance * 2654435761u);
    epoll_ctl(store->epoll, EPOLL_CTL_DEL, store->wire.fd, NULL);
    if (mrt_id_none(store->session))
        mrt_agent_wire_close(&store->wire);
    else
        store->is_over = true;
    store->is_greeted = false;
    event.detail = store->why;
    deliver(store, event);
    answer_all_unknown(store);
    if (store->is_over && store->granted == 0)
        lose_session(store, store->why);
}

/* --------------------------------------------------------------------- commands */

static bool is_connected(const struct mrt_agent_store *store)
{
    return store->wire.fd >= 0 && !store->is_over;
}

/* A command whose session is believed although its connection has ended. */
static void answer_believed(struct mrt_agent_store *store, const struct mrt_command *command)
{
    struct mrt_agent_ticket *ticket = find_ticket(store, command->ticket);
    if (command->type == MRT_STOP) {
        forget_session(store);
        answer_with(store, command, MRT_STOPPED, 0, NULL);
        return;
    }
    if (command->type == MRT_REMOVE && ticket)
        drop_ticket(store, ticket);
    answer_with(store, command, MRT_UNKNOWN, MORTISE_EUNKNOWN, store->why);
    if (store->granted == 0)
        lose_session(store, store->why);
}

/* Connects for a START; false: it is answered. */
static bool connect_again(struct mrt_agent_store *store, const struct mrt_command *command)
{
    int error = store->error;
    if (error == MORTISE_OK && mrt_time_now() < store->not_before)
        error = MORTISE_EUNREACHABLE;
    else if (error == MORTISE_OK) {
        mrt_error_clear();
        error = mrt_agent_wire_open(&store->wire, &store->address, store->label, store->epoll, 0);
        if (error != MORTISE_OK)
            snprintf(store->why, sizeof store->why, "%s", mortise_error_detail());
    }
    if (error == MORTISE_OK)
        return true;
    answer_with(store, command, MRT_FAILED, error, store->why);
    return false;
}

/* Sends a command; false: no memory for it. */
static bool send_command(struct mrt_agent_store *store, const struct mrt_command *command)
{
    struct mrt_agent_asked *asked = calloc(1, sizeof *asked);
    if (!asked || (command->type == MRT_APPEND && !note_ticket(store, command))) {
        free(asked);
        return false;
    }
    asked->command = *command;
    asked->command.queue = asked->command.kind = NULL;
    asked->command.value = NULL;
    asked->sent = mrt_time_now();
    HASH_ADD(hh, store->asked, command.serial, sizeof asked->command.serial, asked);
    if (!asked->hh.tbl) {
        free(asked);
        return false;
    }
    mrt_traffic_sent(&store->traffic);
    struct mrt_command sent = *command;
    sent.with_process =
        command->type == MRT_START && store->greeting.sees_process && !store->is_kept;
    mrt_frame_write_command(&store->wire.output, &sent);
    return true;
}

bool mrt_agent_submit(struct mrt_store *opened, const struct mrt_command *command,
                      mrt_time patience)
{
    struct mrt_agent_store *store = of(opened);
    (void)patience; /* what does not fit is left to the loop */
    if (store->is_over && mrt_id_equal(command->session, store->session)) {
        answer_believed(store, command);
        return true;
    }
    if (command->type == MRT_START && !mrt_id_equal(command->session, store->session)) {
        forget_session(store);
        if (!is_connected(store) && !connect_again(store, command))
            return true;
        store->session = command->session;
    } else if (!is_connected(store) || !mrt_id_equal(command->session, store->session)) {
        deliver(store, mrt_answer_ended(command));
        return true;
    }
    if (store->wire.output.size > OUTPUT_MAX && !mrt_agent_wire_flush(&store->wire)) {
        end_connection(store, "it has ended the connection");
        answer_with(store, command, MRT_UNKNOWN, MORTISE_EUNKNOWN, store->why);
        return true;
    }
    if (store->wire.output.size > OUTPUT_MAX || !send_command(store, command))
        return false;
    if (!command->more && !mrt_agent_wire_flush(&store->wire))
        end_connection(store, "it has ended the connection");
    return true;
}

/* ----------------------------------------------------------------------- events */

/* The date of an age that was told in the answer to a command. */
static mrt_time date(const struct mrt_agent_asked *asked, mrt_time age)
{
    mrt_time at = asked->sent - age;
    return at > 1 ? at : 1;
}

/* Takes a frame of the agent; false: it is none. */
static bool take_event(struct mrt_agent_store *store, const struct mrt_resp_command *words)
{
    struct mrt_frame_event frame;
    struct mrt_event *event = &frame.event;
    struct mrt_agent_asked *asked = NULL;
    char text[256];
    if (!mrt_frame_read_event(words, &frame))
        return false;
    if (event->serial > 0) {
        HASH_FIND(hh, store->asked, &event->serial, sizeof event->serial, asked);
        if (!asked)
            return true;
        HASH_DEL(store->asked, asked);
        mrt_traffic_answered(&store->traffic);
        event->session = asked->command.session;
    }
    if (event->type == MRT_STARTED || event->type == MRT_RENEWED) {
        if (!asked)
            return true; /* nothing that was not requested is dated */
        event->proven = date(asked, frame.proof_age);
        event->heard = date(asked, frame.heard_age);
        event->dates = true;
    }
    if (frame.has_value) {
        event->value = frame.text.text;
    } else if (frame.text.size > 0) {
        snprintf(text, sizeof text, "%.*s", (int)frame.text.size, frame.text.text);
        event->detail = text;
    }
    follow(store, event, asked ? (int)asked->command.type : -1);
    bool has_stopped = event->type == MRT_STOPPED;
    free(asked);
    if (event->type == MRT_SESSION_LOST && mrt_id_equal(event->session, store->session)) {
        deliver(store, *event);
        forget_session(store);
        return true;
    }
    if (has_stopped)
        forget_session(store);
    deliver(store, *event);
    return true;
}

/* Takes the greeting of a connection that was made anew. */
static bool take_greeting(struct mrt_agent_store *store, const struct mrt_resp_command *words)
{
    struct mrt_agent_greeting greeting;
    mrt_error_clear();
    int error = mrt_agent_greeting_read(words, &greeting);
    const struct mrt_agent_greeting *first = &store->greeting;
    if (error == MORTISE_OK &&
        (strcmp(greeting.store, first->store) != 0 || strcmp(greeting.prefix, first->prefix) != 0 ||
         strcmp(greeting.can, first->can) != 0))
        error = mrt_error(MORTISE_EMISMATCH,
                          "the agent at %.100s is on another store than when this client was "
                          "opened: open the client again",
                          store->address.path);
    store->is_greeted = error == MORTISE_OK;
    store->greeting.sees_process = store->is_greeted && greeting.sees_process;
    if (error == MORTISE_EMISMATCH)
        store->error = error;
    return store->is_greeted;
}

static bool take_frames(struct mrt_agent_store *store)
{
    struct mrt_resp_command words;
    const char *wrong = NULL;
    while (is_connected(store) && mrt_agent_wire_next(&store->wire, &words, &wrong)) {
        if (!store->is_greeted && !take_greeting(store, &words)) {
            end_connection(store, mortise_error_detail());
            if (store->error)
                snprintf(store->why, sizeof store->why, "%s", mortise_error_detail());
            return false;
        }
        if (words.count == 0 || mrt_resp_is(&words.words[0], "MORTISE"))
            continue;
        if (!take_event(store, &words)) {
            end_connection(store, "it sends what is no event");
            return false;
        }
    }
    if (is_connected(store) && wrong)
        end_connection(store, "it sends what is no frame");
    return is_connected(store);
}

void mrt_agent_process(struct mrt_store *opened, mrt_time now)
{
    struct mrt_agent_store *store = of(opened);
    bool more = true, is_broken = is_connected(store) && !mrt_agent_wire_flush(&store->wire);
    (void)now;
    for (int i = 0; i < RECEIVES_MAX && more && is_connected(store); i++) {
        bool lives = mrt_agent_wire_receive(&store->wire, &more);
        if (!take_frames(store))
            return;
        if (!lives)
            end_connection(store, "it has ended the connection");
    }
    if (is_broken && is_connected(store)) /* what it has sent before has been read */
        end_connection(store, "it cannot be written to");
}

/* ----------------------------------------------------------------- open and close */

static void free_store(struct mrt_agent_store *store)
{
    struct mrt_agent_asked *asked, *next;
    HASH_ITER (hh, store->asked, asked, next) {
        HASH_DEL(store->asked, asked);
        free(asked);
    }
    drop_tickets(store);
    mrt_agent_wire_close(&store->wire);
    if (store->epoll >= 0)
        close(store->epoll);
    free(store->label);
    free(store);
}

int mrt_agent_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                   struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_agent_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    store->sink = sink;
    store->wire.fd = -1;
    store->epoll = epoll_create1(EPOLL_CLOEXEC);
    store->label = strdup(options->label ? options->label : "");
    store->is_kept = options->short_lived;
    int error = store->epoll < 0
                    ? mrt_error(MORTISE_ENOMEM, "no descriptor left: %s", strerror(errno))
                : store->label ? mrt_agent_address_read(uri, &store->address)
                               : MORTISE_ENOMEM;
    if (error == MORTISE_OK)
        error =
            mrt_agent_wire_greet(&store->wire, &store->address, store->label,
                                 mrt_time_add(mrt_time_now(), options->timeout), &store->greeting);
    if (error != MORTISE_OK) {
        free_store(store);
        return error;
    }
    store->is_greeted = true;
    store->wire.epoll = store->epoll;
    if (!mrt_agent_wire_flush(&store->wire)) {
        free_store(store);
        return mrt_error(MORTISE_EUNREACHABLE, "the agent has ended the connection");
    }
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

void mrt_agent_close(struct mrt_store *store)
{
    free_store(of(store));
}

void mrt_agent_abandon(struct mrt_store *opened)
{
    struct mrt_agent_store *store = of(opened);
    if (store->wire.fd >= 0)
        close(store->wire.fd);
    close(store->epoll);
    free(store->label);
    free(store);
}
