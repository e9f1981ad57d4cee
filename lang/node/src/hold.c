/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: small values of the library's, each in an external of its own.
 *
 * The library computes each property of a hold from its clock. Only a hold whose losses the program
 * wants to hear of is watched: the library makes such callbacks on a thread more.
 */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>

static const napi_type_tag hold_tag = {0x6d6f727469736533, 0x686f6c6400000001};

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

napi_value make_key(napi_env env, mortise_hold hold)
{
    char key[64];
    snprintf(key, sizeof key, "%p:%llx", hold.slot, (unsigned long long)hold.generation);
    return make_text(env, key);
}

static bool read_hold(napi_env env, napi_value value, mortise_hold *hold)
{
    void *handle;
    if (!read_handle(env, value, &hold_tag, &handle))
        return false;
    *hold = *(const mortise_hold *)handle;
    return true;
}

bool read_held(napi_env env, napi_callback_info info, struct argument *arguments,
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
    if (!read_held(env, info, &arguments, &client, &hold))
        return NULL;
    int error = call(hold);
    napi_value value = settle(env, error); /* first: the particulars end with the next call */
    look_after(client);
    return value;
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

/* state(client, hold): the number of its state, by the clock. */
static napi_value state(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    napi_value value = NULL;
    if (read_held(env, info, &arguments, &client, &hold))
        good(env, napi_create_uint32(env, mortise_hold_state(hold), &value));
    return value;
}

/* key(client, hold): by which messages about it come. */
static napi_value key(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    return read_held(env, info, &arguments, &client, &hold) ? make_key(env, hold) : NULL;
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

static int run_detach(struct job *job)
{
    return mortise_detach(job->hold, job->token);
}

static napi_value made_token(napi_env env, struct job *job)
{
    return make_text(env, job->token);
}

/* detach(client, hold): the promise of the token. */
static napi_value detach(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    mortise_hold hold;
    if (!read_held(env, info, &arguments, &client, &hold))
        return NULL;
    struct job *job = make_job(client, run_detach, made_token);
    if (!job)
        return throw_error(env, MORTISE_ENOMEM, "");
    job->hold = hold;
    return start_job(env, job);
}

const struct exported hold_functions[] = {{"release", release},
                                          {"downgrade", downgrade},
                                          {"remaining", remaining},
                                          {"state", state},
                                          {"key", key},
                                          {"watch", watch},
                                          {"watchRevoke", watch_revoke},
                                          {"verify", verify},
                                          {"detach", detach},
                                          {NULL, NULL}};
