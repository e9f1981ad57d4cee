/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: opening by URI, closing, and the queries that a client answers.
 *
 * Threads: any, but for mortise_close, which ends the client.
 */
#include "api/client.h"
#include "api/slot.h"

#include "base/error.h"
#include "base/name.h"
#include "base/owner.h"
#include "base/uri.h"
#include "io/policy.h"
#include "store/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET_MS 2
#define DEFAULT_BUDGET_COUNT 16
#define DEFAULT_TIMEOUT_MS 5000
#define FAIR_AFTER MRT_MILLISECOND
#define SILENCE_TOLD (700 * MRT_MILLISECOND)
#define KNOWN_FLAGS                                                                       \
    (MORTISE_FOREIGN_LOOP | MORTISE_STRICT | MORTISE_SHORT_LIVED | MORTISE_TELL_PROCESS | \
     MORTISE_SHARED_LOOP)

int64_t mortise_now_ns(void)
{
    return mrt_time_now();
}

/* `size`: of this library's structure; the caller's begins with its own. */
static int check_size(const void *given, size_t size, const char *what)
{
    size_t of_caller = sizeof of_caller;
    if (given)
        memcpy(&of_caller, given, sizeof of_caller);
    if (of_caller >= sizeof of_caller && of_caller <= size)
        return MORTISE_OK;
    return mrt_error(MORTISE_EINVALID,
                     "%s.size is %zu: set it to the structure's sizeof, here %zu at most", what,
                     of_caller, size);
}

int mrt_take_options(const void *given, void *taken, size_t size, const char *what)
{
    int error = check_size(given, size, what);
    memset(taken, 0, size);
    if (error == MORTISE_OK && given)
        memcpy(taken, given, *(const size_t *)given);
    memcpy(taken, &size, sizeof size);
    return error;
}

/* MORTISE_EINVALID if the number is less than `least`; the particulars name the field. */
static int check_least(const char *field, int64_t number, int64_t least)
{
    if (number >= least)
        return MORTISE_OK;
    return mrt_error(MORTISE_EINVALID, "mortise_client_options.%s is %lld, less than %lld", field,
                     (long long)number, (long long)least);
}

static int check_numbers(const mortise_client_options *options)
{
    int error = check_least("budget_ms", options->budget_ms, -1);
    if (error == MORTISE_OK)
        error = check_least("budget_count", options->budget_count, -1);
    return error ? error : check_least("timeout_ms", options->timeout_ms, 0);
}

/* The caller's options, or the defaults. */
static int read_options(const mortise_client_options *options, mortise_client_options *chosen)
{
    int error = mrt_take_options(options, chosen, sizeof *chosen, "mortise_client_options");
    if (error != MORTISE_OK)
        return error;
    if (chosen->flags & ~(uint32_t)KNOWN_FLAGS)
        return mrt_error(MORTISE_EINVALID, "unknown flags 0x%x in mortise_client_options",
                         chosen->flags & ~(uint32_t)KNOWN_FLAGS);
    if (chosen->flags & MORTISE_FOREIGN_LOOP && chosen->flags & MORTISE_SHARED_LOOP)
        return mrt_error(MORTISE_EINVALID, "MORTISE_FOREIGN_LOOP and MORTISE_SHARED_LOOP exclude "
                                           "each other");
    if ((error = check_numbers(chosen)) != MORTISE_OK)
        return error;
    if (chosen->give_up_ms < 0 || chosen->give_up_ms > MRT_GIVE_UP_MAX_MS)
        return mrt_error(MORTISE_EINVALID,
                         "mortise_client_options.give_up_ms is negative, or more than an hour");
    if (!chosen->label)
        chosen->label = "";
    return mrt_label_check(chosen->label);
}

