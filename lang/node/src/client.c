/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: opened and closed by jobs.
 *
 * A client's thread-safe function keeps the client's object, and keeps the process alive as a
 * socket does, but for `unref`. It is released when the client has been closed: then no thread of
 * the library is left to post (inbox.c).
 */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const napi_type_tag client_tag = {0x6d6f727469736531, 0x636c69656e740001};

bool read_client(napi_env env, napi_value value, struct client **client)
{
    void *handle;
    if (!read_handle(env, value, &client_tag, &handle))
        return false;
    *client = handle;
    if ((*client)->client)
        return true;
    throw_error(env, MORTISE_ECLOSED, "");
    return false;
}

static void on_contact(void *argument, int error, const char *why)
{
    struct message *message = make_message(MESSAGE_CONTACT, 0);
    if (message) {
        message->number = error;
        snprintf(message->detail, sizeof message->detail, "%s", why);
    }
    post_message(argument, message);
}

/* ----------------------------------------------------------- open and close */

static void enlist(struct client **list, struct client *client)
{
    client->link = list;
    client->next = *list;
    if (client->next)
        client->next->link = &client->next;
    *list = client;
}

static void delist(struct client *client)
{
    if (!client->link)
        return;
    *client->link = client->next;
    if (client->next)
        client->next->link = client->link;
    client->link = NULL;
}

static void close_listed(struct environment *environment)
{
    struct client *client;
    while ((client = environment->clients)) {
        delist(client);
        mortise_client *library = client->client;
        stop_polling(client);
        client->client = NULL;
        mortise_close(library);
    }
}

void close_all(napi_async_cleanup_hook_handle handle, void *data)
{
    struct environment *environment = data;
    close_listed(environment);
    join_threads(environment);
    environment->end = handle;
    end_environment(environment);
}

void drop_client(struct client *client)
{
    if (--client->references > 0)
        return;
    free_candidates(client->candidates);
    free_inbox(client);
    napi_delete_reference(client->env, client->receiver);
    pthread_mutex_destroy(&client->inbox_mutex);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

/* It is closed, or was never open; or the environment ends, and close_all has closed it. */
static void finalize_client(napi_env env, void *data, void *hint)
{
    (void)env;
    (void)hint;
    drop_client(data);
}

static int run_open(struct job *job)
{
    mortise_client_options options = {.size = sizeof options,
                                      .label = job->label,
                                      .give_up_ms = (int64_t)job->numbers[0],
                                      .timeout_ms = (int32_t)job->numbers[1],
                                      .contact = on_contact,
                                      .contact_argument = job->client,
                                      .flags = MORTISE_STRICT | MORTISE_SHARED_LOOP};
    return mortise_open(job->text, &options, &job->client->client);
}

static napi_value opened(napi_env env, struct job *job)
{
    napi_ref_threadsafe_function(env, job->client->post);
    enlist(&environment_of(env)->clients, job->client);
    start_polling(env, job->client);
    return make_text(env, mortise_url(job->client->client));
}

/* newClient(receiver): the handle of a client that is not open. */
static napi_value new_client(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    if (!read_arguments(env, info, 1, &arguments))
        return NULL;
    client = calloc(1, sizeof *client);
    if (!client)
        return throw_error(env, MORTISE_ENOMEM, "");
    pthread_mutex_init(&client->mutex, NULL);
    pthread_mutex_init(&client->inbox_mutex, NULL);
    STAILQ_INIT(&client->inbox);
    client->env = env;
    if (!good(env, napi_create_threadsafe_function(env, arguments.values[0], NULL,
                                                   make_text(env, "mortise"), 0, 1, NULL, NULL,
                                                   client, receive, &client->post)) ||
        !good(env, napi_create_reference(env, arguments.values[0], 0, &client->receiver))) {
        free(client);
        return NULL;
    }
    napi_unref_threadsafe_function(env, client->post); /* until it is open */
    client->references = 1;
    return make_handle(env, client, &client_tag, finalize_client);
}

/* open(client, url, label, giveUpMs, timeoutMs): the promise of the store's address. */
static napi_value open_client(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    void *handle;
    int64_t give_up, timeout;
    if (!read_arguments(env, info, 5, &arguments) ||
        !read_handle(env, arguments.values[0], &client_tag, &handle) ||
        !read_number(env, arguments.values[3], &give_up) ||
        !read_number(env, arguments.values[4], &timeout))
        return NULL;
    struct job *job = make_job(handle, run_open, opened);
    if (!job)
        return throw_error(env, MORTISE_ENOMEM, "");
    job->numbers[0] = (uint64_t)give_up;
    job->numbers[1] = (uint64_t)timeout;
    if (read_text(env, arguments.values[1], &job->text) &&
        read_text(env, arguments.values[2], &job->label))
        return start_job(env, job);
    free_job(job);
    return NULL;
}

/* EUNKNOWN, the store did not answer, closes too: the session ends by itself. */
static int run_close(struct job *job)
{
    job->numbers[0] = mortise_close(job->library) == MORTISE_OK;
    return MORTISE_OK;
}

/* Earlier messages are delivered yet. */
static napi_value closed(napi_env env, struct job *job)
{
    napi_value value = NULL;
    napi_release_threadsafe_function(job->client->post, napi_tsfn_release);
    good(env, napi_get_boolean(env, job->numbers[0] != 0, &value));
    return value;
}

/* close(client): no job of the client is under way, and none begins. The promise of whether the
   store has acknowledged. */
static napi_value close_client(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    if (!read_arguments(env, info, 1, &arguments) ||
        !read_client(env, arguments.values[0], &client))
        return NULL;
    struct job *job = make_job(client, run_close, closed);
    if (!job)
        return throw_error(env, MORTISE_ENOMEM, "");
    stop_polling(client);
    napi_value promise = start_job(env, job);
    if (promise) {
        delist(client);
        client->client = NULL;
    }
    return promise;
}

/* abandon(client): it could not be opened, and is not used again. */
static napi_value abandon(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    void *handle;
    if (read_arguments(env, info, 1, &arguments) &&
        read_handle(env, arguments.values[0], &client_tag, &handle))
        napi_release_threadsafe_function(((struct client *)handle)->post, napi_tsfn_abort);
    return NULL;
}

/* closeAll(): of this environment, at its end. It waits for the stores. */
static napi_value close_open(napi_env env, napi_callback_info info)
{
    (void)info;
    close_listed(environment_of(env));
    return NULL;
}

/* keep(client, whether): whether the open client keeps the process alive. */
static napi_value keep(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    bool whether;
    if (!read_arguments(env, info, 2, &arguments) ||
        !read_client(env, arguments.values[0], &client) ||
        !good(env, napi_get_value_bool(env, arguments.values[1], &whether)))
        return NULL;
    if (whether)
        napi_ref_threadsafe_function(env, client->post);
    else
        napi_unref_threadsafe_function(env, client->post);
    return NULL;
}

const struct exported client_functions[] = {{"newClient", new_client},
                                            {"open", open_client},
                                            {"close", close_client},
                                            {"keep", keep},
                                            {"abandon", abandon},
                                            {"closeAll", close_open},
                                            {NULL, NULL}};
