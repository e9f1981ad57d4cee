/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port of a form (native/native.h): which connection a command goes to, and what it means
 * there.
 *
 * Threads: as store.c.
 */
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/list.h"
#include "store/sql/native/calls.h"
#include "store/sql/native/native.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/store.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define READY_MAX 16
#define SHARED_CAPACITY (UINT64_C(1) << 31) /* so much that nobody can have all of it in parts */

bool mrt_native_shares(const struct mrt_sql_store *store)
{
    return store->form->first == MRT_SQL_DO_NAMED && mrt_sql_named_shares;
}

/* ------------------------------------------------------------------ sessions */

static void start(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_native_link *link = mrt_native_link_take(store, NULL);
    if (link)
        mrt_native_link_send(store, link, request, MRT_NATIVE_PROVE, now);
    else
        mrt_sql_fail(store, request, MORTISE_ENOMEM, "no memory for a connection");
}

/* A connection that nobody has needed since the last time is closed, but for one. */
static void close_unused(struct mrt_sql_store *store)
{
    struct mrt_native_link *link, *next;
    bool one = false;
    TAILQ_FOREACH_SAFE (link, &store->form->links, link, next)
        if (link->state == MRT_NATIVE_FREE && TAILQ_EMPTY(&link->store.sent) &&
            TAILQ_EMPTY(&link->store.waiting) && TAILQ_EMPTY(&link->store.resting)) {
            if (one && !link->used)
                mrt_native_link_free(store, link);
            else
                link->used = false;
            one = true;
        }
}

static void renew(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_native_link *link;
    close_unused(store);
    store->form->renewed = now;
    store->form->renewal = request;
    TAILQ_FOREACH (link, &store->form->links, link) {
        bool held = link->state == MRT_NATIVE_HELD;
        if (!held && (link->state != MRT_NATIVE_FREE || !link->connected))
            continue;
        if (mrt_native_link_send_own(store, link, MRT_RENEW, MRT_NATIVE_PROVE, now))
            link->proves = held;
        else if (held)
            store->form->renewal = NULL;
    }
    if (!store->form->renewal)
        mrt_sql_answer(store, request, MRT_UNKNOWN);
}

static void stop(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_native_link *link, *next;
    store->form->started = false;
    store->form->stop = request;
    TAILQ_FOREACH_SAFE (link, &store->form->links, link, next)
        if (link->state == MRT_NATIVE_HELD &&
            mrt_native_link_send_own(store, link, MRT_STOP, MRT_NATIVE_LEAVE, now))
            link->state = MRT_NATIVE_LEAVING;
        else if (link->state != MRT_NATIVE_FREE && link->state != MRT_NATIVE_LEAVING)
            mrt_native_link_end(store, link, now);
}

/* RENEW and STOP are answered when all connections have answered for them. Nothing is renewed
   while there is a loss to be told. */
static void answer_all(struct mrt_sql_store *store)
{
    struct mrt_native *form = store->form;
    const struct mrt_event all = {.type = MRT_WAKE, .session = form->session};
    const struct mrt_native_link *link;
    bool proves = false, leaves = false;
    TAILQ_FOREACH (link, &form->links, link) {
        proves |= link->proves;
        leaves |= link->state == MRT_NATIVE_LEAVING || link->kills > 0;
    }
    form->untold = form->untold && !mrt_sql_tell(store, &all);
    if (form->renewal && !proves) {
        mrt_sql_answer(store, form->renewal, form->untold ? MRT_UNKNOWN : MRT_RENEWED);
        form->renewal = NULL;
    }
    if (form->stop && !leaves) {
        mrt_sql_answer(store, form->stop, MRT_STOPPED);
        form->stop = NULL;
    }
}

/* ------------------------------------------------------------------ tickets */

static void view_ticket(struct mrt_sql_store *store, struct mrt_native_link *link,
                        struct mrt_sql_request *request, mrt_time now)
{
    request->command.weight = link->weight;
    request->command.capacity = link->capacity;
    if (link->state == MRT_NATIVE_HELD)
        mrt_native_link_send(store, link, request, MRT_NATIVE_LOOK, now);
    else if (link->state != MRT_NATIVE_BROKEN)
        mrt_native_link_view(store, link, request, false);
    else {
        link->state = MRT_NATIVE_ASKING;
        mrt_native_link_send(store, link, request, MRT_NATIVE_TRY, now);
    }
}

