/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands are answered by the time port_send returns; whatever else the store tells is
 * kept until port_wait asks for it. Identities are one random start and a count.
 */
#include "conform/port_client.h"

#include "base/uri.h"
#include "cmocka_all.h"
#include "core/rule.h"
#include "store/stores.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char place[512];
static char directory[64];

const char *port_place_open(const char *given)
{
    if (strcmp(given, "sqlite:") == 0) {
        snprintf(directory, sizeof directory, "/tmp/mortise-conform-XXXXXX");
        if (!mkdtemp(directory))
            return NULL;
        snprintf(place, sizeof place, "sqlite://%s/locks.db", directory);
    } else if (strcmp(given, "memory:") == 0) {
        snprintf(place, sizeof place, "memory:conform-%d", getpid());
    } else {
        snprintf(place, sizeof place, "%s", given);
    }
    return mortise_init(place, NULL, NULL) == MORTISE_OK ? place : NULL;
}

void port_place_close(void)
{
    const char *const ends[] = {
        "-sessions/swept", "-sessions/observed", "-sessions", "-wal", "-shm", "", NULL};
    char path[128];
    for (size_t i = 0; directory[0] && ends[i]; i++) {
        snprintf(path, sizeof path, "%s/locks.db%s", directory, ends[i]);
        if (unlink(path) < 0)
            rmdir(path);
    }
    if (directory[0])
        rmdir(directory);
}

#define PORT_CLIENTS_MAX 16
static struct port_client *open_clients[PORT_CLIENTS_MAX]; /* by port_open_session */

struct mrt_id port_id(void)
{
    static struct mrt_id last;
    if (mrt_id_none(last))
        assert_true(mrt_id_random(&last));
    last.low++;
    return last;
}

static void deliver(void *context, const struct mrt_event *event)
{
    struct port_client *client = context;
    assert_true(client->count < PORT_EVENTS_MAX);
    if (event->type == MRT_STARTED && event->lease > 0) {
        client->lease = event->lease;
        client->renewed = mrt_time_now();
    }
    if (event->serial && event->serial == client->renewal) {
        client->renewal = 0;
        return;
    }
    client->events[client->count] = *event;
    client->events[client->count].value = NULL;
    client->events[client->count++].detail = NULL;
    if (event->type == MRT_HOLDER || event->type == MRT_CELL) {
        assert_true(event->value_size < sizeof client->value);
        memcpy(client->value, event->value_size ? event->value : "", event->value_size);
        client->value[event->value_size] = '\0';
    }
    if (event->detail)
        snprintf(client->detail, sizeof client->detail, "%s", event->detail);
}

static void ignore_notify(void *context)
{
    (void)context;
}

int port_try_open(struct port_client *client, const char *uri, const char *label)
{
    static struct mrt_uri parsed;
    memset(client, 0, sizeof *client);
    int error = mrt_uri_parse(uri, &parsed);
    if (error)
        return error;
    const struct mrt_store_options options = {
        .label = label, .timeout = 10 * MRT_SECOND, .find = mrt_store_find};
    const struct mrt_sink sink = {deliver, ignore_notify, client};
    error = mrt_store_find(&parsed, &client->ops);
    if (error)
        return error;
    return client->ops->open(&parsed, &options, sink, &client->store);
}

void port_open(struct port_client *client, const char *uri, const char *label)
{
    int error = port_try_open(client, uri, label);
    if (error)
        fail_msg("open %s: %s: %s", uri, mortise_error_text(error), mortise_error_detail());
}

void port_open_session(struct port_client *client, const char *uri)
{
    port_open(client, uri, "test");
    client->session = port_id();
    for (size_t i = 0; i < PORT_CLIENTS_MAX; i++)
        if (!open_clients[i]) {
            open_clients[i] = client;
            break;
        }
    assert_int_equal(port_start(client).type, MRT_STARTED);
}

void port_close(struct port_client *client)
{
    for (size_t i = 0; i < PORT_CLIENTS_MAX; i++)
        if (open_clients[i] == client)
            open_clients[i] = NULL;
    client->ops->close(client->store);
    memset(client, 0, sizeof *client);
}

const char *port_kind = "mutex";

static bool is_claim(const char *kind)
{
    return strcmp(kind, "exclusive") == 0;
}

struct mrt_command port_command(struct port_client *client, enum mrt_command_type type)
{
    return (struct mrt_command){.type = type,
                                .serial = ++client->serial,
                                .session = client->session,
                                .claim = is_claim(port_kind)};
}

static void take(struct port_client *client, size_t index)
{
    client->count--;
    memmove(&client->events[index], &client->events[index + 1],
            (client->count - index) * sizeof client->events[0]);
}

