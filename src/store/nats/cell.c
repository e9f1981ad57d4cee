/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: a subject each, whose newest message's sequence is the version. A deleted cell keeps its
 * message, with the largest fence and the identity of the deletion.
 *
 * CELL_SET reads, decides, and publishes on condition that nothing has been written since. A read
 * that is older than the version that the client names comes from a former leader, and is repeated.
 */
#include "store/kit/cell.h"
#include "store/kit/refusal.h"
#include "store/nats/answer.h"
#include "store/nats/api.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <stdlib.h>

#define AGAIN (300 * MRT_MILLISECOND)

/* A cell as it was read. */
struct seen {
    struct mrt_cell cell;
    struct mrt_nats_message message;
};

static void got(void *argument, const struct mrt_nats_reply *reply);

static void get(struct mrt_nats_job *job)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_subject(&job->store->address, 'c', job->queue->token, "", subject);
    if (!mrt_nats_get_last(&job->store->wire, job->store->address.tickets, subject, got, job))
        mrt_nats_no_memory(job);
}

void mrt_nats_cell(struct mrt_nats_job *job)
{
    get(job);
}

static uint64_t version_of(const struct seen *seen)
{
    return seen->cell.there ? seen->message.sequence : 0;
}

static void answer_cell(struct mrt_nats_job *job, uint64_t version, uint64_t fence)
{
    job->job.event.version = version;
    job->job.event.fence = fence;
    mrt_nats_answer(job, MRT_CELL);
}

static void written(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    const struct mrt_command *command = &job->job.command;
    if (reply->outcome == MRT_NATS_DONE)
        answer_cell(job, command->value ? reply->sequence : 0, job->job.event.fence);
    else if (reply->code == MRT_NATS_WRONG_SEQUENCE && ++job->tries < MRT_NATS_TRIES_MAX)
        get(job);
    else if (reply->code == MRT_NATS_WRONG_SEQUENCE)
        mrt_nats_answer(job, MRT_UNKNOWN);
    else
        mrt_nats_job_failed(job, reply);
}

static void write_cell(struct mrt_nats_job *job, const struct seen *seen)
{
    size_t size;
    char subject[MRT_NATS_SUBJECT_SIZE];
    char *bytes = mrt_cell_change(&job->job, seen->cell.fence, &size);
    if (!bytes) {
        mrt_nats_no_memory(job);
        return;
    }
    mrt_nats_subject(&job->store->address, 'c', job->queue->token, "", subject);
    if (!mrt_nats_publish(&job->store->wire, subject, (int64_t)seen->message.sequence, bytes, size,
                          job->store->address.connect, written, job))
        mrt_nats_no_memory(job);
    free(bytes);
}

static void set(struct mrt_nats_job *job, const struct seen *seen)
{
    const struct mrt_command *command = &job->job.command;
    if (seen->message.bytes && mrt_id_equal(seen->cell.id, command->ticket))
        answer_cell(job, version_of(seen), seen->cell.fence); /* it has been done */
    else if (command->fence > 0 && command->fence < seen->cell.fence)
        mrt_nats_fail(job, MORTISE_ESTALE, MRT_REFUSAL_FENCE, command->queue);
    else if (command->version > seen->message.sequence && job->store->replicas != 1 &&
             ++job->tries < MRT_NATS_TRIES_MAX)
        mrt_nats_job_pause(job, AGAIN, get);
    else if (command->version != version_of(seen))
        mrt_nats_fail(job, MORTISE_ECONFLICT, MRT_REFUSAL_VERSION, command->queue);
    else
        write_cell(job, seen);
}

static void show(struct mrt_nats_job *job, const struct seen *seen)
{
    if (!mrt_cell_show(&job->job, &seen->cell, seen->message.bytes, seen->message.size))
        mrt_nats_answer(job, MRT_UNKNOWN);
    else
        answer_cell(job, version_of(seen), seen->cell.fence);
}

static void got(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct seen seen = {.cell = {.there = false}};
    if (!mrt_nats_message_read(reply, &seen.message))
        mrt_nats_job_failed(job, reply);
    else if (!mrt_nats_session_find(job->store, job->job.command.session))
        mrt_nats_refuse(job);
    else if (seen.message.bytes &&
             !mrt_cell_parse(seen.message.bytes, seen.message.size, &seen.cell))
        mrt_nats_fail(job, MORTISE_ESTORE, "the subject of the cell %.100s holds something else",
                      job->job.command.queue);
    else if (job->job.command.type == MRT_CELL_SET)
        set(job, &seen);
    else
        show(job, &seen);
    mrt_nats_message_free(&seen.message);
}
