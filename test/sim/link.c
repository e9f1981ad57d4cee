/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link: carries commands to the server and events back, late, in order within
 * a session, and with the losses that the port allows a store to have. A command
 * whose fate is not known to the client is answered UNKNOWN, once, and what the
 * server says of it later is dropped, as a store would do.
 *
 *   lost command   never applied; UNKNOWN after a while
 *   lost reply     applied; UNKNOWN after a while
 *   early UNKNOWN  the client gives it up while it is still on its way; it is applied
 *                  later, but before any later command of its session
 *   late answer    the answer to a command that was given up comes after all, or even
 *                  before it is told that it was; only one of the two counts
 *   refused        FAILED; not applied. If that is for good, an acquire fails, a session is lost,
 * and all else is repeated until it is done or the session is over old answer     a RENEW is
 * answered only when the session after its own has begun cut            the connection is down:
 * commands get lost, events of the server too, but the end of a session is told when it is up again
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    struct task task;
    struct message *next, *next_of_all;
    struct peer *peer;
    struct mrt_command command;
    struct mrt_event event;
    uint64_t value; /* of the command or the event */
    char name[32];  /* of the command's queue */
    bool discard_reply;
    bool old; /* an answer of the session before */
};

static struct message *take(struct world *world, struct peer *peer)
{
    struct message *message = world->free_messages;
    if (message) {
        world->free_messages = message->next;
    } else {
        message = calloc(1, sizeof *message);
        if (!message)
            abort();
        message->next_of_all = world->all_messages;
        world->all_messages = message;
    }
    message->peer = peer;
    message->discard_reply = message->old = false;
    return message;
}

static void put(struct world *world, struct message *message)
{
    message->next = world->free_messages;
    world->free_messages = message;
}

void link_fini(struct world *world)
{
    struct message *message, *next;
    for (message = world->all_messages; message; message = next) {
        next = message->next_of_all;
        free(message);
    }
}

static struct channel *channel_of(struct client *client, struct mrt_id session)
{
    for (int i = 0; i < CHANNELS_MAX; i++)
        if (mrt_id_equal(client->channels[i].session, session))
            return &client->channels[i];
    struct channel *channel = &client->channels[client->next_channel++ % CHANNELS_MAX];
    *channel = (struct channel){.session = session};
    return channel;
}

/* ------------------------------------------------------------- to the client */

static void arrive(struct world *world, struct task *task)
{
    struct message *message = (struct message *)task;
    struct client *client = message->peer->client;
    if (client && client_paused(client)) {
        world_at(world, task, client->paused_until, arrive);
        return;
    }
    struct mrt_event event = message->event;
    uint64_t value = message->value;
    bool old = message->old;
    if (event.value)
        event.value = &value;
    put(world, message);
    if (!client)
        return;
    if (old)
        client_catch_up(world,
                        client); /* an end by its clock alone does not come from the answer */
    if (!client->engine && !client->agent)
        return;
    uint64_t losses = client->losses;
    client_event(world, client, &event);
    if (old && client->losses > losses)
        check_fail(world, client->index, NO_QUEUE, "an earlier session's answer ends this one");
}

static struct message *send_up(struct world *world, struct peer *peer,
                               const struct mrt_event *event, mrt_time at)
{
    struct message *message = take(world, peer);
    message->event = *event;
    message->event.detail = NULL;
    if (event->value)
        memcpy(&message->value, event->value, sizeof message->value);
    world_at(world, &message->task, at, arrive);
    return message;
}

/* Whether the answer is kept for the session after its own. */
static bool keep_back(struct world *world, struct client *client, const struct mrt_event *event)
{
    if (event->serial != client->renewal || client->old.serial > 0 || client->closing ||
        world->phase != PHASE_CHAOS || !random_chance(&world->random, world->profile.old_answers))
        return false;
    client->old = *event;
    return true;
}

static void send_old(struct world *world, struct client *client, mrt_time at)
{
    if (client->old.serial == 0)
        return;
    at += world_some(world, world->profile.lease_us / 2); /* by then it holds something again */
    send_up(world, client->peer, &client->old, at)->old = true;
    client->old.serial = 0;
}

static void tell_unknown(struct world *world, struct client *client,
                         const struct mrt_command *command)
{
    struct mrt_event event = {.type = MRT_UNKNOWN,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket};
    mrt_time after = world_some(world, world->profile.unknown_us);
    send_up(world, client->peer, &event, world->now + after);
}

static void wake(struct world *world, struct peer *peer, const struct mrt_event *event)
{
    const struct profile *p = &world->profile;
    int copies = random_chance(&world->random, p->wake_double) ? 2 : 1;
    if (random_chance(&world->random, p->wake_lost) ||
        lone_takes(world, FAULT_WAKE_LOST, peer->client)) {
        trace_note(world, TRACE_LINK, peer->index, NO_QUEUE, "wake lost", 0, 0, 0);
        return;
    }
    for (int i = 0; i < copies; i++) {
        mrt_time at = world->now + world_some(world, p->delay_us);
        at += world_some(world, p->wake_late_us);
        send_up(world, peer, event, at);
    }
}

