/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elections. A candidate's number, which lib/election.js gave, stands in each message about it.
 * The handle is freed with its client: until then its callbacks may come.
 */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const napi_type_tag election_tag = {0x6d6f727469736535, 0x656c656374696f6e};

struct candidate {
    struct client *client;
    mortise_election *election;
    uint32_t id;
    struct candidate *next;
};

void free_candidates(struct candidate *candidate)
{
    while (candidate) {
        struct candidate *next = candidate->next;
        free(candidate);
        candidate = next;
    }
}

/* The client's thread. */
static void post(struct candidate *candidate, enum message_kind kind, uint64_t fence)
{
    struct message *message = make_message(kind, 0);
    if (message) {
        message->id = candidate->id;
        message->fence = fence;
    }
    post_message(candidate->client, message);
}

static void on_elected(void *argument, uint64_t fence)
{
    post(argument, MESSAGE_ELECTED, fence);
}

static void on_deposed(void *argument, uint64_t fence)
{
    post(argument, MESSAGE_DEPOSED, fence);
}

/* A campaign: the argument of its callback, which frees it. Its message is made at the start. One
   that was resigned may call back after the next has begun. */
struct campaign {
    struct candidate *candidate;
    struct message *message;
};

static void on_campaigned(void *argument, int error)
{
    struct campaign *campaign = argument;
    struct message *message = campaign->message;
    message->number = error;
    if (error != MORTISE_OK)
        snprintf(message->detail, sizeof message->detail, "%s", mortise_error_detail());
    post_message(campaign->candidate->client, message);
    free(campaign);
}

static void on_leader(void *argument, const mortise_leader *leader)
{
    struct candidate *candidate = argument;
    struct message *message = make_message(MESSAGE_LEADER, leader->size);
    if (message) {
        message->id = candidate->id;
        message->fence = leader->fence;
        memcpy(message->value, leader->value, leader->size);
    }
    post_message(candidate->client, message);
}

/* newElection(client, name, value, id): the handle. */
static napi_value new_election(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    int64_t id;
    char *name = NULL;
    unsigned char *value = NULL;
    mortise_election_options options = {
        .size = sizeof options, .elected = on_elected, .deposed = on_deposed};
    if (!read_arguments(env, info, 4, &arguments) ||
        !read_client(env, arguments.values[0], &client) ||
        !read_number(env, arguments.values[3], &id))
        return NULL;
    struct candidate *candidate = calloc(1, sizeof *candidate);
    if (!candidate)
        return throw_error(env, MORTISE_ENOMEM, "");
    *candidate = (struct candidate){.client = client, .id = (uint32_t)id};
    options.argument = candidate;
    bool read = read_text(env, arguments.values[1], &name) &&
                read_bytes(env, arguments.values[2], &value, &options.value_size);
    options.value = value;
    int error = read ? mortise_election_new(client->client, name, &options, &candidate->election)
                     : MORTISE_EINVALID;
    free(name);
    free(value);
    if (error == MORTISE_OK) {
        candidate->next = client->candidates;
        client->candidates = candidate;
        return make_handle(env, candidate, &election_tag, NULL);
    }
    free(candidate);
    return read ? settle(env, error) : NULL;
}

static bool read_candidate(napi_env env, napi_callback_info info, size_t count,
                           struct argument *arguments, struct candidate **candidate)
{
    struct client *client;
    void *handle;
    if (!read_arguments(env, info, count, arguments) ||
        !read_client(env, arguments->values[0], &client) ||
        !read_handle(env, arguments->values[1], &election_tag, &handle))
        return false;
    *candidate = handle;
    return true;
}

static int start_campaign(struct candidate *candidate, int64_t timeout_ms, uint32_t id)
{
    struct campaign *campaign = malloc(sizeof *campaign);
    struct message *message = make_message(MESSAGE_CAMPAIGNED, 0);
    int error = MORTISE_ENOMEM;
    if (campaign && message) {
        message->id = id;
        *campaign = (struct campaign){candidate, message};
        error = mortise_election_campaign_async(candidate->election, deadline_of(timeout_ms),
                                                on_campaigned, campaign);
    }
    if (error != MORTISE_OK) {
        free(message);
        free(campaign);
    }
    return error;
}

/* campaign(client, election, timeoutMs, id); negative: for ever. */
static napi_value campaign(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    int64_t timeout, id;
    if (!read_candidate(env, info, 4, &arguments, &candidate) ||
        !read_number(env, arguments.values[2], &timeout) ||
        !read_number(env, arguments.values[3], &id))
        return NULL;
    napi_value value = settle(env, start_campaign(candidate, timeout, (uint32_t)id));
    look_after(candidate->client);
    return value;
}

static napi_value resign(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    if (!read_candidate(env, info, 2, &arguments, &candidate))
        return NULL;
    napi_value value = settle(env, mortise_election_resign(candidate->election));
    look_after(candidate->client);
    return value;
}

/* proclaim(client, election, value) */
static napi_value proclaim(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    unsigned char *value;
    size_t size;
    if (!read_candidate(env, info, 3, &arguments, &candidate) ||
        !read_bytes(env, arguments.values[2], &value, &size))
        return NULL;
    int error = mortise_election_proclaim(candidate->election, value, size);
    free(value);
    return settle(env, error);
}

static napi_value is_leader(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    napi_value value = NULL;
    if (read_candidate(env, info, 2, &arguments, &candidate))
        good(env,
             napi_get_boolean(env, mortise_election_is_leader(candidate->election) == 1, &value));
    return value;
}

static napi_value fence(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    return read_candidate(env, info, 2, &arguments, &candidate)
               ? make_bigint(env, mortise_election_fence(candidate->election))
               : NULL;
}

static napi_value observe(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    return read_candidate(env, info, 2, &arguments, &candidate)
               ? settle(env, mortise_election_observe(candidate->election, on_leader, candidate))
               : NULL;
}

static int run_leader(struct job *job)
{
    struct candidate *candidate = job->handle;
    job->result = malloc(sizeof(mortise_leader));
    return job->result ? mortise_election_leader(candidate->election, job->result) : MORTISE_ENOMEM;
}

static napi_value made_leader(napi_env env, struct job *job)
{
    const mortise_leader *leader = job->result;
    napi_value object = NULL, value = NULL;
    if (!good(env, napi_create_object(env, &object)) ||
        !good(env, napi_create_buffer_copy(env, leader->size, leader->value, NULL, &value)))
        return NULL;
    set_property(env, object, "fence", make_bigint(env, leader->fence));
    set_property(env, object, "value", value);
    return object;
}

static napi_value leader(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct candidate *candidate;
    if (!read_candidate(env, info, 2, &arguments, &candidate))
        return NULL;
    struct job *job = make_job(candidate->client, run_leader, made_leader);
    if (!job)
        return throw_error(env, MORTISE_ENOMEM, "");
    job->handle = candidate;
    return start_job(env, job);
}

const struct exported election_functions[] = {
    {"newElection", new_election}, {"campaign", campaign},  {"resign", resign},
    {"proclaim", proclaim},        {"isLeader", is_leader}, {"leaderFence", fence},
    {"observe", observe},          {"leader", leader},      {NULL, NULL}};
