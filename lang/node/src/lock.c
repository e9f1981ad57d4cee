/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: their handles, and acquires.
 *
 * A handle is freed when JavaScript has collected its object, or with its client.
 *
 * An acquire that waits is a `struct waiting`, in the library's hands until it calls back. Its
 * number, which lib/lock.js gave, finds the promise. To cancel it, JavaScript gives the number
 * back: under the client's mutex it is still waiting, or its callback has begun and nothing is
 * cancelled.
 */
#include "addon.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const napi_type_tag lock_tag = {0x6d6f727469736532, 0x6c6f636b00000001};
static const napi_type_tag wait_tag = {0x6d6f727469736534, 0x7761697400000001};

struct waiting {
    struct client *client;
    mortise_operation *operation; /* NULL: not begun, or its callback has */
    struct message *message;      /* for its end: made at the start, so that it cannot be lacking */
    atomic_uint references;       /* the library's and JavaScript's */
};

/* ------------------------------------------------------------------- locks */

struct lock {
    struct client *client;
    mortise_lock *lock; /* of the client while it is open */
};

static void collect_lock(napi_env env, void *data, void *hint)
{
    struct lock *lock = data;
    (void)env;
    (void)hint;
    if (lock->client->client)
        mortise_lock_free(lock->lock);
    drop_client(lock->client);
    free(lock);
}

static void wrap_lock(napi_env env, napi_value array, uint32_t index, struct client *client,
                      mortise_lock *handle)
{
    struct lock *lock = malloc(sizeof *lock);
    if (!lock) {
        throw_error(env, MORTISE_ENOMEM, "");
        return;
    }
    *lock = (struct lock){client, handle};
    client->references++;
    napi_value value = make_handle(env, lock, &lock_tag, collect_lock);
    if (value)
        good(env, napi_set_element(env, array, index, value));
}

bool read_lock(napi_env env, napi_value value, mortise_lock **lock)
{
    void *handle;
    if (!read_handle(env, value, &lock_tag, &handle))
        return false;
    const struct lock *wrapped = handle;
    *lock = wrapped->lock;
    if (wrapped->client->client)
        return true;
    throw_error(env, MORTISE_ECLOSED, "");
    return false;
}

static bool read_options(napi_env env, const napi_value *values, mortise_lock_options *options)
{
    int64_t max_hold, linger, delay, take;
    if (!read_number(env, values[0], &max_hold) || !read_number(env, values[1], &linger) ||
        !read_number(env, values[2], &delay) || !read_number(env, values[3], &take))
        return false;
    *options = (mortise_lock_options){.size = sizeof *options,
                                      .owner = MORTISE_OWNER_NOBODY,
                                      .permits = (uint32_t)take,
                                      .max_hold_ms = max_hold,
                                      .linger_ms = linger,
                                      .lock_delay_ms = delay};
    return true;
}

static int make_locks(const char *kind, mortise_client *client, const char *name, uint32_t permits,
                      const mortise_lock_options *options, mortise_lock *locks[2])
{
    if (strcmp(kind, "semaphore") == 0)
        return mortise_semaphore_new(client, name, permits, options, &locks[0]);
    if (strcmp(kind, "exclusive") == 0)
        return mortise_exclusive_new(client, name, options, &locks[0]);
    if (strcmp(kind, "read-write") == 0)
        return mortise_read_write_new(client, name, options, &locks[0], &locks[1]);
    return mortise_mutex_new(client, name, options, &locks[0]);
}

/* newLock(client, kind, name, permits, maxHoldMs, lingerMs, lockDelayMs, take): the handles. */
static napi_value new_lock(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    char *kind = NULL, *name = NULL;
    int64_t permits;
    mortise_lock_options options;
    mortise_lock *locks[2] = {NULL, NULL};
    napi_value array = NULL;
    if (read_arguments(env, info, 8, &arguments) &&
        read_client(env, arguments.values[0], &client) &&
        read_text(env, arguments.values[1], &kind) && read_text(env, arguments.values[2], &name) &&
        read_number(env, arguments.values[3], &permits) &&
        read_options(env, &arguments.values[4], &options)) {
        int error = make_locks(kind, client->client, name, (uint32_t)permits, &options, locks);
        settle(env, error);
        if (error == MORTISE_OK && good(env, napi_create_array(env, &array)))
            for (uint32_t i = 0; i < 2 && locks[i]; i++)
                wrap_lock(env, array, i, client, locks[i]);
    }
    free(kind);
    free(name);
    return array;
}