/* A wake without a reason: of one ticket, or of a whole session. */
static void stray_wake(struct world *world, struct peer *peer, const struct mrt_event *event)
{
    if (!random_chance(&world->random, world->profile.stray_wake))
        return;
    struct mrt_event stray = {.type = MRT_WAKE, .session = event->session};
    if (random_below(&world->random, 2))
        stray.ticket = event->ticket;
    wake(world, peer, &stray);
}

void link_deliver(struct world *world, struct peer *peer, const struct mrt_event *event)
{
    struct client *client = peer->client;
    server_told(world, peer, event);
    if (!client || event->serial == SILENT)
        return;
    bool hint = event->type == MRT_WAKE || event->type == MRT_CHANGED ||
                event->type == MRT_REVOKED || (event->type == MRT_VIEW && event->serial == 0);
    if (hint) {
        if (world->now >= client->cut_until)
            wake(world, peer, event);
        return;
    }
    if (world->profile.synchronous) {
        client_event(world, client, event);
        return;
    }
    if (keep_back(world, client, event))
        return;
    mrt_time at = world->now + world_some(world, world->profile.delay_us);
    if (at < client->cut_until)
        at = client->cut_until;
    struct channel *channel = channel_of(client, event->session);
    if (!random_chance(&world->random, world->profile.reorder)) {
        at = at < channel->up ? channel->up : at;
        channel->up = at;
    }
    send_up(world, peer, event, at);
    if (event->type == MRT_STARTED || event->type == MRT_STOPPED)
        send_old(world, client, at);
    stray_wake(world, peer, event);
}

/* ------------------------------------------------------------- to the server */

static void reach(struct world *world, struct task *task)
{
    struct message *message = (struct message *)task;
    struct peer *peer = message->peer;
    struct mrt_command command = message->command;
    uint64_t value = message->value;
    char name[sizeof message->name];
    memcpy(name, message->name, sizeof name);
    if (command.value)
        command.value = &value;
    if (command.queue)
        command.queue = name;
    bool discard = message->discard_reply;
    put(world, message);
    /* A lost reply: the client has been, or will be, told UNKNOWN. */
    if (discard)
        command.serial = SILENT;
    server_apply(world, peer, &command);
}

static void send_down(struct world *world, struct client *client, const struct mrt_command *command,
                      bool discard_reply)
{
    struct message *message = take(world, client->peer);
    message->command = *command;
    if (command->queue) /* the client's own text may be gone before this arrives */
        snprintf(message->name, sizeof message->name, "%s", command->queue);
    if (command->value)
        memcpy(&message->value, command->value, sizeof message->value);
    message->discard_reply = discard_reply;
    struct channel *channel = channel_of(client, command->session);
    mrt_time at = world->now + world_some(world, world->profile.delay_us);
    at = at < channel->down ? channel->down : at;
    channel->down = at;
    world_at(world, &message->task, at, reach);
}

static void refuse(struct world *world, struct client *client, const struct mrt_command *command,
                   int error)
{
    struct mrt_event event = {.type = MRT_FAILED,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .error = error};
    trace_note(world, TRACE_LINK, client->index, NO_QUEUE, "refused", (int64_t)command->serial,
               error, 0);
    if (error == MORTISE_EPERMISSION)
        check_refused(client, command);
    if (!keep_back(world, client, &event))
        send_up(world, client->peer, &event,
                world->now + world_some(world, world->profile.delay_us));
}

static void lose(struct world *world, struct client *client, const struct mrt_command *command,
                 const char *what, bool apply)
{
    trace_note(world, TRACE_LINK, client->index, NO_QUEUE, what, (int64_t)command->serial, 0, 0);
    struct mrt_command silent = *command;
    silent.serial = SILENT;
    if (client->renewal == command->serial)
        client->renewal = 0; /* it is answered UNKNOWN */
    if (apply && world->profile.synchronous)
        server_apply(world, client->peer, &silent);
    else if (apply)
        send_down(world, client, command,
                  !random_chance(&world->random, world->profile.late_answer));
    tell_unknown(world, client, command);
}

void link_submit(struct world *world, struct client *client, const struct mrt_command *command)
{
    const struct profile *p = &world->profile;
    struct random *random = &world->random;
    if (command->type == MRT_RENEW)
        client->renewal = command->serial;
    if (world->now < client->cut_until)
        lose(world, client, command, "cut off", false);
    else if (random_chance(random, p->lose_command) ||
             lone_takes(world, FAULT_COMMAND_LOST, client))
        lose(world, client, command, "command lost", false);
    else if (random_chance(random, p->lose_reply) || lone_takes(world, FAULT_REPLY_LOST, client))
        lose(world, client, command, "reply lost", true);
    else if (random_chance(random, p->early_unknown) || lone_takes(world, FAULT_GIVEN_UP, client))
        lose(world, client, command, "given up early", true);
    else if (random_chance(random, p->refuse))
        refuse(world, client, command, MORTISE_EUNREACHABLE);
    else if (random_chance(random, p->refuse_for_good) || lone_takes(world, FAULT_REFUSED, client))
        refuse(world, client, command, MORTISE_EPERMISSION);
    else if (p->synchronous)
        server_apply(world, client->peer, command);
    else
        send_down(world, client, command, false);
}
