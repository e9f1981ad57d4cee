/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h. */
#include "store.h"

#include "base/uri.h"
#include "core/store.h"
#include "store/memory/memory.h"
#include "store/stores.h"
#include "system.h"

#include <stdlib.h>
#include <string.h>

/* An event on its way. */
struct held {
    TAILQ_ENTRY(held) link;
    mrt_time due;
    struct mrt_event event;
    char detail[256];
    char value[];
};
TAILQ_HEAD(held_list, held);

struct mrt_store {
    TAILQ_ENTRY(mrt_store) link;
    struct mrt_store *inner; /* the memory store's */
    struct mrt_sink sink;
    bool later;
    bool woken; /* the inner one wants process to be called */
    int caller; /* the thread that is in a call; -1: none */
    int fd;     /* later */
    mrt_time busy_until;
    struct held_list on_the_way;
};

static TAILQ_HEAD(, mrt_store) stores;
static struct habits habits;
static struct random chance;
static mrt_time trouble;
static mrt_time stuck[THREADS_MAX];

void store_begin(uint64_t seed)
{
    random_seed(&chance, ~seed);
    TAILQ_INIT(&stores);
    memset(stuck, 0, sizeof stuck);
    trouble = 0;
    habits = (struct habits){.latency = 0};
}

void store_set_habits(const struct habits *given)
{
    habits = *given;
}

mrt_time store_trouble(void)
{
    return trouble;
}

mrt_time store_stuck(int thread)
{
    return stuck[thread];
}

/* ------------------------------------------------------------------ time in calls */

static void note_trouble(mrt_time until)
{
    if (until > trouble)
        trouble = until;
}

static void stand_still(void)
{
    mrt_time length = random_below(&chance, 5) < 4 ? 0 : random_below(&chance, habits.latency);
    if (random_chance(&chance, habits.stuck_chance)) {
        length = random_below(&chance, habits.stuck);
        note_trouble(sched_now() + length);
        sched_note("the store is stuck for %.3f ms", (double)length / 1e6);
        stuck[sched_self()] += length;
    }
    if (length > 0)
        sched_sleep("the store", length);
}

static void begin_call(struct mrt_store *store)
{
    if (store->caller >= 0)
        sched_fail("the store is called while %s calls it", sched_name(store->caller));
    store->caller = sched_self();
    sched_point();
}

static void end_call(struct mrt_store *store)
{
    store->caller = -1;
}

static bool never(const void *unused)
{
    (void)unused;
    return false;
}

/* Whether it goes on to be busy for longer than the caller has patience. */
static bool is_busy(struct mrt_store *store, mrt_time patience)
{
    mrt_time now = sched_now();
    if (store->busy_until <= now && random_chance(&chance, habits.busy_chance)) {
        store->busy_until = now + random_below(&chance, habits.busy);
        note_trouble(store->busy_until);
        sched_note("the store is busy until %.3f ms", (double)store->busy_until / 1e6);
    }
    if (store->busy_until > now)
        sched_wait("a busy store", never, NULL, mrt_time_min(store->busy_until, patience));
    return store->busy_until > sched_now();
}

/* ------------------------------------------------------------------ events */

static void deliver(void *context, const struct mrt_event *event)
{
    struct mrt_store *store = context;
    if (!store->later) {
        store->sink.deliver(store->sink.context, event);
        return;
    }
    struct held *last = TAILQ_LAST(&store->on_the_way, held_list);
    struct held *held = calloc(1, sizeof *held + event->value_size);
    if (!held)
        abort();
    held->due = sched_now() + random_below(&chance, habits.latency);
    if (last && held->due < last->due)
        held->due = last->due;
    held->event = *event;
    if (event->detail)
        held->event.detail = strncpy(held->detail, event->detail, sizeof held->detail - 1);
    if (event->value)
        held->event.value = memcpy(held->value, event->value, event->value_size);
    TAILQ_INSERT_TAIL(&store->on_the_way, held, link);
}

static void notify(void *context)
{
    struct mrt_store *store = context;
    store->woken = true;
    if (!store->later)
        store->sink.notify(store->sink.context);
}

static bool has_arrived(const void *subject)
{
    const struct mrt_store *store = subject;
    const struct held *first = TAILQ_FIRST(&store->on_the_way);
    return store->woken || (first && first->due <= sched_now());
}

mrt_time store_next(void)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_store *store;
    TAILQ_FOREACH (store, &stores, link) {
        const struct held *first = TAILQ_FIRST(&store->on_the_way);
        if (first && first->due > sched_now() && first->due < next)
            next = first->due;
    }
    return next;
}

