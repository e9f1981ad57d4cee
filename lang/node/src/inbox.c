/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inbox of a client: what the library calls back, on its way to one function of lib/client.js.
 *
 * Most callbacks come on JavaScript's own thread: the client has MORTISE_SHARED_LOOP, so Node's
 * loop polls its descriptor, reads the store's answers and calls JavaScript right after, and an
 * acquire costs no switch of thread. While Node's loop is busy, the library's thread does that, and
 * wakes Node's by the thread-safe function.
 *
 * Invariant: JavaScript sees callbacks in the order in which the library made them, whichever
 * thread that was: all go through one list, and JavaScript's thread takes them from its head.
 */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct poll {
    uv_poll_t handle; /* first */
    struct client *client;
    struct environment *environment;
    int fd;
    bool active;
};

/* ---------------------------------------------------------------- messages */

struct message *make_message(enum message_kind kind, size_t size)
{
    struct message *message = calloc(1, sizeof *message + size);
    if (message) {
        message->kind = kind;
        message->size = size;
    }
    return message;
}

void post_message(struct client *client, struct message *message)
{
    if (!message)
        return;
    pthread_mutex_lock(&client->inbox_mutex);
    bool wake = STAILQ_EMPTY(&client->inbox) && !client->helps;
    STAILQ_INSERT_TAIL(&client->inbox, message, link);
    pthread_mutex_unlock(&client->inbox_mutex);
    if (wake) /* it fails when JavaScript has ended */
        napi_call_threadsafe_function(client->post, NULL, napi_tsfn_nonblocking);
}

static struct message *take_message(struct client *client)
{
    pthread_mutex_lock(&client->inbox_mutex);
    struct message *message = STAILQ_FIRST(&client->inbox);
    if (message)
        STAILQ_REMOVE_HEAD(&client->inbox, link);
    pthread_mutex_unlock(&client->inbox_mutex);
    return message;
}

void free_inbox(struct client *client)
{
    struct message *message;
    while ((message = take_message(client)))
        free(message);
}

static napi_value make_value(napi_env env, const struct message *message)
{
    napi_value value = NULL;
    if (message->kind == MESSAGE_LEADER)
        good(env, napi_create_buffer_copy(env, message->size, message->value, NULL, &value));
    else if (message->kind == MESSAGE_ACQUIRED && message->number == MORTISE_OK)
        value = make_hold(env, message->hold);
    else if (message->number < 0)
        value = make_error(env, message->number, message->detail);
    else
        good(env, napi_get_undefined(env, &value));
    return value;
}

/* An exception of a listener is the program's: it is uncaught. */
static void call_receiver(napi_env env, napi_value function, napi_value *arguments)
{
    napi_value global, result, exception;
    napi_get_global(env, &global);
    if (napi_make_callback(env, NULL, global, function, 5, arguments, &result) ==
            napi_pending_exception &&
        napi_get_and_clear_last_exception(env, &exception) == napi_ok)
        napi_fatal_exception(env, exception);
}

static void deliver(napi_env env, napi_value function, const struct message *message)
{
    napi_value arguments[5], exception;
    napi_create_uint32(env, message->kind, &arguments[0]);
    napi_create_uint32(env, message->id, &arguments[1]);
    arguments[2] = make_value(env, message);
    if (!arguments[2]) { /* no memory */
        if (message->kind == MESSAGE_ACQUIRED)
            mortise_release(message->hold);
        napi_get_and_clear_last_exception(env, &exception);
        arguments[2] = make_error(env, MORTISE_ENOMEM, "");
    }
    arguments[3] = make_bigint(env, message->fence);
    napi_get_undefined(env, &arguments[4]);
    if (message->kind == MESSAGE_STATE || message->kind == MESSAGE_REVOKE)
        arguments[4] = make_key(env, message->hold);
    if (message->kind == MESSAGE_STATE)
        napi_create_int32(env, message->number, &arguments[2]);
    call_receiver(env, function, arguments);
}

static void deliver_all(napi_env env, napi_value function, struct client *client)
{
    struct message *message;
    while ((message = take_message(client))) {
        napi_handle_scope scope;
        napi_open_handle_scope(env, &scope);
        deliver(env, function, message);
        napi_close_handle_scope(env, scope);
        free(message);
    }
}

void receive(napi_env env, napi_value function, void *context, void *data)
{
    (void)data;
    if (!env)
        return;
    deliver_all(env, function, context);
    look_after(context);
}

/* ----------------------------------------------------------------- polling */

static void set_helps(struct client *client, bool helps)
{
    pthread_mutex_lock(&client->inbox_mutex);
    client->helps = helps;
    pthread_mutex_unlock(&client->inbox_mutex);
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    struct poll *poll = (struct poll *)handle;
    struct client *client = poll->client;
    napi_handle_scope scope;
    napi_value function;
    (void)events;
    set_helps(client, true);
    if (status < 0 || mortise_process(client->client) != MORTISE_OK) {
        poll->active = false; /* the library's thread reads it */
        uv_poll_stop(handle);
    }
    set_helps(client, false);
    napi_open_handle_scope(client->env, &scope);
    if (napi_get_reference_value(client->env, client->receiver, &function) == napi_ok && function)
        deliver_all(client->env, function, client);
    napi_close_handle_scope(client->env, scope);
}

static void resume_polling(struct client *client)
{
    struct poll *poll = client->poll;
    if (poll && !poll->active)
        poll->active = uv_poll_start(&poll->handle, UV_READABLE, on_readable) == 0;
}

void look_after(struct client *client)
{
    resume_polling(client);
    if (client->client && mortise_next_timeout_ms(client->client) == 0)
        mortise_process(client->client);
}

/* Without it the library's thread does all: it is no error. */
void start_polling(napi_env env, struct client *client)
{
    uv_loop_t *loop;
    int fd = mortise_fd(client->client);
    struct poll *poll = fd >= 0 ? calloc(1, sizeof *poll) : NULL;
    if (!poll)
        return;
    *poll = (struct poll){.client = client, .environment = environment_of(env), .fd = fd};
    if (napi_get_uv_event_loop(env, &loop) != napi_ok ||
        uv_poll_init(loop, &poll->handle, fd) != 0) {
        free(poll);
        return;
    }
    uv_unref((uv_handle_t *)&poll->handle);
    client->references++;
    poll->environment->polls++;
    client->poll = poll;
    resume_polling(client);
}

static void on_closed(uv_handle_t *handle)
{
    struct poll *poll = (struct poll *)handle;
    struct environment *environment = poll->environment;
    drop_client(poll->client);
    free(poll);
    environment->polls--;
    end_environment(environment);
}

void stop_polling(struct client *client)
{
    struct poll *poll = client->poll;
    if (!poll)
        return;
    client->poll = NULL;
    uv_close((uv_handle_t *)&poll->handle, on_closed);
}

void end_environment(struct environment *environment)
{
    if (!environment->end || environment->polls > 0)
        return;
    napi_remove_async_cleanup_hook(environment->end);
    free(environment);
}