static bool is_had(const struct mrt_sql_store *store, const struct mrt_command *command)
{
    return command->capacity == 1 ||
           (mrt_native_shares(store) && command->capacity == SHARED_CAPACITY &&
            (command->weight == 1 || command->weight == command->capacity));
}

static void append(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    const struct mrt_command *command = &request->command;
    struct mrt_native_link *link = mrt_native_link_of(store, command->ticket);
    if (link) {
        view_ticket(store, link, request, now);
        return;
    }
    if (!is_had(store, command)) {
        mrt_sql_fail(store, request, MORTISE_ENOTSUPPORTED,
                     "this form of the %s store has no %.32s of capacity %" PRIu64, mrt_sql_product,
                     command->kind, command->capacity);
        return;
    }
    link = mrt_native_link_take(store, command->queue);
    if (!link) {
        mrt_sql_fail(store, request, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    link->ticket = command->ticket;
    link->weight = command->weight;
    link->capacity = command->capacity;
    link->state = MRT_NATIVE_ASKING;
    link->used = true;
    TAILQ_REMOVE(&store->form->links, link, link);
    TAILQ_INSERT_HEAD(&store->form->links, link, link);
    mrt_native_link_send(store, link, request, MRT_NATIVE_TRY, now);
}

static bool is_tried(const struct mrt_native_link *link)
{
    const struct mrt_sql_request *request = TAILQ_FIRST(&link->store.resting);
    if (!request)
        request = TAILQ_LAST(&link->store.sent, mrt_sql_requests);
    if (!request)
        request = TAILQ_FIRST(&link->store.waiting);
    return request && request->command.serial;
}

static void remove_ticket(struct mrt_sql_store *store, struct mrt_native_link *link,
                          struct mrt_sql_request *request, mrt_time now)
{
    if (link->state == MRT_NATIVE_HELD) {
        mrt_native_link_leave(store, link, request, now);
    } else if (!link->removal && is_tried(link)) {
        link->removal = request;
    } else {
        mrt_native_link_end(store, link, now);
        mrt_sql_answer(store, request, MRT_REMOVED);
    }
}

static void lighten(struct mrt_sql_store *store, struct mrt_native_link *link,
                    struct mrt_sql_request *request, mrt_time now)
{
    if (link->state != MRT_NATIVE_HELD || request->command.weight >= link->weight) {
        view_ticket(store, link, request, now);
        return;
    }
    link->weight = request->command.weight;
    request->command.capacity = link->capacity;
    mrt_native_link_send(store, link, request, MRT_NATIVE_LIGHTEN, now);
}

/* ------------------------------------------------------------------ commands */

/* A command that is not of the one session. */
static void refuse(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    if (request->command.type == MRT_STOP)
        mrt_sql_answer(store, request, MRT_STOPPED);
    else if (request->command.type == MRT_REMOVE)
        mrt_sql_answer(store, request, MRT_REMOVED);
    else
        mrt_sql_fail(store, request, MORTISE_ELOST, "the session has ended");
}

static void do_to_ticket(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_native_link *link = mrt_native_link_of(store, request->command.ticket);
    enum mrt_command_type type = request->command.type;
    if (type != MRT_REFRESH && type != MRT_LIGHTEN && type != MRT_REMOVE)
        mrt_sql_fail(store, request, MORTISE_ENOTSUPPORTED,
                     "not supported by a lock of the server's own (form=)");
    else if (!link)
        mrt_sql_answer(store, request, type == MRT_REMOVE ? MRT_REMOVED : MRT_GONE);
    else if (type == MRT_REMOVE)
        remove_ticket(store, link, request, now);
    else if (type == MRT_LIGHTEN)
        lighten(store, link, request, now);
    else
        view_ticket(store, link, request, now);
}

static void carry_out(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    bool ours =
        store->form->started && mrt_id_equal(request->command.session, store->form->session);
    switch (request->command.type) {
    case MRT_START:
        start(store, request, now);
        return;
    case MRT_RENEW:
        if (ours && !store->form->renewal) {
            renew(store, request, now);
            return;
        }
        break;
    case MRT_STOP:
        if (ours) {
            stop(store, request, now);
            return;
        }
        break;
    default:
        if (ours) {
            if (request->command.type == MRT_APPEND)
                append(store, request, now);
            else
                do_to_ticket(store, request, now);
            return;
        }
    }
    refuse(store, request);
}

static bool is_due(const struct mrt_native_link *link, mrt_time now)
{
    return link->fresh || link->store.broken || !TAILQ_EMPTY(&link->store.outbox) ||
           (link->connected && link->store.state != MRT_SQL_READY) ||
           mrt_sql_link_next(&link->store) <= now;
}

/* All that needs nothing to have arrived. */
static void serve(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_native_link *link;
    TAILQ_FOREACH (link, &store->form->links, link)
        if (is_due(link, now))
            mrt_native_link_turn(store, link, now);
    answer_all(store);
    mrt_sql_deliver(store);
}

bool mrt_native_submit(struct mrt_store *port, const struct mrt_command *command, mrt_time patience)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    (void)patience; /* nothing here waits */
    struct mrt_sql_request *request = mrt_sql_request_new(store->form->first);
    if (!request)
        return false;
    mrt_time now = mrt_time_now();
    request->command = *command;
    carry_out(store, request, now);
    serve(store, now);
    return true;
}

/* ------------------------------------------------------------------ the port */

void mrt_native_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    struct epoll_event ready[READY_MAX];
    int count = epoll_wait(store->epoll, ready, READY_MAX, 0);
    for (int i = 0; i < count; i++)
        mrt_native_link_turn(store, ready[i].data.ptr, now);
    serve(store, now);
}

