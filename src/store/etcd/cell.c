/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: a key each, whose mod_revision is the version. A deleted cell keeps its key, with the
 * largest fence and the identity of the deletion.
 *
 * CELL_SET reads, decides, and writes on condition that the key has not changed since.
 */
#include "store/kit/cell.h"
#include "store/etcd/command.h"
#include "store/etcd/reply.h"
#include "store/kit/refusal.h"

#include <stdlib.h>

/* A cell as it was read. */
struct seen {
    struct mrt_cell cell;
    char *bytes; /* NULL: there is no key */
    size_t size;
    int64_t modified;
};

static void got(void *argument, const struct mrt_rest_reply *reply);

static bool read_cell(struct json_object *range, struct seen *seen)
{
    struct json_object *kvs = mrt_rest_member(range, "kvs");
    *seen = (struct seen){.bytes = NULL};
    if (!json_object_is_type(range, json_type_object))
        return false;
    if (!json_object_is_type(kvs, json_type_array) || json_object_array_length(kvs) == 0)
        return true;
    struct json_object *kv = json_object_array_get_idx(kvs, 0);
    seen->modified = mrt_rest_number(kv, "mod_revision");
    seen->bytes = mrt_rest_bytes(kv, "value", &seen->size);
    return seen->bytes && mrt_cell_parse(seen->bytes, seen->size, &seen->cell);
}

static void get(struct mrt_etcd_job *job)
{
    struct mrt_rest_text text = {0};
    const struct mrt_etcd_session *session =
        mrt_etcd_session_find(job->store, job->job.command.session);
    if (!session) {
        mrt_etcd_refuse(job);
        return;
    }
    mrt_etcd_txn_begin(job, session, &text);
    mrt_etcd_txn_then(&text);
    mrt_etcd_get(&text, job->queue->directory);
    mrt_etcd_txn_else(session, &text);
    mrt_etcd_txn_send(job, &text, got);
}

void mrt_etcd_cell(struct mrt_etcd_job *job)
{
    get(job);
}

static uint64_t version_of(const struct seen *seen)
{
    return seen->cell.there ? (uint64_t)seen->modified : 0;
}

static void answer_cell(struct mrt_etcd_job *job, uint64_t version, uint64_t fence)
{
    job->job.event.version = version;
    job->job.event.fence = fence;
    mrt_etcd_answer(job, MRT_CELL);
}

static void written(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    const struct mrt_command *command = &job->job.command;
    enum mrt_etcd_verdict verdict = mrt_etcd_txn_verdict(job, reply);
    if (verdict == MRT_ETCD_ANSWERED)
        return;
    if (verdict == MRT_ETCD_SUCCEEDED)
        answer_cell(job, command->value ? (uint64_t)mrt_etcd_revision(reply->json) : 0,
                    job->job.event.fence);
    else if (++job->tries < MRT_ETCD_TRIES_MAX)
        get(job);
    else
        mrt_etcd_answer(job, MRT_UNKNOWN);
}

static void write_cell(struct mrt_etcd_job *job, const struct seen *seen)
{
    size_t size;
    struct mrt_rest_text text = {0};
    const struct mrt_etcd_session *session =
        mrt_etcd_session_find(job->store, job->job.command.session);
    char *value = mrt_cell_change(&job->job, seen->cell.fence, &size);
    if (!value || !session) {
        free(value);
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a cell");
        return;
    }
    mrt_etcd_txn_begin(job, session, &text);
    mrt_etcd_if(&text, job->queue->directory, "MOD", seen->modified);
    mrt_etcd_txn_then(&text);
    mrt_etcd_put(&text, job->queue->directory, value, size, 0);
    mrt_etcd_txn_else(session, &text);
    mrt_etcd_txn_send(job, &text, written);
    free(value);
}

static void set(struct mrt_etcd_job *job, const struct seen *seen)
{
    const struct mrt_command *command = &job->job.command;
    if (seen->bytes && mrt_id_equal(seen->cell.id, command->ticket))
        answer_cell(job, version_of(seen), seen->cell.fence); /* it has been done */
    else if (command->fence > 0 && command->fence < seen->cell.fence)
        mrt_etcd_fail(job, MORTISE_ESTALE, MRT_REFUSAL_FENCE, command->queue);
    else if (command->version != version_of(seen))
        mrt_etcd_fail(job, MORTISE_ECONFLICT, MRT_REFUSAL_VERSION, command->queue);
    else
        write_cell(job, seen);
}

static void show(struct mrt_etcd_job *job, const struct seen *seen)
{
    if (!mrt_cell_show(&job->job, &seen->cell, seen->bytes, seen->size))
        mrt_etcd_answer(job, MRT_UNKNOWN);
    else
        answer_cell(job, version_of(seen), seen->cell.fence);
}

static void got(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct seen seen = {.bytes = NULL};
    enum mrt_etcd_verdict verdict = mrt_etcd_txn_verdict(job, reply);
    if (verdict == MRT_ETCD_ANSWERED)
        return;
    if (verdict != MRT_ETCD_SUCCEEDED)
        get(job);
    else if (!read_cell(mrt_etcd_txn_range(reply, 0), &seen))
        mrt_etcd_fail(job, MORTISE_ESTORE, "the key of the cell %.100s holds something else",
                      job->job.command.queue);
    else if (job->job.command.type == MRT_CELL_SET)
        set(job, &seen);
    else
        show(job, &seen);
    free(seen.bytes);
}