static int make_config(const mortise_client_options *options, void *host,
                       struct mrt_engine_config *config)
{
    bool never = options->budget_ms == -1 || options->budget_count == -1;
    *config = (struct mrt_engine_config){
        .strict = options->flags & MORTISE_STRICT,
        .fair_after = FAIR_AFTER,
        .budget =
            never ? 0
                  : mrt_time_from_ms(options->budget_ms ? options->budget_ms : DEFAULT_BUDGET_MS),
        .budget_count =
            options->budget_count > 0 ? (uint32_t)options->budget_count : DEFAULT_BUDGET_COUNT,
        .margin_min = MRT_MARGIN_MIN,
        .give_up = mrt_time_from_ms(options->give_up_ms),
        .notice = options->contact ? SILENCE_TOLD : 0,
        .host = host,
    };
    mrt_slot_configure(config);
    if (!mrt_id_random(&config->seed))
        return mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    return MORTISE_OK;
}

static int set_prefix(mortise_client *client, const struct mrt_uri *uri)
{
    int error = mrt_namespace_prefix(mrt_uri_parameter(uri, "namespace"), client->prefix);
    client->prefix_length = strlen(client->prefix);
    return error;
}

static int open_store(mortise_client *client, const struct mrt_uri *uri, const char *const *members,
                      size_t member_count, const mortise_client_options *options)
{
    const struct mrt_store_ops *ops;
    int error = mrt_store_find(uri, &ops);
    if (error == MORTISE_OK)
        error = set_prefix(client, uri);
    if (error != MORTISE_OK)
        return error;
    struct mrt_engine_config config;
    error = make_config(options, client, &config);
    if (error == MORTISE_OK)
        error = mrt_policy_read(uri, &config);
    if (error != MORTISE_OK)
        return error;
    client->timeout =
        mrt_time_from_ms(options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS);
    char owner[MRT_OWNER_SIZE];
    mrt_owner_describe(options->label, options->flags & MORTISE_TELL_PROCESS, owner);
    struct mrt_store_options store_options = {
        .label = owner,
        .short_lived = options->flags & MORTISE_SHORT_LIVED,
        .timeout = client->timeout,
        .log = options->log,
        .log_argument = options->log_argument,
        .members = members,
        .member_count = member_count,
        .find = mrt_store_find,
    };
    error = mrt_driver_open(&client->driver, &config, ops, uri, &store_options,
                            options->flags & MORTISE_FOREIGN_LOOP, options->contact,
                            options->contact_argument);
    client->driver.prefix_length = client->prefix_length;
    if (error == MORTISE_OK && options->flags & MORTISE_SHARED_LOOP)
        mrt_reader_share(&client->driver);
    return error;
}

/* It may hold a password. */
static void forget_uri(struct mrt_uri *uri)
{
    if (uri)
        explicit_bzero(uri, sizeof *uri);
    free(uri);
}

int mortise_init(const char *uri, mortise_text_callback print, void *argument)
{
    struct mrt_uri *parsed = malloc(sizeof *parsed);
    const struct mrt_store_ops *ops = NULL;
    mrt_error_clear();
    if (!parsed)
        return MORTISE_ENOMEM;
    int error = mrt_uri_parse(mrt_uri_choose(uri), parsed);
    if (error == MORTISE_OK)
        error = mrt_store_find(parsed, &ops);
    if (error == MORTISE_OK && ops->init)
        error = ops->init(parsed, print, argument);
    forget_uri(parsed);
    return error;
}

/* A client on the store of this URI, and of these members if it is a quorum. */
static int open_client(const char *uri, const char *const *members, size_t count,
                       const mortise_client_options *options, mortise_client **result)
{
    mortise_client_options chosen;
    int error = read_options(options, &chosen);
    if (error != MORTISE_OK)
        return error;
    struct mrt_uri *parsed = malloc(sizeof *parsed);
    mortise_client *client = calloc(1, sizeof *client);
    if (!parsed || !client) {
        error = MORTISE_ENOMEM;
    } else {
        TAILQ_INIT(&client->locks);
        TAILQ_INIT(&client->participants);
        error = mrt_uri_parse(uri, parsed);
        if (error == MORTISE_OK)
            error = open_store(client, parsed, members, count, &chosen);
    }
    forget_uri(parsed);
    if (error != MORTISE_OK)
        free(client);
    else
        *result = client;
    return error;
}