/* Where a store wants signs of life, sends them for all, as engines do. */
static void keep_alive(mrt_time now)
{
    for (size_t i = 0; i < PORT_CLIENTS_MAX; i++) {
        struct port_client *client = open_clients[i];
        if (!client || client->lease == 0)
            continue;
        if (client->renewal)
            client->ops->process(client->store, now);
        if (client->renewal || now < client->renewed + client->lease / 3)
            continue;
        struct mrt_command command = port_command(client, MRT_RENEW);
        client->renewal = command.serial;
        client->renewed = now;
        client->ops->submit(client->store, &command, now);
    }
}

/* Lets the store work for a moment, at most until `until`. */
static void work(struct port_client *client, mrt_time until)
{
    mrt_time now = mrt_time_now();
    keep_alive(now);
    mrt_time wait = mrt_time_min(until, client->ops->next(client->store)) - now;
    struct pollfd poller = {.fd = client->ops->fd(client->store), .events = POLLIN};
    /* A store without a descriptor asks by notify; here it is simply called often. */
    mrt_time longest = poller.fd < 0 ? MRT_MILLISECOND : 50 * MRT_MILLISECOND;
    wait = wait < 0 ? 0 : mrt_time_min(wait, longest);
    const struct timespec timeout = {.tv_nsec = wait};
    ppoll(&poller, poller.fd < 0 ? 0 : 1, &timeout, NULL);
    client->ops->process(client->store, mrt_time_now());
}

struct mrt_event port_send(struct port_client *client, const struct mrt_command *command)
{
    assert_true(client->ops->submit(client->store, command, mrt_time_now() + 20 * MRT_SECOND));
    return port_answer(client, command->serial);
}

struct mrt_event port_answer(struct port_client *client, uint64_t serial)
{
    mrt_time until = mrt_time_now() + 20 * MRT_SECOND;
    for (;;) {
        for (size_t i = 0; i < client->count; i++) {
            if (client->events[i].serial != serial)
                continue;
            struct mrt_event event = client->events[i];
            take(client, i);
            return event;
        }
        assert_true(mrt_time_now() < until);
        work(client, until);
    }
}

struct mrt_event port_start(struct port_client *client)
{
    struct mrt_command command = port_command(client, MRT_START);
    return port_send(client, &command);
}

struct mrt_event port_stop(struct port_client *client)
{
    struct mrt_command command = port_command(client, MRT_STOP);
    return port_send(client, &command);
}

struct mrt_event port_append_weight(struct port_client *client, const char *queue,
                                    struct mrt_id ticket, const char *kind, uint64_t capacity,
                                    uint64_t weight)
{
    struct mrt_command command = port_command(client, MRT_APPEND);
    command.ticket = ticket;
    command.queue = queue;
    command.kind = kind;
    command.claim = is_claim(kind);
    command.capacity = capacity;
    command.weight = weight;
    return port_send(client, &command);
}

struct mrt_event port_append(struct port_client *client, const char *queue, struct mrt_id ticket)
{
    return port_append_weight(client, queue, ticket, port_kind, 1, 1);
}

struct mrt_command port_append_command(struct port_client *client, const char *queue)
{
    struct mrt_command command = port_command(client, MRT_APPEND);
    command.ticket = port_id();
    command.queue = queue;
    command.kind = port_kind;
    command.capacity = command.weight = 1;
    return command;
}

struct mrt_event port_try(struct port_client *client, const char *queue, struct mrt_id ticket)
{
    struct mrt_command command = port_append_command(client, queue);
    command.ticket = ticket;
    command.try_only = true;
    return port_send(client, &command);
}

struct mrt_event port_refresh(struct port_client *client, const char *queue,
                              const struct mrt_event *view)
{
    struct mrt_command command = port_command(client, MRT_REFRESH);
    command.ticket = view->ticket;
    command.fence = view->fence;
    command.queue = queue;
    return port_send(client, &command);
}

struct mrt_event port_lighten(struct port_client *client, const char *queue,
                              const struct mrt_event *view, uint64_t weight)
{
    struct mrt_command command = port_command(client, MRT_LIGHTEN);
    command.ticket = view->ticket;
    command.fence = view->fence;
    command.queue = queue;
    command.weight = weight;
    return port_send(client, &command);
}

struct mrt_event port_remove(struct port_client *client, const char *queue, struct mrt_id ticket,
                             uint64_t fence)
{
    struct mrt_command command = port_command(client, MRT_REMOVE);
    command.ticket = ticket;
    command.fence = fence;
    command.queue = queue;
    return port_send(client, &command);
}

struct mrt_event port_append_value(struct port_client *client, const char *queue, const char *value)
{
    struct mrt_command command = port_command(client, MRT_APPEND);
    command.ticket = port_id();
    command.queue = queue;
    command.kind = "election";
    command.capacity = command.weight = 1;
    command.value = value;
    command.value_size = strlen(value);
    return port_send(client, &command);
}

