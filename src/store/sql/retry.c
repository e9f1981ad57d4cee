/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that the server has refused in favour of another transaction are repeated until their
 * time is up: a lease from when they began, or as long as a connection may take.
 *
 * The first retry is immediate: the transaction that won has finished by now.
 * After that there is a pause, twice as long each time up to a limit, plus a random time of up to
 * half as much. So requests that are in each other's way come back at different times, and a server
 * that goes on refusing is sent at most 16 requests a second, if the lease is a second or more. The
 * identities of session and ticket provide the random part.
 *
 * While a request rests, others of its session may go before it, but none of its ticket does,
 * because the engine has one command a ticket under way. A connection that ends ends the pauses:
 * the resting requests wait for the next one.
 */
#include "store/sql/retry.h"
#include "base/assert.h"
#include "store/sql/driver.h"
#include "store/sql/outbox.h"
#include "store/sql/send.h"

#define PAUSE_MIN MRT_MILLISECOND
#define PAUSE_MAX (64 * MRT_MILLISECOND)
#define PAUSE_PART 16 /* of a lease, so that a renewal has more than one attempt */

bool mrt_sql_may_retry(const struct mrt_sql_store *store, const struct mrt_sql_request *request,
                       mrt_time now)
{
    mrt_time patience = store->address.lease > store->address.connect ? store->address.lease
                                                                      : store->address.connect;
    return now < mrt_time_add(request->begun, patience);
}

static mrt_time pause_before(const struct mrt_sql_store *store,
                             const struct mrt_sql_request *request)
{
    mrt_time most = mrt_time_min(PAUSE_MAX, store->address.lease / PAUSE_PART);
    mrt_time pause = PAUSE_MIN;
    for (uint32_t i = 2; i < request->attempts && pause < most; i++)
        pause *= 2;
    uint64_t chance = mrt_sql_chance(&request->command, request->attempts);
    pause = mrt_time_min(pause, most);
    return pause + (mrt_time)(chance % (uint64_t)(pause / 2 + 1));
}

static void rest(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    MRT_ASSERT(!request->done);
    request->due = mrt_time_add(now, pause_before(store, request));
    TAILQ_INSERT_TAIL(&store->resting, request, link);
}

void mrt_sql_retry(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    if (request->attempts++ > 0)
        rest(store, request, now);
    else
        mrt_sql_resend(store, request, request->kind, now);
}

void mrt_sql_retry_behind(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now)
{
    if (request->attempts++ > 0)
        rest(store, request, now);
    else
        mrt_sql_begin(store, request, now);
}

void mrt_sql_make(struct mrt_sql_store *store, struct mrt_sql_request *request,
                  enum mrt_sql_kind kind, mrt_time now)
{
    if (!mrt_sql_may_retry(store, request, now)) {
        mrt_sql_fail(store, request, MORTISE_ESTORE, "%s: the row of %.100s cannot be made",
                     mrt_sql_product, request->command.queue);
    } else if (request->attempts++ > 0) {
        mrt_sql_begin_own(store, kind, &request->command, now);
        rest(store, request, now);
    } else {
        mrt_sql_resend(store, request, kind, now);
    }
}

/* ------------------------------------------------------------------ the requests that pause */

void mrt_sql_rested(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_request *request, *next;
    TAILQ_FOREACH_SAFE (request, &store->resting, link, next)
        if (now >= request->due) {
            TAILQ_REMOVE(&store->resting, request, link);
            mrt_sql_begin(store, request, now);
        }
}

mrt_time mrt_sql_rest_next(const struct mrt_sql_store *store)
{
    const struct mrt_sql_request *request;
    mrt_time next = MRT_TIME_NEVER;
    TAILQ_FOREACH (request, &store->resting, link)
        next = mrt_time_min(next, request->due);
    return next;
}

void mrt_sql_rest_no_more(struct mrt_sql_store *store)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_LAST(&store->resting, mrt_sql_requests))) {
        TAILQ_REMOVE(&store->resting, request, link);
        TAILQ_INSERT_HEAD(&store->waiting, request, link);
    }
}
