/* SPDX-License-Identifier: Apache-2.0 */
/* See grave.h. */
#include "store/nats/grave.h"

#include "mortise.h"
#include "store/nats/text.h"

#include <stdio.h>
#include <string.h>

#define TURNS_MAX 4 /* sessions that have had the ticket */

static const struct mrt_nats_reply no_memory = {
    .outcome = MRT_NATS_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a request"};

bool mrt_nats_is_dead(const struct mrt_nats_message *message)
{
    size_t length = sizeof MRT_NATS_DEAD - 1;
    return message->bytes && message->size == length &&
           memcmp(message->bytes, MRT_NATS_DEAD, length) == 0;
}

static void end(struct mrt_nats_grave *grave, enum mrt_nats_verdict verdict,
                const struct mrt_nats_reply *reply)
{
    grave->done(grave->argument, verdict, reply);
}

/* The reply to a conditional publish: whether it was done. False: the grave has ended. */
static bool was_done(struct mrt_nats_grave *grave, const struct mrt_nats_reply *reply)
{
    if (reply->outcome == MRT_NATS_DONE)
        return true;
    if (reply->code == MRT_NATS_WRONG_SEQUENCE)
        end(grave, MRT_NATS_ALIVE, NULL);
    else
        end(grave, MRT_NATS_NO_VERDICT, reply);
    return false;
}

static void publish(struct mrt_nats_grave *grave, const char *subject, uint64_t expected,
                    const char *text, mrt_nats_done *done)
{
    if (!mrt_nats_publish(grave->wire, subject, (int64_t)expected, text, strlen(text),
                          grave->wire->address->connect, done, grave))
        end(grave, MRT_NATS_NO_VERDICT, &no_memory);
}

/* The ticket's place is free, now or before. */
static void removed(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_grave *grave = argument;
    const char *stream = grave->wire->address->tickets;
    if (reply->outcome != MRT_NATS_DONE && reply->code != MRT_NATS_WRONG_SEQUENCE) {
        end(grave, MRT_NATS_NO_VERDICT, reply);
        return;
    }
    if (reply->outcome == MRT_NATS_DONE) {
        mrt_nats_wake(grave->wire, grave->token, '-', grave->sequence);
        mrt_nats_delete(grave->wire, stream, reply->sequence);
    }
    mrt_nats_delete(grave->wire, stream, grave->attribute);
    end(grave, MRT_NATS_IS_DEAD, NULL);
}

static void remove_ticket(struct mrt_nats_grave *grave)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_subject(grave->wire->address, 'q', grave->token, grave->name, subject);
    publish(grave, subject, grave->sequence, MRT_NATS_GONE, removed);
}

static void condemned(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_grave *grave = argument;
    if (!was_done(grave, reply))
        return;
    grave->attribute = reply->sequence;
    remove_ticket(grave);
}

static void got_change(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_grave *grave = argument;
    struct mrt_nats_message message;
    struct mrt_nats_ticket ticket;
    char subject[MRT_NATS_SUBJECT_SIZE];
    if (!mrt_nats_message_read(reply, &message)) {
        end(grave, MRT_NATS_NO_VERDICT, reply);
        return;
    }
    bool is_dead = mrt_nats_is_dead(&message);
    bool is_others = message.bytes && !is_dead &&
                     !(mrt_nats_ticket_parse(message.bytes, message.size, &ticket) &&
                       mrt_id_equal(ticket.session, grave->session));
    bool is_adopted = is_others && ticket.weight > 0 && !mrt_id_none(ticket.session);
    grave->attribute = message.sequence;
    mrt_nats_message_free(&message);
    mrt_nats_subject(grave->wire->address, 'a', grave->token, grave->name, subject);
    if (is_dead) {
        remove_ticket(grave);
    } else if (is_adopted && grave->turns++ < TURNS_MAX) {
        grave->session = ticket.session;
        grave->lease = ticket.lease;
        grave->has_ended = false;
        mrt_nats_grave_begin(grave);
    } else if (is_others) {
        end(grave, MRT_NATS_ALIVE, NULL);
    } else {
        publish(grave, subject, grave->attribute, MRT_NATS_DEAD, condemned);
    }
}

static void bury(struct mrt_nats_grave *grave)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    if (!grave->has_ended && !grave->knows(grave, 0)) {
        end(grave, MRT_NATS_IS_DOOMED, NULL);
        return;
    }
    mrt_nats_subject(grave->wire->address, 'a', grave->token, grave->name, subject);
    if (!mrt_nats_get_last(grave->wire, grave->wire->address->tickets, subject, got_change, grave))
        end(grave, MRT_NATS_NO_VERDICT, &no_memory);
}

static void declared_dead(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_grave *grave = argument;
    if (was_done(grave, reply))
        bury(grave);
}

/* The session's newest message is known. */
static void judge_session(struct mrt_nats_grave *grave, uint64_t sequence, bool is_dead)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    bool lives = sequence > 0 && !is_dead;
    mrt_nats_session_subject(grave->wire->address, grave->lease, grave->session, subject);
    if (grave->looks) {
        end(grave, lives ? MRT_NATS_ALIVE : MRT_NATS_IS_DEAD, NULL);
    } else if (is_dead) {
        bury(grave);
    } else if (!lives) {
        publish(grave, subject, 0, MRT_NATS_DEAD, declared_dead);
    } else if (grave->knows(grave, sequence)) {
        grave->has_ended = true;
        publish(grave, subject, sequence, MRT_NATS_DEAD, declared_dead);
    } else {
        end(grave, MRT_NATS_ALIVE, NULL);
    }
}

static void got_session(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_grave *grave = argument;
    struct mrt_nats_message message;
    if (!mrt_nats_message_read(reply, &message)) {
        end(grave, MRT_NATS_NO_VERDICT, reply);
        return;
    }
    uint64_t sequence = message.sequence;
    bool is_dead = mrt_nats_is_dead(&message);
    mrt_nats_message_free(&message);
    judge_session(grave, sequence, is_dead);
}

void mrt_nats_grave_begin(struct mrt_nats_grave *grave)
{
    char stream[MRT_NATS_BASE_SIZE], subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_sessions_stream(grave->wire->address, grave->lease, stream);
    mrt_nats_session_subject(grave->wire->address, grave->lease, grave->session, subject);
    if (!mrt_nats_get_last(grave->wire, stream, subject, got_session, grave))
        end(grave, MRT_NATS_NO_VERDICT, &no_memory);
}