int mortise_open(const char *uri, const mortise_client_options *options, mortise_client **result)
{
    mrt_error_clear();
    if (!result)
        return mrt_error(MORTISE_EINVALID, "mortise_open needs a place for the client");
    return open_client(mrt_uri_choose(uri), NULL, 0, options, result);
}

/* The members' namespace, as it stands in their URIs; NULL: they do not agree on one. */
static const char *common_namespace(const char *const *uris, size_t count,
                                    char namespace[MRT_URI_MAX])
{
    static const char key[] = "namespace=";
    for (size_t i = 0; i < count; i++) {
        const char *at = strchr(uris[i], '?');
        while (at && strncmp(at + 1, key, sizeof key - 1) != 0)
            at = strchr(at + 1, '&');
        at = at ? at + 1 : "";
        size_t length = strcspn(at, "&");
        if (i > 0 && (strlen(namespace) != length || strncmp(namespace, at, length) != 0))
            return NULL;
        snprintf(namespace, MRT_URI_MAX, "%.*s", (int)length, at);
    }
    return namespace;
}

int mortise_open_quorum(const char *const *uris, size_t count, int32_t answer_ms,
                        const mortise_client_options *options, mortise_client **result)
{
    char namespace[MRT_URI_MAX], answer[32] = "", uri[MRT_URI_MAX + 64];
    mrt_error_clear();
    if (!result || !uris || count < 1 || answer_ms < 0)
        return mrt_error(MORTISE_EINVALID,
                         "mortise_open_quorum needs members, a time and a place for the client");
    for (size_t i = 0; i < count; i++)
        if (!uris[i] || strlen(uris[i]) >= MRT_URI_MAX)
            return mrt_error(MORTISE_EURI, "member %zu of a quorum has no URI, or too long a one",
                             i + 1);
    if (!common_namespace(uris, count, namespace))
        return mrt_error(MORTISE_EURI, "the members of a quorum need one namespace");
    if (answer_ms > 0)
        snprintf(answer, sizeof answer, "answer=%dms", answer_ms);
    snprintf(uri, sizeof uri, "redlock:%s%s%s%s", *answer || *namespace ? "?" : "", answer,
             *answer && *namespace ? "&" : "", namespace);
    return open_client(uri, uris, count, options, result);
}

int mrt_client_full_name(const mortise_client *client, const char *name,
                         char full[MRT_FULL_NAME_SIZE])
{
    int error = mrt_name_check(name);
    if (error != MORTISE_OK)
        return error;
    memcpy(full, client->prefix, client->prefix_length);
    memcpy(full + client->prefix_length, name, strlen(name) + 1);
    return MORTISE_OK;
}

int mrt_client_ask(mortise_client *client, const struct mrt_command *wanted, mrt_time deadline,
                   struct mrt_answer *answer)
{
    struct mrt_driver *driver = &client->driver;
    struct mrt_call wait = {.kind = MRT_CALL_BLOCKING, .waiter.deadline = MRT_TIME_NEVER};
    mrt_driver_enter(driver);
    mrt_engine_request(driver->engine, wanted, answer, &wait.waiter, mrt_time_now());
    mrt_driver_wait(driver, &wait, deadline, MORTISE_ETIMEOUT);
    bool is_away =
        wait.waiter.error == MORTISE_ETIMEOUT && mrt_engine_is_unreachable(driver->engine);
    int error = mrt_driver_error(driver, is_away ? MORTISE_EUNREACHABLE : wait.waiter.error);
    mrt_driver_leave(driver, deadline);
    return error;
}

