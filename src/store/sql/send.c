/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on their way to the server: sent immediately where there is a connection, and otherwise
 * kept until there is one.
 *
 * The order of store->sent is the order in which the server gets them. A proof of life goes before
 * all that has not left yet, and so does a request that is sent once more.
 */
#include "store/sql/send.h"
#include "base/assert.h"
#include "store/sql/driver.h"
#include "store/sql/request.h"

static void renew(struct mrt_sql_request *request)
{
    mrt_sql_rows_free(request->rows);
    request->rows = NULL;
    request->affected = 0;
    request->steps = request->at = 0;
    request->failed = false;
    request->sent = 0;
}

/* Before all that has not left yet, but not before a proof of life: what waits for a row's lock
   must not be what keeps a session from being renewed. */
static void put_first(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    struct mrt_sql_request *at;
    TAILQ_FOREACH (at, &store->sent, link)
        if (at->sent == 0 && at->kind != MRT_SQL_DO_RENEW)
            break;
    if (at)
        TAILQ_INSERT_BEFORE(at, request, link);
    else
        TAILQ_INSERT_TAIL(&store->sent, request, link);
}

void mrt_sql_send(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    renew(request);
    if (request->kind == MRT_SQL_DO_RENEW)
        put_first(store, request);
    else
        TAILQ_INSERT_TAIL(&store->sent, request, link);
    mrt_sql_driver_send(store, request, now);
}

void mrt_sql_begin(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    MRT_ASSERT(!request->done);
    if (request->begun == 0)
        request->begun = now;
    if (store->state == MRT_SQL_READY && !store->broken)
        mrt_sql_send(store, request, now);
    else
        TAILQ_INSERT_TAIL(&store->waiting, request, link);
}

static struct mrt_sql_request *new_own(enum mrt_sql_kind kind, const struct mrt_command *command,
                                       mrt_time now)
{
    struct mrt_sql_request *own = mrt_sql_request_new(kind);
    if (!own)
        return NULL; /* it is done again when it is next found to be needed */
    own->command = *command;
    own->command.serial = 0;
    own->begun = now;
    return own;
}

void mrt_sql_begin_own(struct mrt_sql_store *store, enum mrt_sql_kind kind,
                       const struct mrt_command *command, mrt_time now)
{
    struct mrt_sql_request *own = new_own(kind, command, now);
    if (own)
        mrt_sql_begin(store, own, now);
}

void mrt_sql_resend(struct mrt_sql_store *store, struct mrt_sql_request *request,
                    enum mrt_sql_kind before, mrt_time now)
{
    const struct mrt_sql_request *last = TAILQ_LAST(&store->sent, mrt_sql_requests);
    struct mrt_sql_request *own =
        before == request->kind ? NULL : new_own(before, &request->command, now);
    if (last && last->sent == 0 && !store->broken) {
        renew(request);
        put_first(store, request);
        if (own)
            TAILQ_INSERT_BEFORE(request, own, link);
        return;
    }
    if (own)
        mrt_sql_begin(store, own, now);
    mrt_sql_begin(store, request, now);
}