static void deliver_arrived(struct mrt_store *store)
{
    struct held *held;
    while ((held = TAILQ_FIRST(&store->on_the_way)) && held->due <= sched_now()) {
        TAILQ_REMOVE(&store->on_the_way, held, link);
        store->sink.deliver(store->sink.context, &held->event);
        free(held);
    }
}

/* ------------------------------------------------------------------ the port */

static int open_store(const struct mrt_uri *uri, const struct mrt_store_options *options,
                      struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    store->later = strcmp(uri->scheme, "later") == 0;
    store->sink = sink;
    store->caller = store->fd = -1;
    TAILQ_INIT(&store->on_the_way);
    const struct mrt_sink own = {deliver, notify, store};
    int error = mrt_memory_store.open(uri, options, own, &store->inner);
    if (error != MORTISE_OK) {
        free(store);
        return error;
    }
    if (store->later)
        store->fd = system_descriptor(has_arrived, store);
    TAILQ_INSERT_TAIL(&stores, store, link);
    *opened = store;
    return MORTISE_OK;
}

static bool submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    begin_call(store);
    bool taken = !is_busy(store, patience);
    if (taken) {
        stand_still();
        mrt_memory_store.submit(store->inner, command, patience);
        stand_still();
    }
    end_call(store);
    return taken;
}

static int descriptor(struct mrt_store *store)
{
    return store->fd;
}

static mrt_time next(struct mrt_store *store)
{
    return mrt_memory_store.next(store->inner);
}

static void process(struct mrt_store *store, mrt_time now)
{
    begin_call(store);
    stand_still();
    store->woken = false;
    mrt_memory_store.process(store->inner, now);
    deliver_arrived(store);
    end_call(store);
}

static bool answers_may_wait(const struct mrt_store *store)
{
    (void)store;
    return random_below(&chance, 8) > 0;
}

/* A store with a lease is a server, which answers beside all else, and may be slow to. */
static bool asks_apart(const struct mrt_store *store)
{
    return mrt_memory_store.lease(store->inner) > 0;
}

static void begin_to_ask(struct mrt_store *store)
{
    if (!asks_apart(store))
        begin_call(store);
    else if (random_below(&chance, 8) == 0)
        sched_sleep("an answer", random_below(&chance, 2 * mrt_memory_store.lease(store->inner)));
    stand_still();
}

static void end_asking(struct mrt_store *store)
{
    if (!asks_apart(store))
        end_call(store);
}

static int list(struct mrt_store *store, const char *name, const char *prefix,
                mrt_listed_callback callback, void *argument)
{
    begin_to_ask(store);
    int error = mrt_memory_store.list(store->inner, name, prefix, callback, argument);
    end_asking(store);
    return error;
}

static int revoke(struct mrt_store *store, const char *name, uint64_t fence)
{
    begin_to_ask(store);
    int error = mrt_memory_store.revoke(store->inner, name, fence);
    end_asking(store);
    return error;
}

static int break_ticket(struct mrt_store *store, const char *name, uint64_t fence)
{
    begin_to_ask(store);
    int error = mrt_memory_store.break_ticket(store->inner, name, fence);
    end_asking(store);
    return error;
}

static mrt_time lease(const struct mrt_store *store)
{
    return mrt_memory_store.lease(store->inner);
}

static const char *address(const struct mrt_store *store)
{
    return mrt_memory_store.address(store->inner);
}

static void close_store(struct mrt_store *store)
{
    struct held *held;
    mrt_memory_store.close(store->inner);
    while ((held = TAILQ_FIRST(&store->on_the_way))) {
        TAILQ_REMOVE(&store->on_the_way, held, link);
        free(held);
    }
    if (store->later)
        system_close(store->fd);
    TAILQ_REMOVE(&stores, store, link);
    free(store);
}

#define COMMON                                                                                \
    .any_thread = true, .values = true, .cells = true,                                        \
    .capabilities = {.size = sizeof(mortise_capabilities),                                    \
                     .fair = 1,                                                               \
                     .exclusive_fair = 1,                                                     \
                     .fence = 1,                                                              \
                     .notify = 1,                                                             \
                     .detach = 1,                                                             \
                     .linger = 1,                                                             \
                     .lock_delay = 1},                                                        \
    .open = open_store, .submit = submit, .fd = descriptor, .next = next, .process = process, \
    .list = list, .revoke = revoke, .break_ticket = break_ticket, .lease = lease,             \
    .address = address, .asks_apart = asks_apart, .close = close_store, .abandon = close_store

static const struct mrt_store_ops inside_store = {.scheme = "inside", COMMON};
static const struct mrt_store_ops later_store = {
    .scheme = "later", .answers_may_wait = answers_may_wait, COMMON};

/* Instead of store/stores.c. */
int mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    *ops = strcmp(uri->scheme, later_store.scheme) == 0 ? &later_store : &inside_store;
    return MORTISE_OK;
}