static void end_participants(mortise_client *client)
{
    struct mrt_participant *participant;
    mrt_driver_enter(&client->driver);
    TAILQ_FOREACH (participant, &client->participants, link)
        participant->end(participant);
    mrt_driver_leave(&client->driver, MRT_TIME_NEVER);
}

static void free_client(mortise_client *client)
{
    mortise_lock *lock, *next;
    struct mrt_participant *participant, *follower;
    TAILQ_FOREACH_SAFE (lock, &client->locks, link, next)
        free(lock);
    TAILQ_FOREACH_SAFE (participant, &client->participants, link, follower)
        participant->free(participant);
    free(client);
}

int mortise_close(mortise_client *client)
{
    if (!client)
        return MORTISE_OK;
    int error = mrt_driver_check(&client->driver, true);
    if (error == MORTISE_EDEADLOCK)
        return error;
    if (error == MORTISE_EFORKED) {
        mrt_driver_abandon(&client->driver);
        error = MORTISE_OK;
    } else {
        end_participants(client);
        error = mrt_driver_close(&client->driver, mrt_time_now() + client->timeout);
    }
    free_client(client);
    return error;
}

int mrt_client_check(const mortise_client *client, bool blocking)
{
    if (client)
        return mrt_driver_check(&client->driver, blocking);
    mrt_error_clear();
    return mrt_error(MORTISE_EINVALID, "the client is NULL");
}

const char *mortise_url(const mortise_client *client)
{
    if (!client)
        return NULL;
    return client->driver.ops->address(client->driver.store);
}

mrt_time mrt_client_lease(const mortise_client *client)
{
    const struct mrt_store_ops *ops = client->driver.ops;
    return ops->lease ? ops->lease(client->driver.store)
                      : mrt_time_from_ms(ops->capabilities.lease_ms);
}

int mortise_get_capabilities(const mortise_client *client, mortise_capabilities *capabilities)
{
    int error = mrt_client_check(client, false);
    if (error != MORTISE_OK)
        return error;
    if (!capabilities)
        return mrt_error(MORTISE_EINVALID, "capabilities must not be NULL");
    error = check_size(capabilities, sizeof *capabilities, "mortise_capabilities");
    if (error != MORTISE_OK)
        return error;
    size_t size = capabilities->size;
    mortise_capabilities all = client->driver.ops->capabilities;
    const struct mrt_driver *driver = &client->driver;
    mrt_time lease = mrt_client_lease(client);
    mrt_time lag = driver->ops->lag ? driver->ops->lag(driver->store) : 0;
    if (driver->ops->adapt)
        driver->ops->adapt(driver->store, &all);
    all.lease_ms = lease / MRT_MILLISECOND;
    all.lease_left_ms = mrt_lease_left(lease, lag) / MRT_MILLISECOND;
    all.size = size;
    memcpy(capabilities, &all, size);
    return MORTISE_OK;
}

int mortise_get_stats(mortise_client *client, mortise_stats *stats)
{
    int error = mrt_client_check(client, false);
    if (error != MORTISE_OK)
        return error;
    if (!stats)
        return mrt_error(MORTISE_EINVALID, "stats must not be NULL");
    error = check_size(stats, sizeof *stats, "mortise_stats");
    if (error != MORTISE_OK)
        return error;
    mrt_driver_enter(&client->driver);
    const struct mrt_engine_counters *counters = mrt_engine_counters(client->driver.engine);
    mortise_stats all = {
        .size = stats->size,
        .acquisitions = counters->acquisitions,
        .nested = counters->nested,
        .handovers = counters->handovers,
        .commands = counters->commands,
        .losses = counters->losses,
    };
    struct mrt_traffic traffic = {.under_way = 0};
    if (client->driver.ops->traffic)
        client->driver.ops->traffic(client->driver.store, &traffic);
    all.requests = traffic.requests;
    all.round_trips = traffic.round_trips;
    mrt_driver_leave_quietly(&client->driver);
    memcpy(stats, &all, all.size);
    return MORTISE_OK;
}