struct mrt_event port_set_value(struct port_client *client, const char *queue,
                                const struct mrt_event *view, const char *value)
{
    struct mrt_command command = port_command(client, MRT_SET_VALUE);
    command.ticket = view->ticket;
    command.fence = view->fence;
    command.queue = queue;
    command.value = value;
    command.value_size = strlen(value);
    return port_send(client, &command);
}

struct mrt_event port_observe(struct port_client *client, const char *queue, struct mrt_id id)
{
    struct mrt_command command = port_command(client, MRT_OBSERVE);
    command.ticket = id;
    command.queue = queue;
    command.once = mrt_id_none(id);
    if (command.once)
        command.ticket = port_id();
    return port_send(client, &command);
}

struct mrt_event port_cell_get(struct port_client *client, const char *name)
{
    struct mrt_command command = port_command(client, MRT_CELL_GET);
    command.ticket = port_id();
    command.queue = name;
    return port_send(client, &command);
}

struct mrt_command port_cell_command(struct port_client *client, const char *name, uint64_t version,
                                     uint64_t fence, const char *value)
{
    struct mrt_command command = port_command(client, MRT_CELL_SET);
    command.ticket = port_id();
    command.queue = name;
    command.version = version;
    command.fence = fence;
    command.value = value;
    command.value_size = value ? strlen(value) : 0;
    return command;
}

struct mrt_event port_cell_set(struct port_client *client, const char *name, uint64_t version,
                               uint64_t fence, const char *value)
{
    struct mrt_command command = port_cell_command(client, name, version, fence, value);
    return port_send(client, &command);
}

bool port_wait(struct port_client *client, enum mrt_event_type type, struct mrt_id ticket,
               mrt_time timeout, struct mrt_event *event)
{
    mrt_time until = mrt_time_now() + timeout;
    for (;;) {
        for (size_t i = 0; i < client->count; i++) {
            const struct mrt_event *found = &client->events[i];
            if (found->type != type || found->serial != 0 ||
                (!mrt_id_none(ticket) && !mrt_id_none(found->ticket) &&
                 !mrt_id_equal(found->ticket, ticket)))
                continue;
            if (event)
                *event = *found;
            take(client, i);
            return true;
        }
        if (mrt_time_now() >= until)
            return false;
        work(client, until);
    }
}

bool port_wait_told(struct port_client *client, struct mrt_id ticket, mrt_time timeout)
{
    mrt_time until = mrt_time_now() + timeout;
    for (;;) {
        if (port_wait(client, MRT_WAKE, ticket, 0, NULL) ||
            port_wait(client, MRT_VIEW, ticket, 0, NULL))
            return true;
        if (mrt_time_now() >= until)
            return false;
        work(client, until);
    }
}

struct mrt_event port_wait_ahead(struct port_client *client, const char *queue,
                                 struct mrt_event view, uint64_t weight_ahead, mrt_time timeout)
{
    for (mrt_time until = mrt_time_now() + timeout;;) {
        view = port_refresh(client, queue, &view);
        assert_int_equal(view.type, MRT_VIEW);
        if (view.weight_ahead == weight_ahead)
            return view;
        if (mrt_time_now() >= until)
            fail_msg("%s: %llu ahead, not %llu", queue, (unsigned long long)view.weight_ahead,
                     (unsigned long long)weight_ahead);
        work(client, mrt_time_now() + MRT_MILLISECOND);
    }
}

mrt_time port_wait_granted(struct port_client *client, const char *queue, struct mrt_event view,
                           uint64_t weight, uint64_t capacity, mrt_time timeout)
{
    mrt_time began = mrt_time_now();
    for (;;) {
        view = port_refresh(client, queue, &view); /* an earlier wait may have taken the wake */
        assert_int_equal(view.type, MRT_VIEW);
        if (mrt_rule_grants(view.weight_ahead, weight, capacity))
            return mrt_time_now() - began;
        if (mrt_time_now() - began > timeout)
            fail_msg("%s was not granted in %lld ms", queue,
                     (long long)(timeout / MRT_MILLISECOND));
        assert_true(view.recheck > 0);
        port_wait_told(client, view.ticket, view.recheck);
    }
}

static int count_entry(void *argument, const struct mrt_listed *row)
{
    (void)row;
    ++*(int *)argument;
    return 0;
}

int port_list(struct port_client *client, const char *queue, mrt_listed_callback callback,
              int *count)
{
    int error;
    mrt_time until = mrt_time_now() + 60 * MRT_SECOND;
    do {
        *count = 0;
        keep_alive(mrt_time_now());
        error = client->ops->list(client->store, queue, NULL, callback, count);
    } while (mortise_error_kind_of(error) == MORTISE_KIND_RETRY && mrt_time_now() < until);
    return error;
}

int port_tickets(struct port_client *client, const char *queue)
{
    int count;
    assert_int_equal(port_list(client, queue, count_entry, &count), MORTISE_OK);
    return count;
}
