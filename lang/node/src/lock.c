/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks and holds.
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
static const napi_type_tag hold_tag = {0x6d6f727469736533, 0x686f6c6400000001};
static const napi_type_tag wait_tag = {0x6d6f727469736534, 0x7761697400000001};

struct waiting {
    struct client *client;
    mortise_operation *operation; /* NULL: not begun, or its callback has */
    struct message *message;      /* for its end: made at the start, so that it cannot be lacking */
    atomic_uint references;       /* the library's and JavaScript's */
};

/* ------------------------------------------------------------------- locks */

/* Handles are freed with their client: one that is collected earlier stays until then. */
static void wrap_lock(napi_env env, napi_value array, uint32_t index, mortise_lock *lock)
{
    napi_value value = make_handle(env, lock, &lock_tag, NULL);
    if (value)
        good(env, napi_set_element(env, array, index, value));
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
                wrap_lock(env, array, i, locks[i]);
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
    void *lock;
    int64_t timeout, id;
    if (!read_arguments(env, info, 4, &arguments) ||
        !read_client(env, arguments.values[0], &client) ||
        !read_handle(env, arguments.values[1], &lock_tag, &lock) ||
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
    return NULL;
}

/* ------------------------------------------------------------------- holds */

static void free_hold(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    free(data);
}

napi_value make_hold(napi_env env, mortise_hold hold)
{
    mortise_hold *copy = malloc(sizeof *copy);
    if (!copy)
        return throw_error(env, MORTISE_ENOMEM, "");
    *copy = hold;
    return make_handle(env, copy, &hold_tag, free_hold);
}

bool read_hold(napi_env env, napi_value value, mortise_hold *hold)
{
    void *handle;
    if (!read_handle(env, value, &hold_tag, &handle))
        return false;
    *hold = *(const mortise_hold *)handle;
    return true;
}

/* The first two arguments of all calls on holds. */
static bool read_held(napi_env env, napi_callback_info info, struct argument *arguments,
                      struct client **client, mortise_hold *hold)
{
    return read_arguments(env, info, 2, arguments) &&
           read_client(env, arguments->values[0], client) &&
           read_hold(env, arguments->values[1], hold);
}

static napi_value call_on_hold(napi_env env, napi_callback_info info, int (*call)(mortise_hold))
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    return read_held(env, info, &arguments, &client, &hold) ? settle(env, call(hold)) : NULL;
}

static napi_value release(napi_env env, napi_callback_info info)
{
    return call_on_hold(env, info, mortise_release);
}

static napi_value downgrade(napi_env env, napi_callback_info info)
{
    return call_on_hold(env, info, mortise_downgrade);
}

/* remaining(client, hold): milliseconds; Infinity; 0: not held. */
static napi_value remaining(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    napi_value value = NULL;
    if (!read_held(env, info, &arguments, &client, &hold))
        return NULL;
    int64_t left = mortise_hold_remaining_ms(hold);
    good(env, napi_create_double(env, left == INT64_MAX ? 1.0 / 0.0 : (double)left, &value));
    return value;
}

static napi_value is_held(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    napi_value value = NULL;
    if (read_held(env, info, &arguments, &client, &hold))
        good(env, napi_get_boolean(env, mortise_is_held(hold) == 1, &value));
    return value;
}

static void on_state(void *argument, mortise_hold hold, mortise_state state)
{
    struct message *message = make_message(MESSAGE_STATE, 0);
    if (message) {
        message->hold = hold;
        message->number = (int)state;
    }
    post_message(argument, message);
}

static void on_revoke(void *argument, mortise_hold hold)
{
    struct message *message = make_message(MESSAGE_REVOKE, 0);
    if (message)
        message->hold = hold;
    post_message(argument, message);
}

/* watch(client, hold): its changes of state are posted from now on. */
static napi_value watch(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    return read_held(env, info, &arguments, &client, &hold)
               ? settle(env, mortise_on_lost(hold, on_state, client))
               : NULL;
}

static napi_value watch_revoke(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    return read_held(env, info, &arguments, &client, &hold)
               ? settle(env, mortise_on_revoke(hold, on_revoke, client))
               : NULL;
}

static int run_verify(struct job *job)
{
    return mortise_verify(job->hold, (int64_t)job->numbers[0]);
}

/* verify(client, hold, timeoutMs): the promise that the store says so too. */
static napi_value verify(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    int64_t timeout;
    if (!read_held(env, info, &arguments, &client, &hold) ||
        !read_number(env, arguments.values[2], &timeout))
        return NULL;
    struct job *job = make_job(client, run_verify, NULL);
    if (!job)
        return throw_error(env, MORTISE_ENOMEM, "");
    job->hold = hold;
    job->numbers[0] = (uint64_t)timeout;
    return start_job(env, job);
}

const struct exported lock_functions[] = {{"newLock", new_lock},
                                          {"acquire", acquire},
                                          {"cancel", cancel},
                                          {"release", release},
                                          {"downgrade", downgrade},
                                          {"remaining", remaining},
                                          {"isHeld", is_held},
                                          {"watch", watch},
                                          {"watchRevoke", watch_revoke},
                                          {"verify", verify},
                                          {NULL, NULL}};
