/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals that may not be on disk yet.
 *
 * Where the server supports it (asynchronous commit), a REMOVE that lets in no waiter is
 * acknowledged before it is on disk. The client that gets the lock next puts its ticket in by a
 * transaction that does wait for the disk, and the server writes transactions in order. So no grant
 * depends on a removal that can be lost. But a server that crashes soon after comes back with the
 * ticket, in a session that goes on being renewed.
 *
 * So each such removal is remembered from its sending, and is repeated on every new connection,
 * right behind the RESUMEs of the sessions. It is remembered until a later commit is known to be on
 * disk: a request whose commit waits for the disk has been answered, on the connection on which
 * the removal was answered too. A removal that finds no ticket is remembered as well, because an
 * earlier one may have removed it. While anything is remembered, the end of a session waits for
 * the disk.
 *
 * The list has the removals that were answered on the present connection, and those that will be
 * sent again; a request in flight carries its own. Both are counted. When there are MOST of them a
 * REMOVE waits for the disk, which settles all.
 */
#include "store/sql/flush.h"
#include "base/assert.h"
#include "store/sql/driver.h"
#include "store/sql/request.h"
#include "store/sql/send.h"

#include <stdlib.h>
#include <string.h>

#define MOST 64

struct mrt_sql_removal {
    TAILQ_ENTRY(mrt_sql_removal) link;
    struct mrt_id session, ticket;
    bool due; /* to be sent again */
    char queue[];
};

void mrt_sql_note_unflushed(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    const struct mrt_command *command = &request->command;
    size_t size = strlen(command->queue) + 1;
    if (!mrt_sql_async_commit || store->removal_count >= MOST)
        return;
    MRT_ASSERT(!request->removal);
    request->removal = calloc(1, sizeof *request->removal + size);
    if (!request->removal)
        return; /* it waits for the disk */
    request->removal->session = command->session;
    request->removal->ticket = command->ticket;
    memcpy(request->removal->queue, command->queue, size);
    store->removal_count++;
}

static void forget(struct mrt_sql_store *store, struct mrt_sql_removal *removal)
{
    MRT_ASSERT(store->removal_count > 0);
    store->removal_count--;
    free(removal);
}

/* Whether the ticket has gone, by this request, and is on disk so. */
static bool is_on_disk(const struct mrt_sql_request *request)
{
    bool says = request->kind == MRT_SQL_DO_REMOVE || request->kind == MRT_SQL_DO_REMOVE_LAST;
    return says && mrt_sql_number(request, MRT_REMOVE_GONE) &&
           !mrt_sql_number(request, MRT_REMOVE_UNFLUSHED);
}

void mrt_sql_removal_answered(struct mrt_sql_store *store, struct mrt_sql_request *request,
                              enum mrt_event_type type)
{
    struct mrt_sql_removal *removal = request->removal;
    bool own = request->command.serial == 0;
    if (type == MRT_REMOVED && is_on_disk(request))
        mrt_sql_on_disk(store);
    if (!removal)
        return;
    request->removal = NULL;
    removal->due = type != MRT_REMOVED;
    if (type == MRT_REMOVED ? is_on_disk(request) : type == MRT_FAILED && !own)
        forget(store, removal);
    else
        TAILQ_INSERT_TAIL(&store->removals, removal, link);
}

void mrt_sql_on_disk(struct mrt_sql_store *store)
{
    struct mrt_sql_removal *removal, *next;
    TAILQ_FOREACH_SAFE (removal, &store->removals, link, next)
        if (!removal->due) {
            TAILQ_REMOVE(&store->removals, removal, link);
            forget(store, removal);
        }
}

void mrt_sql_connection_lost(struct mrt_sql_store *store)
{
    struct mrt_sql_removal *removal;
    TAILQ_FOREACH (removal, &store->removals, link)
        removal->due = true;
}

void mrt_sql_remove_again(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_removal *removal, *next;
    TAILQ_FOREACH_SAFE (removal, &store->removals, link, next)
        if (removal->due) {
            struct mrt_sql_request *request = mrt_sql_request_new(MRT_SQL_DO_REMOVE);
            if (!request)
                return; /* when a session is next renewed */
            TAILQ_REMOVE(&store->removals, removal, link);
            request->command.session = removal->session;
            request->command.ticket = removal->ticket;
            request->command.queue = removal->queue;
            request->removal = removal;
            mrt_sql_begin(store, request, now);
        }
}

void mrt_sql_removals_free(struct mrt_sql_store *store)
{
    struct mrt_sql_removal *removal;
    while ((removal = TAILQ_FIRST(&store->removals))) {
        TAILQ_REMOVE(&store->removals, removal, link);
        forget(store, removal);
    }
}
