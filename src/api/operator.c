/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's calls: list holders and waiters, ask a holder to give up, remove a ticket. They
 * bypass the engine, go straight to the store, and need no session.
 *
 * A server may answer slowly, and a program may take long over a row. Neither may keep a hold from
 * being renewed. So a store with a lease answers these calls beside its other work for the client,
 * and rows of a list are shown after the call has left the store.
 *
 * Threads: any, except in a callback of a client, because these calls wait for the store. The
 * callback of a list is not such a callback.
 */
#include "api/client.h"

#include "base/error.h"
#include "base/owner.h"

#include <stdlib.h>
#include <string.h>

static bool asks_apart(const struct mrt_driver *driver)
{
    return driver->ops->asks_apart && driver->ops->asks_apart(driver->store);
}

/* The store, for a call; end_asking ends the call. */
static struct mrt_store *begin_to_ask(struct mrt_driver *driver)
{
    if (asks_apart(driver)) {
        mrt_driver_pin(driver);
    } else {
        mrt_driver_enter(driver);
        mrt_driver_borrow_store(driver);
    }
    return driver->store;
}

static void end_asking(struct mrt_driver *driver)
{
    if (asks_apart(driver)) {
        mrt_driver_unpin(driver);
    } else {
        mrt_driver_give_back_store(driver);
        mrt_driver_leave(driver, MRT_TIME_NEVER);
    }
}

int mortise_server(mortise_client *client, char *text, size_t size)
{
    int error = mrt_client_check(client, true);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client->driver;
    if (!text || size == 0)
        return mrt_error(MORTISE_EINVALID, "mortise_server needs a place for the text");
    *text = '\0';
    if (!driver->ops->server)
        return mrt_error(MORTISE_ENOTSUPPORTED, "there is no server");
    error = driver->ops->server(begin_to_ask(driver), text, size);
    end_asking(driver);
    return error;
}

/* -------------------------------------------------------------------- list */

struct row {
    STAILQ_ENTRY(row) link;
    mortise_entry entry;
    struct mrt_owner owner;
    char texts[];
};

struct listing {
    const mortise_client *client;
    STAILQ_HEAD(, row) rows;
    bool no_memory;
};

/* Copies a row, without the namespace before its name, and parses the owner's text. Rows outside
 * the namespace, which a server may list, are left out. */
static int take_row(void *argument, const struct mrt_listed *listed)
{
    const mortise_entry *entry = &listed->entry;
    struct listing *listing = argument;
    const mortise_client *client = listing->client;
    if (strncmp(entry->name, client->prefix, client->prefix_length) != 0)
        return 0;
    const char *name = entry->name + client->prefix_length, *node = entry->node ? entry->node : "";
    size_t name_size = strlen(name) + 1, kind_size = strlen(entry->kind) + 1;
    size_t node_size = strlen(node) + 1;
    struct row *row = malloc(sizeof *row + name_size + kind_size + node_size);
    listing->no_memory = !row;
    if (!row)
        return 1;
    row->entry = *entry;
    row->entry.name = memcpy(row->texts, name, name_size);
    row->entry.kind = memcpy(row->texts + name_size, entry->kind, kind_size);
    row->entry.node = memcpy(row->texts + name_size + kind_size, node, node_size);
    mrt_owner_parse(entry->label, &row->owner);
    row->entry.label = row->owner.label;
    row->entry.host = row->owner.host;
    row->entry.pid = row->owner.pid;
    if (row->entry.id == 0)
        row->entry.id = row->entry.fence;
    STAILQ_INSERT_TAIL(&listing->rows, row, link);
    return 0;
}

/* Shows the rows until the callback has had enough, or none if there is no callback, and frees
   them. */
static void show_rows(struct listing *listing, mortise_entry_callback callback, void *argument)
{
    struct row *row;
    while ((row = STAILQ_FIRST(&listing->rows))) {
        STAILQ_REMOVE_HEAD(&listing->rows, link);
        if (callback && callback(argument, &row->entry) != 0)
            callback = NULL;
        free(row);
    }
}

int mortise_list(mortise_client *client, const char *name, mortise_entry_callback callback,
                 void *argument)
{
    char full[MRT_FULL_NAME_SIZE];
    int error = mrt_client_check(client, true);
    if (error == MORTISE_OK && name)
        error = mrt_client_full_name(client, name, full);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client->driver;
    if (!callback)
        return mrt_error(MORTISE_EINVALID, "mortise_list needs a callback");
    struct listing listing = {.client = client};
    STAILQ_INIT(&listing.rows);
    error = driver->ops->list(begin_to_ask(driver), name ? full : NULL, client->prefix, take_row,
                              &listing);
    end_asking(driver);
    if (listing.no_memory)
        error = MORTISE_ENOMEM;
    show_rows(&listing, error == MORTISE_OK ? callback : NULL, argument);
    return error;
}

/* -------------------------------------------------------------------- tickets */

static int operate(mortise_client *client, const char *name, uint64_t fence, bool breaks)
{
    char full[MRT_FULL_NAME_SIZE];
    int error = mrt_client_check(client, true);
    if (error == MORTISE_OK)
        error = mrt_client_full_name(client, name, full);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client->driver;
    int (*operation)(struct mrt_store *, const char *, uint64_t) =
        breaks ? driver->ops->break_ticket : driver->ops->revoke;
    if (!operation)
        return mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" has no such operation",
                         driver->ops->scheme);
    error = operation(begin_to_ask(driver), full, fence);
    end_asking(driver);
    return error;
}

int mortise_revoke(mortise_client *client, const char *name, uint64_t fence)
{
    return operate(client, name, fence, false);
}

int mortise_break(mortise_client *client, const char *name, uint64_t fence)
{
    return operate(client, name, fence, true);
}
