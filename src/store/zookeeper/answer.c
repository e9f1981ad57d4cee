/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers and other events, on their way to the engine.
 *
 * An answer that cannot be told from a loss of the request is UNKNOWN; the table of codes (code.c)
 * says which codes are. An unasked event names the session; without a session there is none.
 *
 * Threads: as the port's own calls.
 */
#include "store/zookeeper/answer.h"

#include "base/assert.h"
#include "store/zookeeper/names.h"
#include "store/zookeeper/session.h"

void mrt_zk_answer(struct mrt_store *store, struct mrt_job *job, enum mrt_event_type type)
{
    mrt_outbox_answer(&store->outbox, job, type);
}

void mrt_zk_fail(struct mrt_store *store, struct mrt_job *job, int error)
{
    mrt_outbox_fail(&store->outbox, job, error);
}

void mrt_zk_fail_with(struct mrt_store *store, struct mrt_job *job, int error, const char *text)
{
    if (job->command.queue)
        mrt_job_set_detail(job, "ZooKeeper, lock \"%.100s\": %.100s", job->command.queue, text);
    else
        mrt_job_set_detail(job, "ZooKeeper: %.200s", text);
    mrt_zk_fail(store, job, error);
}

void mrt_zk_answer_code(struct mrt_store *store, struct mrt_job *job, int code)
{
    const struct mrt_zk_code *why = mrt_zk_code(code);
    if (why->outcome == MRT_ZK_PERHAPS)
        mrt_zk_answer(store, job, MRT_UNKNOWN);
    else
        mrt_zk_fail_with(store, job, why->error, why->text);
}

void mrt_zk_report_unreachable(struct mrt_store *store, const char *why)
{
    char text[MRT_JOB_DETAIL_SIZE];
    snprintf(text, sizeof text, "ZooKeeper: %.200s", why);
    mrt_outbox_add(
        &store->outbox,
        (struct mrt_event){.type = MRT_FAILED, .error = MORTISE_EUNREACHABLE, .detail = text});
}

static void report(struct mrt_store *store, struct mrt_event event)
{
    MRT_ASSERT(store->session);
    event.session = store->session->id;
    mrt_outbox_add(&store->outbox, event);
}

void mrt_zk_report(struct mrt_store *store, enum mrt_event_type type, struct mrt_id id)
{
    report(store, (struct mrt_event){.type = type, .ticket = id});
}

void mrt_zk_wake(struct mrt_store *store, struct mrt_id id)
{
    mrt_zk_report(store, MRT_WAKE, id);
}

void mrt_zk_report_revoked(struct mrt_store *store, struct mrt_id id, int64_t request)
{
    report(store,
           (struct mrt_event){.type = MRT_REVOKED, .ticket = id, .revoked = (uint64_t)request});
}