mrt_time mrt_native_next(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    const struct mrt_native_link *link;
    mrt_time next = MRT_TIME_NEVER;
    TAILQ_FOREACH (link, &store->form->links, link)
        next = mrt_time_min(next, is_due(link, 0) ? 0 : mrt_sql_link_next(&link->store));
    return next;
}

int mrt_native_list(struct mrt_store *port, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    bool lists_all = store->form->first == MRT_SQL_DO_ROW && mrt_sql_shows_rows;
    if (!name && !lists_all)
        return mrt_error(MORTISE_ENOTSUPPORTED,
                         "this form of the %s store can list one name, and not all: the server "
                         "does not show which names are locked",
                         mrt_sql_product);
    return mrt_sql_list(port, name, prefix, callback, argument);
}

static void show_form(struct mrt_sql_store *store, const char *name)
{
    char *shown = store->address.shown;
    size_t length = strlen(shown);
    snprintf(shown + length, sizeof store->address.shown - length, "%sform=%s",
             strchr(shown, '?') ? "&" : "?", name);
}

static int open_form(const struct mrt_uri *uri, const struct mrt_store_options *options,
                     struct mrt_sink sink, struct mrt_store **opened, enum mrt_sql_kind first)
{
    if (mrt_uri_parameter(uri, "queue_max"))
        return mrt_error(MORTISE_EURI,
                         "queue_max= and form= do not go together: the server queues");
    struct mrt_sql_store *store;
    int error = mrt_sql_new(uri, options, sink, &store);
    if (error != MORTISE_OK)
        return error;
    struct mrt_native *form = calloc(1, sizeof *form);
    if (!form) {
        mrt_sql_close((struct mrt_store *)store);
        return MORTISE_ENOMEM;
    }
    TAILQ_INIT(&form->links);
    form->first = first;
    form->hooks = &mrt_native_hooks;
    store->form = form;
    show_form(store, mrt_uri_parameter(uri, "form"));
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

int mrt_native_open_named(const struct mrt_uri *uri, const struct mrt_store_options *options,
                          struct mrt_sink sink, struct mrt_store **store)
{
    return open_form(uri, options, sink, store, MRT_SQL_DO_NAMED);
}

int mrt_native_open_row(const struct mrt_uri *uri, const struct mrt_store_options *options,
                        struct mrt_sink sink, struct mrt_store **store)
{
    return open_form(uri, options, sink, store, MRT_SQL_DO_ROW);
}

void mrt_native_close(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    struct mrt_native_link *link;
    while ((link = TAILQ_FIRST(&store->form->links))) {
        mrt_sql_request_free(link->removal);
        mrt_native_link_free(store, link);
    }
    mrt_sql_request_free(store->form->renewal);
    mrt_sql_request_free(store->form->stop);
    free(store->form);
    mrt_sql_close(port);
}

void mrt_native_abandon(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    struct mrt_native_link *link;
    TAILQ_FOREACH (link, &store->form->links, link)
        mrt_sql_leave(&link->store);
    mrt_sql_abandon(port);
}