/* ----------------------------------------------------------------- acquires */

static void drop_waiting(struct waiting *waiting)
{
    if (atomic_fetch_sub(&waiting->references, 1) == 1)
        free(waiting);
}

/* The client's thread. */
static void on_acquired(void *argument, int error, mortise_hold hold)
{
    struct waiting *waiting = argument;
    struct client *client = waiting->client;
    struct message *message = waiting->message;
    pthread_mutex_lock(&client->mutex);
    const mortise_operation *operation = waiting->operation;
    waiting->operation = NULL;
    waiting->message = NULL;
    pthread_mutex_unlock(&client->mutex);
    message->number = error;
    message->hold = hold;
    if (error == MORTISE_OK)
        message->fence = mortise_hold_fence(hold);
    else
        snprintf(message->detail, sizeof message->detail, "%s",
                 mortise_operation_detail(operation));
    post_message(client, message);
    drop_waiting(waiting);
}

static int start_acquire(struct waiting *waiting, mortise_lock *lock, int64_t timeout_ms)
{
    struct client *client = waiting->client;
    mortise_operation *operation;
    /* Held until the operation is known: its callback, in another thread, waits for that. */
    pthread_mutex_lock(&client->mutex);
    int error = timeout_ms == 0 ? mortise_try_acquire_async(lock, on_acquired, waiting, &operation)
                                : mortise_acquire_async(lock, deadline_of(timeout_ms), on_acquired,
                                                        waiting, &operation);
    if (error == MORTISE_OK)
        waiting->operation = operation;
    pthread_mutex_unlock(&client->mutex);
    return error;
}

static void collect_waiting(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    drop_waiting(data);
}

/* acquire(client, lock, timeoutMs, id): what `cancel` takes. */
static napi_value acquire(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_lock *lock;
    int64_t timeout, id;
    if (!read_arguments(env, info, 4, &arguments) ||
        !read_client(env, arguments.values[0], &client) ||
        !read_lock(env, arguments.values[1], &lock) ||
        !read_number(env, arguments.values[2], &timeout) ||
        !read_number(env, arguments.values[3], &id))
        return NULL;
    struct waiting *waiting = calloc(1, sizeof *waiting);
    struct message *message = make_message(MESSAGE_ACQUIRED, 0);
    if (!waiting || !message) {
        free(waiting);
        free(message);
        return throw_error(env, MORTISE_ENOMEM, "");
    }
    message->id = (uint32_t)id;
    waiting->client = client;
    waiting->message = message;
    atomic_init(&waiting->references, 2);
    napi_value handle = make_handle(env, waiting, &wait_tag, collect_waiting);
    int error = handle ? start_acquire(waiting, lock, timeout) : MORTISE_ENOMEM;
    if (error != MORTISE_OK) {
        free(message);
        waiting->message = NULL;
        drop_waiting(waiting); /* the library's reference */
        return handle ? settle(env, error) : NULL;
    }
    look_after(client);
    return handle;
}

static napi_value cancel(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    void *handle;
    if (!read_arguments(env, info, 2, &arguments) ||
        !read_client(env, arguments.values[0], &client) ||
        !read_handle(env, arguments.values[1], &wait_tag, &handle))
        return NULL;
    struct waiting *waiting = handle;
    pthread_mutex_lock(&client->mutex);
    if (waiting->operation)
        mortise_cancel(waiting->operation);
    pthread_mutex_unlock(&client->mutex);
    look_after(client);
    return NULL;
}

const struct exported lock_functions[] = {
    {"newLock", new_lock}, {"acquire", acquire}, {"cancel", cancel}, {NULL, NULL}};
