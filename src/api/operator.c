/*
 * What an operator does: list who holds and who waits, ask a holder to give up, take a
 * ticket away. It goes past the engine, straight to the store, and needs no session.
 *
 * Threads: any, but not in a callback: the store is waited for.
 */
#include "api/client.h"

#include "base/error.h"
#include "base/owner.h"

int mortise_server(mortise_client *client, char *text, size_t size)
{
    struct mrt_driver *driver = &client->driver;
    int error = mrt_driver_check(driver, true);
    if (error != MORTISE_OK)
        return error;
    if (!text || size == 0)
        return mrt_error(MORTISE_EINVALID, "mortise_server needs a place for the text");
    *text = '\0';
    if (!driver->ops->server)
        return mrt_error(MORTISE_ENOTSUPPORTED, "there is no server");
    mrt_driver_enter(driver);
    mrt_driver_borrow_store(driver);
    error = driver->ops->server(driver->store, text, size);
    mrt_driver_give_back_store(driver);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

/* -------------------------------------------------------------------- list */

struct listing {
    const mortise_client *client;
    mortise_entry_callback callback;
    void *argument;
};

/* Takes the namespace off the names, and apart what the owner tells of himself. */
static int show(void *argument, const mortise_entry *entry)
{
    const struct listing *listing = argument;
    struct mrt_owner owner;
    mortise_entry shown = *entry;
    mrt_owner_parse(entry->label, &owner);
    shown.name += listing->client->prefix_length;
    shown.label = owner.label;
    shown.host = owner.host;
    shown.pid = owner.pid;
    return listing->callback(listing->argument, &shown);
}

int mortise_list(mortise_client *client, const char *name, mortise_entry_callback callback,
                 void *argument)
{
    struct mrt_driver *driver = &client->driver;
    char full[MRT_FULL_NAME_SIZE];
    int error = mrt_driver_check(driver, true);
    if (error == MORTISE_OK && name)
        error = mrt_client_full_name(client, name, full);
    if (error != MORTISE_OK)
        return error;
    if (!callback)
        return mrt_error(MORTISE_EINVALID, "mortise_list needs a callback");
    struct listing listing = {client, callback, argument};
    mrt_driver_enter(driver);
    mrt_driver_borrow_store(driver);
    error = driver->ops->list(driver->store, name ? full : NULL, client->prefix, show, &listing);
    mrt_driver_give_back_store(driver);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

/* -------------------------------------------------------------------- tickets */

static int operate(mortise_client *client, const char *name, uint64_t fence,
                   int (*operation)(struct mrt_store *, const char *, uint64_t))
{
    struct mrt_driver *driver = &client->driver;
    char full[MRT_FULL_NAME_SIZE];
    int error = mrt_driver_check(driver, true);
    if (error == MORTISE_OK)
        error = mrt_client_full_name(client, name, full);
    if (error != MORTISE_OK)
        return error;
    if (!operation)
        return mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" has no such operation",
                         driver->ops->scheme);
    mrt_driver_enter(driver);
    mrt_driver_borrow_store(driver);
    error = operation(driver->store, full, fence);
    mrt_driver_give_back_store(driver);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

int mortise_revoke(mortise_client *client, const char *name, uint64_t fence)
{
    return operate(client, name, fence, client->driver.ops->revoke);
}

int mortise_break(mortise_client *client, const char *name, uint64_t fence)
{
    return operate(client, name, fence, client->driver.ops->break_ticket);
}
