/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is a message that ends after its lease and MRT_NATS_SLACK. A sign of life publishes it
 * anew, on condition that the one before it is the newest: so a session that has ended, or has been
 * declared dead (grave.h), never comes back. The lease is counted from when the sign was sent.
 *
 * A sign whose outcome is unknown may have been taken: the next is then refused with its sequence,
 * and goes on from there, if what stands there is a sign of this client's after the one that it
 * knows of.
 *
 * STOP removes the session's tickets, and then declares it dead itself.
 */
#include "store/nats/answer.h"
#include "store/nats/api.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIFE "life "

static void send_life(struct mrt_nats_job *job, struct mrt_nats_session *session);

static void end_session(struct mrt_nats_store *store, struct mrt_nats_session *session)
{
    mrt_nats_queues_forget(store, session->id);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

static void lose(struct mrt_nats_store *store, struct mrt_nats_session *session)
{
    const struct mrt_event event = {.type = MRT_SESSION_LOST,
                                    .session = session->id,
                                    .error = MORTISE_ELOST,
                                    .detail = "NATS: the session's lease has ended"};
    mrt_outbox_add(&store->outbox, event);
    end_session(store, session);
}

struct mrt_nats_session *mrt_nats_session_find(struct mrt_nats_store *store, struct mrt_id id)
{
    struct mrt_nats_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            break;
    if (session && mrt_time_now() >= mrt_time_add(session->proven, store->address.lease)) {
        lose(store, session);
        return NULL;
    }
    return session;
}

/* Also one that nobody asks for any longer, since its STOP has failed. */
void mrt_nats_sessions_tick(struct mrt_nats_store *store)
{
    struct mrt_nats_session *session = TAILQ_FIRST(&store->sessions), *next;
    for (; session; session = next) {
        next = TAILQ_NEXT(session, link);
        mrt_nats_session_find(store, session->id);
    }
}

/* --------------------------------------------------------- sessions of others */

static mrt_time seen_since(struct mrt_nats_store *store, struct mrt_id session, uint64_t sequence)
{
    struct mrt_nats_sight *sight = NULL;
    for (unsigned i = 0; i < MRT_NATS_SIGHTS && !sight; i++)
        if (mrt_id_equal(store->sights[i].session, session))
            sight = &store->sights[i];
    if (sight && sight->sequence == sequence)
        return sight->since;
    if (!sight)
        sight = &store->sights[store->newest_sight++ % MRT_NATS_SIGHTS];
    *sight = (struct mrt_nats_sight){session, sequence, mrt_time_now()};
    return sight->since;
}

/*
 * A holder believes for a lease from its newest sign of life. So it knows once this client has seen
 * for a lease, by its own clock, that there is no newer one. Of a session that is dead it is known
 * earlier, if the server's clock has not stepped ahead: this client's own session, which is older
 * than that lease, was found alive after the death, and would have ended by such a step, too. A
 * try of a younger client does not wait for that: a step within a lease before it shows to nobody.
 */
bool mrt_nats_session_knows(struct mrt_nats_grave *grave, uint64_t sequence)
{
    struct mrt_nats_job *job = grave->judge;
    mrt_time lease = (mrt_time)grave->lease * MRT_MILLISECOND, now = mrt_time_now();
    mrt_time since = seen_since(job->store, grave->session, sequence);
    const struct mrt_nats_session *own =
        mrt_nats_session_find(job->store, job->job.command.session);
    job->walk.judge_again = mrt_time_min(job->walk.judge_again, mrt_time_add(since, lease));
    if (now >= mrt_time_add(since, lease))
        return true;
    if (!own || sequence > 0)
        return false;
    bool is_young = now < mrt_time_add(own->started, lease);
    return is_young ? job->job.command.try_only : own->proven > since;
}

/* -------------------------------------------------------------------- START, RENEW */

/* The session of the job: a new one that it makes, or one that has been started. */
static struct mrt_nats_session *session_of(struct mrt_nats_job *job)
{
    return job->session ? job->session
                        : mrt_nats_session_find(job->store, job->job.command.session);
}

static void proven(struct mrt_nats_job *job, struct mrt_nats_session *session, uint64_t sequence)
{
    struct mrt_nats_store *store = job->store;
    bool starts = job->job.command.type == MRT_START;
    session->sequence = sequence;
    session->known = job->count;
    session->proven = job->sent;
    if (job->session) {
        session->started = job->sent;
        TAILQ_INSERT_TAIL(&store->sessions, session, link);
    }
    job->session = NULL;
    if (starts)
        job->job.event.lease = store->address.lease;
    mrt_nats_answer(job, starts ? MRT_STARTED : MRT_RENEWED);
}

static void lost(struct mrt_nats_job *job, struct mrt_nats_session *session)
{
    if (!job->session)
        lose(job->store, session);
    mrt_nats_refuse(job);
}

/* A sign of ours that stands there although it was not acknowledged. */
static void got_newest(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_message message;
    struct mrt_nats_session *session = session_of(job);
    uint64_t count = 0;
    if (!mrt_nats_message_read(reply, &message)) {
        mrt_nats_job_failed(job, reply);
        return;
    }
    bool alive = message.bytes && strncmp(message.bytes, LIFE, sizeof LIFE - 1) == 0;
    if (alive)
        count = strtoull(message.bytes + sizeof LIFE - 1, NULL, 10);
    uint64_t sequence = message.sequence;
    mrt_nats_message_free(&message);
    if (!session) {
        mrt_nats_refuse(job);
    } else if (!alive || (!job->session && (count <= session->known || count > session->count))) {
        lost(job, session);
    } else {
        session->sequence = sequence;
        session->known = count;
        send_life(job, session);
    }
}

static void taken(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_store *store = job->store;
    struct mrt_nats_session *session = session_of(job);
    job->unknown = false;
    if (!session) {
        mrt_nats_refuse(job);
    } else if (reply->outcome == MRT_NATS_DONE) {
        proven(job, session, reply->sequence);
    } else if (reply->code != MRT_NATS_WRONG_SEQUENCE) {
        mrt_nats_job_failed(job, reply);
    } else if (reply->sequence == 0 || ++job->tries > MRT_NATS_TRIES_MAX) {
        lost(job, session);
    } else if (reply->sequence < session->sequence) {
        mrt_nats_answer(job, MRT_UNKNOWN); /* of a former leader */
    } else if (!mrt_nats_get_last(&store->wire, store->address.sessions, session->subject,
                                  got_newest, job)) {
        mrt_nats_no_memory(job);
    }
}

static mrt_time limit_of(const struct mrt_nats_store *store)
{
    return mrt_time_min(store->address.lease / 3, store->address.connect);
}

static void send_life(struct mrt_nats_job *job, struct mrt_nats_session *session)
{
    char text[40];
    struct mrt_nats_store *store = job->store;
    job->sent = mrt_time_now();
    job->count = ++session->count;
    int length = snprintf(text, sizeof text, LIFE "%" PRIu64, job->count);
    if (!mrt_nats_publish(&store->wire, session->subject, (int64_t)session->sequence, text,
                          (size_t)length, -limit_of(store), taken, job))
        mrt_nats_no_memory(job);
}

static void streams_are_there(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    if (reply->outcome != MRT_NATS_DONE) {
        mrt_nats_job_failed(job, reply);
        return;
    }
    job->store->replicas = job->streams.found;
    send_life(job, job->session);
}

static void start(struct mrt_nats_job *job)
{
    struct mrt_nats_store *store = job->store;
    struct mrt_nats_session *session = calloc(1, sizeof *session);
    if (!session) {
        mrt_nats_no_memory(job);
        return;
    }
    session->id = job->job.command.session;
    mrt_nats_session_subject(&store->address, (uint64_t)(store->address.lease / MRT_MILLISECOND),
                             session->id, session->subject);
    job->session = session;
    job->streams =
        (struct mrt_nats_streams){.wire = &store->wire, .done = streams_are_there, .argument = job};
    if (!mrt_nats_streams_check(&job->streams))
        mrt_nats_no_memory(job);
}

/* --------------------------------------------------------------------- STOP */

static void stopped(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_session *session = mrt_nats_session_find(job->store, job->job.command.session);
    if (reply->outcome != MRT_NATS_DONE) {
        mrt_nats_job_failed(job, reply);
        return;
    }
    if (session)
        end_session(job->store, session);
    mrt_nats_answer(job, MRT_STOPPED);
}

static void declare_dead(struct mrt_nats_job *job)
{
    const struct mrt_nats_session *session =
        mrt_nats_session_find(job->store, job->job.command.session);
    if (!session)
        mrt_nats_answer(job, MRT_STOPPED);
    else if (!mrt_nats_publish(&job->store->wire, session->subject, MRT_NATS_ANY, MRT_NATS_DEAD,
                               sizeof MRT_NATS_DEAD - 1, job->store->address.connect, stopped, job))
        mrt_nats_no_memory(job);
}

/* Wakes who waits behind the session's tickets, and deletes the changes of those that have left. */
static void wake_behind(const struct mrt_nats_job *job)
{
    struct mrt_nats_wire *wire = &job->store->wire;
    struct mrt_nats_queue *queue, *next;
    const struct mrt_nats_record *record;
    HASH_ITER (hh, job->store->queues, queue, next)
        TAILQ_FOREACH (record, &queue->records, link) {
            if (!mrt_id_equal(record->session, job->job.command.session))
                continue;
            mrt_nats_wake(wire, queue->token, '-', record->sequence);
            if (record->attribute > 0 && !record->unowned && !job->unknown)
                mrt_nats_delete(wire, wire->address->tickets, record->attribute);
        }
}

/* A ticket has been removed, or all have been sent; the last one ends. */
static void one_removed(struct mrt_nats_job *job)
{
    if (--job->left > 0)
        return;
    wake_behind(job);
    if (job->unknown)
        mrt_nats_answer(job, MRT_UNKNOWN);
    else
        declare_dead(job);
}

static void ticket_removed(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    if (reply->outcome == MRT_NATS_DONE)
        mrt_nats_delete(&job->store->wire, job->store->address.tickets, reply->sequence);
    else
        job->unknown = true;
    one_removed(job);
}

static void remove_record(struct mrt_nats_job *job, const struct mrt_nats_queue *queue,
                          const struct mrt_nats_record *record)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_subject(&job->store->address, 'q', queue->token, record->name, subject);
    if (mrt_nats_publish(&job->store->wire, subject, MRT_NATS_ANY, MRT_NATS_GONE,
                         sizeof MRT_NATS_GONE - 1, job->store->address.connect, ticket_removed,
                         job)) {
        job->left++;
        return;
    }
    job->unknown = true;
}

static void stop(struct mrt_nats_job *job, struct mrt_nats_session *session)
{
    struct mrt_nats_queue *queue, *next;
    const struct mrt_nats_record *record;
    job->left = 1;
    session->stops = true;
    HASH_ITER (hh, job->store->queues, queue, next)
        TAILQ_FOREACH (record, &queue->records, link)
            if (mrt_id_equal(record->session, session->id) && !record->unowned)
                remove_record(job, queue, record);
    one_removed(job);
}

void mrt_nats_session_submit(struct mrt_nats_store *store, struct mrt_nats_job *job)
{
    struct mrt_nats_session *session = mrt_nats_session_find(store, job->job.command.session);
    enum mrt_command_type type = job->job.command.type;
    if (type == MRT_START && !session)
        start(job);
    else if (!session)
        mrt_nats_refuse(job);
    else if (type == MRT_STOP)
        stop(job, session);
    else
        send_life(job, session);
}
