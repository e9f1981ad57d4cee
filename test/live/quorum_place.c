/* SPDX-License-Identifier: Apache-2.0 */
/* See quorum_place.h. */
#include "live/quorum_place.h"

#include "cmocka_all.h"
#include "core/rule.h"
#include "store/memory/memory.h"
#include "store/stores.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

unsigned place_members;
mrt_time place_soon = 60 * MRT_SECOND;
char place_uri[512];
mrt_time place_lag;
struct way ways[PLACE_MEMBERS_MAX];
struct port_client quorum, rivals[PLACE_MEMBERS_MAX];
static char names[PLACE_MEMBERS_MAX][32];
static struct mrt_id rival_tickets[PLACE_MEMBERS_MAX];

/* ------------------------------------------------------------------ the way to a member */

static unsigned ways_open; /* while the quorum is opened: how many of its members have been */
static bool opening;
static const struct mrt_command nothing;

static void way_deliver(void *context, const struct mrt_event *event)
{
    struct way *way = context;
    struct mrt_event altered = *event;
    if (way->late && event->serial != 0 && way->type == MRT_APPEND) {
        altered = way->kept;
        way->kept = *event;
        if (altered.serial == 0)
            return;
    }
    if (event->type == MRT_STARTED)
        altered.proof_lag = place_lag;
    if (event->serial == 0 && way->deaf)
        return;
    const struct mrt_event missed = {
        .type = MRT_WAKE, .session = way->session, .ticket = way->claim};
    if (event->type == MRT_RENEWED && way->misses)
        way->sink.deliver(way->sink.context, &missed);
    if (event->serial != 0 && event->serial == way->serial && way->unknown & BIT(way->type))
        altered.type = MRT_UNKNOWN;
    if (event->serial != 0 && event->serial == way->serial && way->failed & BIT(way->type)) {
        altered.type = MRT_FAILED;
        altered.error = MORTISE_EUNREACHABLE;
    }
    way->sink.deliver(way->sink.context, &altered);
}

static void way_notify(void *context)
{
    const struct way *way = context;
    way->sink.notify(way->sink.context);
}

static int way_open(const struct mrt_uri *address, const struct mrt_store_options *options,
                    struct mrt_sink sink, struct mrt_store **store)
{
    if (!opening || ways_open == PLACE_MEMBERS_MAX)
        return mrt_memory_store.open(address, options, sink, store);
    struct way *way = &ways[ways_open++];
    *way = (struct way){.sink = sink, .fd = eventfd(0, EFD_CLOEXEC)};
    const struct mrt_sink ours = {way_deliver, way_notify, way};
    int error = mrt_memory_store.open(address, options, ours, store);
    way->store = *store;
    return error;
}

static int way_fd(struct mrt_store *store)
{
    for (unsigned i = 0; i < ways_open; i++)
        if (ways[i].store == store)
            return ways[i].fd;
    return mrt_memory_store.fd(store);
}

static bool way_submit(struct mrt_store *store, const struct mrt_command *command,
                       mrt_time patience)
{
    for (unsigned i = 0; i < ways_open; i++) {
        struct way *way = &ways[i];
        if (way->store != store)
            continue;
        if (way->not_taken & BIT(command->type)) {
            way->not_taken &= ~(way->taken_next & BIT(command->type));
            return false;
        }
        way->serial = command->serial;
        way->type = command->type;
        if (command->type == MRT_START)
            way->session = command->session;
        if (command->type == MRT_APPEND)
            way->claim = command->ticket;
        way->parted += command->type == MRT_REMOVE && quorum.count == 0;
        if (way->on_its_way.serial != 0)
            mrt_memory_store.submit(store, &way->on_its_way, patience);
        way->on_its_way = way->slow && command->type == MRT_APPEND ? *command : nothing;
        if (way->on_its_way.serial != 0)
            return true;
    }
    return mrt_memory_store.submit(store, command, patience);
}

static int way_list(struct mrt_store *store, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument)
{
    for (unsigned i = 0; i < ways_open; i++)
        if (ways[i].store == store && ways[i].away)
            return MORTISE_EUNREACHABLE;
    return mrt_memory_store.list(store, name, prefix, callback, argument);
}

int __real_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops);
int __wrap_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops);

int __wrap_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops)
{
    static struct mrt_store_ops altered;
    int error = __real_mrt_store_find(of, ops);
    if (error != MORTISE_OK || *ops != &mrt_memory_store)
        return error;
    altered = mrt_memory_store;
    altered.open = way_open;
    altered.submit = way_submit;
    altered.fd = way_fd;
    altered.list = way_list;
    *ops = &altered;
    return error;
}

/* ------------------------------------------------------------------ the place */

void place_take_ways(bool take)
{
    if (take)
        ways_open = 0;
    opening = take;
}

void place_make(unsigned count, const char *answer, int lease_ms)
{
    static int place;
    char member[256];
    place_members = count;
    place++;
    snprintf(place_uri, sizeof place_uri, "redlock:");
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "quorum-%d-%u", place, i);
        snprintf(member, sizeof member, "memory:%s?lease=%dms", names[i], lease_ms);
        port_open_session(&rivals[i], member);
        size_t length = strlen(place_uri);
        snprintf(place_uri + length, sizeof place_uri - length, "%smemory:%s", i ? "," : "",
                 names[i]);
    }
    size_t length = strlen(place_uri);
    snprintf(place_uri + length, sizeof place_uri - length, "?lease=%dms%s%s", lease_ms,
             answer ? "&answer=" : "", answer ? answer : "");
}

void place_begin(void)
{
    place_take_ways(true);
    port_open_session(&quorum, place_uri);
    place_take_ways(false);
}

int place_open(unsigned count, const char *answer, int lease_ms)
{
    place_make(count, answer, lease_ms);
    place_begin();
    return 0;
}

int open_three(void **state)
{
    (void)state;
    return place_open(3, "100ms", PLACE_LEASE);
}

int open_patient(void **state)
{
    (void)state;
    return place_open(3, "10s", PLACE_LEASE);
}

int open_five(void **state)
{
    (void)state;
    return place_open(5, "100ms", PLACE_LEASE);
}

int close_place(void **state)
{
    (void)state;
    for (unsigned i = 0; i < place_members; i++) {
        mrt_memory_freeze(names[i], false);
        ways[i].not_taken = ways[i].unknown = ways[i].failed = 0;
        ways[i].deaf = ways[i].late = ways[i].slow = ways[i].misses = ways[i].away = false;
    }
    place_lag = 0;
    if (quorum.store) {
        port_stop(&quorum);
        port_close(&quorum);
    }
    for (unsigned i = 0; i < place_members; i++)
        port_close(&rivals[i]);
    while (ways_open > 0)
        close(ways[--ways_open].fd);
    return 0;
}

void occupy(unsigned member)
{
    rival_tickets[member] = port_id();
    struct mrt_event view =
        port_append_weight(&rivals[member], "q", rival_tickets[member], "exclusive", 1, 1);
    assert_int_equal(view.weight_ahead, 0);
}

void vacate(unsigned member)
{
    assert_int_equal(port_remove(&rivals[member], "q", rival_tickets[member], 0).type, MRT_REMOVED);
}

void silence(unsigned member, bool silent)
{
    mrt_memory_freeze(names[member], silent);
}

bool holds(const struct mrt_event *event)
{
    return event->type == MRT_VIEW && mrt_rule_grants(event->weight_ahead, 1, 1);
}

struct mrt_event acquire(void)
{
    return port_append(&quorum, "q", port_id());
}

enum mrt_event_type renew(void)
{
    struct mrt_command command = port_command(&quorum, MRT_RENEW);
    return port_send(&quorum, &command).type;
}

bool empties(unsigned member)
{
    mrt_time until = mrt_time_now() + place_soon;
    while (port_tickets(&rivals[member], "q") > 0 && mrt_time_now() < until)
        port_wait(&quorum, MRT_STARTED, (struct mrt_id){1, 1}, 5 * MRT_MILLISECOND, NULL);
    return port_tickets(&rivals[member], "q") == 0;
}
