/*
 * A thread that acquires several locks at once: api/multi.c as it ships, on a stack of its own.
 *
 * What that calls of the library is answered here, as api/lock.c, api/hold.c and io/driver.c do
 * it for the real ones: a wait lets the world go on until the engine has settled it, or its time
 * is up. Whatever reaches into the world is done on the world's own stack (on_world), so that
 * a failure can leave from there, and a client may die meanwhile. What a dead one's thread was
 * doing is brought to its end without any effect, for it has memory of its own to free.
 *
 * A lock is its thread's from the moment in which the engine grants it, as any other, so all
 * invariants hold for it. And besides: who waits holds nothing behind what he waits for; who got
 * all has each of them once; who did not has none.
 *
 * Threads: none. One call runs at a time, and the others stand still in a wait.
 */
#include "world.h"

#include "api/client.h"
#include "core/defect.h"

#include <string.h>
#include <ucontext.h>

#define STACK_SIZE 65536

/* An acquire of one lock of a call. */
struct part {
    struct mrt_wait *wait; /* NULL: not under way */
    bool noted;            /* its end has been seen */
    uint64_t order;        /* when it queued, to compare */
};

struct multi {
    struct actor *actor;
    bool runs, inside, dead, cancelled; /* inside: it has been in the client */
    ucontext_t context, back;
    void (*asked)(struct multi *multi, void *argument); /* of the world */
    void *argument;
    mortise_client client;
    mortise_lock locks[GRIPS_MAX];
    int queues[GRIPS_MAX];
    struct part parts[GRIPS_MAX];
    size_t count;
    const struct part *waits_for;
    int64_t timeout_ms;
    mrt_time deadline;
    mortise_hold holds[GRIPS_MAX];
    int result;
};

/* Not in the world, which is cleared for each seed. */
static struct multi multis[CLIENTS_MAX][ACTORS_MAX];
static char stacks[CLIENTS_MAX][ACTORS_MAX][STACK_SIZE];
static struct multi *running; /* NULL: the world does */

static struct multi *multi_of(const struct actor *actor)
{
    return &multis[actor->client->index][actor->index];
}

const struct client *multi_client(void)
{
    return running ? running->actor->client : NULL;
}

/* ------------------------------------------------------------- the two stacks */

/* Goes on with a call until it waits or has ended. */
static void finished(struct multi *multi);

static void resume(struct multi *multi)
{
    struct multi *before = running;
    for (;;) {
        running = multi;
        swapcontext(&multi->back, &multi->context);
        running = before;
        if (!multi->asked)
            break;
        void (*asked)(struct multi *, void *) = multi->asked;
        multi->asked = NULL;
        asked(multi, multi->argument);
        if (!multi->runs)
            return; /* its client has died of that */
    }
    if (!multi->runs && !multi->dead)
        finished(multi);
}

static void leave_to_world(struct multi *multi)
{
    swapcontext(&multi->context, &multi->back);
}

/* Has something done by the world, unless the client is dead. */
static void on_world(void (*asked)(struct multi *multi, void *argument), void *argument)
{
    struct multi *multi = running;
    if (multi->dead)
        return;
    multi->asked = asked;
    multi->argument = argument;
    leave_to_world(multi);
}

static void body(void)
{
    struct multi *multi = running;
    mortise_lock *locks[GRIPS_MAX];
    for (size_t i = 0; i < multi->count; i++)
        locks[i] = &multi->locks[i];
    multi->result = mortise_acquire_all(locks, multi->count, multi->timeout_ms, multi->holds);
    multi->runs = false;
}

static void start(struct multi *multi)
{
    const struct actor *actor = multi->actor;
    getcontext(&multi->context);
    multi->context.uc_stack.ss_sp = stacks[actor->client->index][actor->index];
    multi->context.uc_stack.ss_size = STACK_SIZE;
    multi->context.uc_link = &multi->back;
    makecontext(&multi->context, body, 0);
    multi->runs = true;
    resume(multi);
}

/* ------------------------------------------------------------- what has ended */

static void note(struct multi *multi, int kind, const char *what, int queue, int64_t a, int64_t b)
{
    const struct actor *actor = multi->actor;
    trace_note(actor->client->world, kind, actor->client->index, queue, what, actor->index, a, b);
}

/* Whether its thread has the lock already, and may acquire it again. */
static bool is_own(const struct actor *actor, int queue, uint64_t owner)
{
    for (int g = 0; g < GRIPS_MAX; g++)
        if (owner != 0 && actor->grips[g].hold && actor->grips[g].queue == queue &&
            actor->grips[g].owner == owner)
            return true;
    return false;
}

static void check_part(struct multi *multi, const struct mrt_waiter *waiter, int error)
{
    struct actor *actor = multi->actor;
    bool timed = error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED;
    bool allowed = (error == MORTISE_EBUSY && waiter->try_only) ||
                   (error == MORTISE_ECANCELLED && multi->cancelled) ||
                   (error == MORTISE_ELOST && actor->nested) ||
                   (timed && (waiter->try_only || client_now(actor->client) >= multi->deadline));
    if (!allowed && !actor_may_fail(actor, error, waiter->try_only))
        check_fail(actor->client->world, actor->client->index, actor->queue,
                   "an acquire of several ended with %s", mortise_error_name(error));
}

static void note_end(struct multi *multi, size_t number)
{
    struct part *part = &multi->parts[number];
    struct actor *actor = multi->actor;
    const struct mrt_waiter *waiter = &part->wait->waiter;
    int error = waiter->error;
    part->noted = true;
    actor->queue = multi->queues[number];
    actor->order = part->order;
    actor->nested = is_own(actor, actor->queue, waiter->owner);
    actor->refused = false;
    note(multi, TRACE_DONE, mortise_error_name(error), actor->queue, error,
         waiter->hold ? (int64_t)waiter->hold->fence : 0);
    if (error == MORTISE_OK)
        actor_granted(actor->client->world, actor, waiter);
    else
        check_part(multi, waiter, error);
}

/* What the engine has done at once, and does not tell. */
static void note_ends(struct multi *multi)
{
    for (size_t i = 0; i < multi->count; i++) {
        const struct part *part = &multi->parts[i];
        if (part->wait && !part->noted && part->wait->waiter.state == MRT_WAITER_DONE &&
            !part->wait->waiter.settled)
            note_end(multi, i);
    }
}

static bool find_part(struct client *client, const struct mrt_waiter *waiter, struct multi **multi,
                      size_t *number)
{
    for (int a = 0; a < client->world->drawn.actors; a++) {
        *multi = &multis[client->index][a];
        for (*number = 0; (*multi)->runs && *number < (*multi)->count; ++*number) {
            const struct part *part = &(*multi)->parts[*number];
            if (part->wait && &part->wait->waiter == waiter)
                return true;
        }
    }
    return false;
}

bool multi_settled(struct world *world, struct client *client, struct mrt_waiter *waiter)
{
    struct multi *multi;
    size_t number;
    if (!find_part(client, waiter, &multi, &number))
        return false;
    if (waiter->state == MRT_WAITER_DONE)
        note_end(multi, number);
    else
        note(multi, TRACE_WOKEN, NULL, multi->queues[number], 0, 0);
    if (multi->waits_for == &multi->parts[number])
        actor_step_in(world, multi->actor, world->profile.reaction_us);
    return true;
}

/* All of them once, or none. A close has ended all, whoever has been told what. */
static void check_result(const struct multi *multi)
{
    const struct actor *actor = multi->actor;
    struct world *world = actor->client->world;
    bool got = multi->result == MORTISE_OK;
    uint32_t had = 0;
    if (actor->client->closing)
        return;
    for (int g = 0; g < GRIPS_MAX; g++)
        had += actor->grips[g].hold ? actor->grips[g].count : 0;
    if (had != (got ? multi->count : 0))
        check_fail(world, actor->client->index, actor->queue,
                   "%u locks are held after an acquire of %zu ended with %s", had, multi->count,
                   mortise_error_name(multi->result));
    for (size_t i = 0; got && i < multi->count; i++) {
        const struct mrt_hold *hold = multi->holds[i].slot;
        if (!mrt_hold_live(hold, multi->holds[i].generation) ||
            hold->queue != multi->locks[i].queue || hold->weight < multi->locks[i].weight)
            check_fail(world, actor->client->index, multi->queues[i],
                       "an acquire of several gave a hold that is not one");
    }
}

static void finished(struct multi *multi)
{
    struct actor *actor = multi->actor;
    struct world *world = actor->client->world;
    const struct profile *p = &world->profile;
    note(multi, TRACE_DONE, "all", NO_QUEUE, multi->result, 0);
    check_result(multi);
    for (size_t i = 0; i < multi->count; i++)
        mrt_queue_put(multi->locks[i].queue);
    world_cancel(world, &actor->giveup);
    actor->state = ACTOR_IDLE;
    actor_step_in(world, actor, multi->result == MORTISE_OK ? p->hold_us : p->think_us);
    client_pump(world, actor->client);
}

/* ------------------------------------------------------------- what the library would do */

const char *mortise_url(const mortise_client *client)
{
    (void)client;
    return "sim:";
}

const char *mortise_lock_name(const mortise_lock *lock)
{
    return mrt_queue_name(lock->queue);
}

uint64_t mrt_lock_owner(const mortise_lock *lock)
{
    return lock->unowned ? 0 : lock->owner;
}

int mrt_driver_check(const struct mrt_driver *driver, bool blocking)
{
    (void)driver, (void)blocking;
    return MORTISE_OK;
}

int mrt_driver_error(const struct mrt_driver *driver, int error)
{
    (void)driver;
    return error;
}

static void sleep_a_while(struct multi *multi, void *unused)
{
    struct world *world = multi->actor->client->world;
    (void)unused;
    actor_step_in(world, multi->actor, world->profile.reaction_us);
}

/* Between any two calls other threads may run; the first is what a close must not come before. */
static void hesitate(void)
{
    struct multi *multi = running;
    const struct world *world = multi->actor->client->world;
    if (multi->dead || !multi->inside || world->profile.reaction_us == 0 ||
        random_below(&multi->actor->client->world->several, 4) > 0)
        return;
    on_world(sleep_a_while, NULL);
    leave_to_world(multi);
}

void mrt_driver_enter(struct mrt_driver *driver)
{
    hesitate();
    driver->inside++;
}

void mrt_driver_leave_quietly(struct mrt_driver *driver)
{
    driver->inside--;
}

void mrt_driver_stay(struct mrt_driver *driver)
{
    running->inside = true;
    driver->inside += !MRT_DEFECT(MULTI_OUTSIDE);
}

void mrt_driver_stay_no_more(struct mrt_driver *driver)
{
    hesitate();
    driver->inside -= !MRT_DEFECT(MULTI_OUTSIDE);
}

static void pump(struct multi *multi, void *unused)
{
    struct client *client = multi->actor->client;
    (void)unused;
    note_ends(multi);
    client_pump(client->world, client);
}

void mrt_driver_leave(struct mrt_driver *driver, mrt_time deadline)
{
    (void)deadline;
    on_world(pump, NULL);
    driver->inside--;
}

static void begin_part(struct multi *multi, void *lock)
{
    size_t number = (size_t)((mortise_lock *)lock - multi->locks);
    struct part *part = &multi->parts[number];
    struct client *client = multi->actor->client;
    struct mrt_waiter *waiter = &part->wait->waiter;
    part->order = ++client->waiter_order;
    client->world->operations++;
    note(multi, TRACE_ACQUIRE, waiter->try_only ? "one, try" : "one", multi->queues[number],
         (int64_t)waiter->owner, waiter->hopeful);
    mrt_engine_acquire(client->engine, multi->locks[number].queue, waiter, client_now(client));
}

void mrt_lock_begin(mortise_lock *lock, struct mrt_wait *wait, uint64_t owner, bool try_only,
                    bool hopeful)
{
    struct multi *multi = running;
    *wait = (struct mrt_wait){.kind = MRT_WAIT_BLOCKING,
                              .waiter = {.owner = owner,
                                         .weight = lock->weight,
                                         .hold_max = lock->hold_max,
                                         .deadline = MRT_TIME_NEVER,
                                         .try_only = try_only,
                                         .hopeful = hopeful,
                                         .competes = true}};
    if (multi->dead) {
        wait->waiter.state = MRT_WAITER_DONE;
        wait->waiter.error = MORTISE_ECLOSED;
        return;
    }
    multi->parts[lock - multi->locks] = (struct part){.wait = wait};
    on_world(begin_part, lock);
}

/* Of locks in order: by name, and the heavier side first. */
static bool is_behind(const struct grip *grip, int queue, uint64_t weight)
{
    return grip->queue != queue ? grip->queue > queue : grip->weight < weight;
}

static void check_waiting(const struct multi *multi, const struct part *part)
{
    const struct actor *actor = multi->actor;
    int queue = multi->queues[part - multi->parts];
    for (int g = 0; g < GRIPS_MAX; g++)
        if (actor->grips[g].hold && is_behind(&actor->grips[g], queue, part->wait->waiter.weight))
            check_fail(actor->client->world, actor->client->index, queue,
                       "lock%d is held while what comes before it is waited for",
                       actor->grips[g].queue);
}

/* One step of mrt_driver_wait; `argument`: the deadline. It is on the world's stack. */
static void wait_step(struct multi *multi, void *argument)
{
    const struct part *part = multi->waits_for;
    const mrt_time *deadline = argument;
    struct client *client = multi->actor->client;
    struct mrt_waiter *waiter = &part->wait->waiter;
    mrt_time now = client_now(client);
    note_ends(multi);
    if (waiter->state == MRT_WAITER_DONE)
        return;
    if (!waiter->try_only)
        check_waiting(multi, part);
    if (waiter->state == MRT_WAITER_WOKEN) {
        note(multi, TRACE_RETRY, NULL, multi->queues[part - multi->parts], 0, 0);
        mrt_engine_retry(client->engine, waiter, now);
    } else if (now >= *deadline) {
        note(multi, TRACE_CANCEL, NULL, multi->queues[part - multi->parts], 0, 0);
        mrt_engine_cancel(client->engine, waiter, MORTISE_ETIMEOUT, now);
    }
    pump(multi, NULL);
}

/* Lets the world go on until the waiter has settled, or its time is up. */
static void sleep_until(struct multi *multi, void *argument)
{
    const mrt_time *deadline = argument;
    struct actor *actor = multi->actor;
    if (multi->waits_for->wait->waiter.state != MRT_WAITER_WAITING || actor->step.timer.armed ||
        *deadline == MRT_TIME_NEVER)
        return;
    actor_step_at(actor->client->world, actor, client_true(actor->client, *deadline));
}

int mrt_lock_wait(mortise_lock *lock, struct mrt_wait *wait, mrt_time deadline, mortise_hold *hold)
{
    struct multi *multi = running;
    struct part *part = &multi->parts[lock - multi->locks];
    multi->waits_for = part;
    multi->client.driver.inside++;
    while (wait->waiter.state != MRT_WAITER_DONE) {
        on_world(wait_step, &deadline);
        if (multi->dead || wait->waiter.state != MRT_WAITER_WAITING)
            continue;
        on_world(sleep_until, &deadline);
        leave_to_world(multi);
    }
    multi->client.driver.inside--;
    on_world(pump, NULL); /* nothing may look at it when it is no more */
    multi->waits_for = NULL;
    part->wait = NULL;
    if (wait->waiter.error == MORTISE_OK)
        *hold = (mortise_hold){wait->waiter.hold, wait->waiter.hold->generation};
    return wait->waiter.error;
}

static void release_one(struct multi *multi, void *argument)
{
    const mortise_hold *hold = argument;
    actor_release(multi->actor->client->world, multi->actor, hold->slot, hold->generation);
}

int mortise_release(mortise_hold hold)
{
    hesitate();
    on_world(release_one, &hold);
    return MORTISE_OK;
}

/* ------------------------------------------------------------- the thread */

/* Both sides of a read/write lock, or twice the same, where a second acquire nests. */
static int times_of(struct world *world, const mortise_lock *lock)
{
    bool nests = !lock->unowned && mrt_queue_recipe(lock->queue)->reentrant;
    return nests && random_below(&world->several, 4) == 0 ? 2 : 1;
}

static void draw_lock(struct world *world, struct multi *multi, int queue, mortise_lock *lock)
{
    struct random *random = &world->several;
    int64_t kind = world->queues[queue].lock;
    *lock = (mortise_lock){.client = &multi->client, .owner = (uint64_t)multi->actor->index + 1};
    lock->weight = actor_draw_weight(world, random, kind);
    lock->unowned = kind == LOCK_SEMAPHORE || random_below(random, 8) == 0;
    if (world->profile.hold_max_us > 0 && random_below(random, 4) == 0)
        lock->hold_max = 1 + random_below(random, world->profile.hold_max_us * MRT_MICROSECOND);
    lock->queue = client_queue(world, multi->actor->client, queue);
}

static void add_lock(struct world *world, struct multi *multi, int queue)
{
    mortise_lock *lock = &multi->locks[multi->count];
    draw_lock(world, multi, queue, lock);
    multi->queues[multi->count++] = queue;
    if (multi->count == GRIPS_MAX || times_of(world, lock) == 1)
        return;
    mortise_lock *again = &multi->locks[multi->count];
    draw_lock(world, multi, queue, again);
    again->unowned = false;
    multi->queues[multi->count++] = queue;
}

static void shuffle(struct world *world, struct multi *multi)
{
    for (size_t i = multi->count; i > 1; i--) {
        size_t j = (size_t)random_below(&world->several, (int64_t)i);
        mortise_lock lock = multi->locks[i - 1];
        int queue = multi->queues[i - 1];
        multi->locks[i - 1] = multi->locks[j];
        multi->queues[i - 1] = multi->queues[j];
        multi->locks[j] = lock;
        multi->queues[j] = queue;
    }
}

/* At most until when, and whether somebody will cancel it before. */
static void draw_end(struct world *world, struct multi *multi)
{
    const struct profile *p = &world->profile;
    struct random *random = &world->several;
    struct actor *actor = multi->actor;
    multi->timeout_ms = -1;
    multi->deadline = MRT_TIME_NEVER;
    if (random_chance(random, p->try))
        multi->timeout_ms = 0;
    else if (random_chance(random, p->timed))
        multi->timeout_ms = 1 + random_below(random, p->wait_us / 1000 + 1);
    if (multi->timeout_ms > 0)
        multi->deadline = client_now(actor->client) + mrt_time_from_ms(multi->timeout_ms);
    if (random_chance(random, p->cancel))
        actor_plan_giving_up(world, actor, random_below(random, p->wait_us * MRT_MICROSECOND));
}

bool multi_begin(struct world *world, struct actor *actor)
{
    struct client *client = actor->client;
    if (!random_chance(&world->several, world->profile.several))
        return false;
    struct multi *multi = multi_of(actor);
    memset((void *)multi, 0, sizeof *multi);
    multi->actor = actor;
    multi->client.driver.engine = client->engine;
    multi->client.timeout = (world->drawn.wait_us + 1000) * MRT_MICROSECOND;
    for (int queue = 0; queue < world->drawn.queues && multi->count < GRIPS_MAX; queue++)
        if (world->queues[queue].lock != LOCK_ELECTION && random_below(&world->several, 4) > 0)
            add_lock(world, multi, queue);
    shuffle(world, multi);
    world->operations++;
    actor->waiter = (struct mrt_waiter){.state = MRT_WAITER_DONE, .deadline = MRT_TIME_NEVER};
    actor->state = ACTOR_WAITING;
    draw_end(world, multi);
    note(multi, TRACE_ACQUIRE, "several", NO_QUEUE, (int64_t)multi->count, multi->timeout_ms);
    start(multi);
    return true;
}

bool multi_step(struct actor *actor)
{
    struct multi *multi = multi_of(actor);
    if (!multi->runs)
        return false;
    resume(multi);
    return true;
}

/* As mortise_cancel_waiters does for each of the locks. */
bool multi_cancel(struct world *world, struct actor *actor)
{
    struct multi *multi = multi_of(actor);
    struct client *client = actor->client;
    if (!multi->runs)
        return false;
    world->operations++;
    multi->cancelled = true;
    for (size_t i = 0; i < multi->count; i++) {
        if (!multi->parts[i].wait)
            continue;
        note(multi, TRACE_CANCEL, NULL, multi->queues[i], MORTISE_ECANCELLED, 0);
        mrt_engine_cancel(client->engine, &multi->parts[i].wait->waiter, MORTISE_ECANCELLED,
                          client_now(client));
    }
    client_pump(world, client);
    return true;
}

static bool is_waiting(const struct multi *multi, size_t number, int queue)
{
    const struct part *part = &multi->parts[number];
    return part->wait && multi->queues[number] == queue &&
           part->wait->waiter.state != MRT_WAITER_DONE;
}

bool multi_overtaken(const struct client *client, int queue, uint64_t order, mrt_time since)
{
    for (int a = 0; a < client->world->drawn.actors; a++) {
        const struct multi *multi = &multis[client->index][a];
        for (size_t i = 0; multi->runs && i < multi->count; i++)
            if (is_waiting(multi, i, queue) && multi->parts[i].order < order &&
                multi->parts[i].wait->waiter.since <= since)
                return true;
    }
    return false;
}

bool multi_tries(const struct client *client, int queue)
{
    for (int a = 0; a < client->world->drawn.actors; a++) {
        const struct multi *multi = &multis[client->index][a];
        for (size_t i = 0; multi->runs && i < multi->count; i++)
            if (is_waiting(multi, i, queue) && multi->parts[i].wait->waiter.try_only)
                return true;
    }
    return false;
}

bool multi_inside(const struct client *client)
{
    for (int a = 0; a < client->world->drawn.actors; a++)
        if (multis[client->index][a].runs && multis[client->index][a].client.driver.inside > 0)
            return true;
    return false;
}

void multi_check_closed(const struct client *client)
{
    for (int a = 0; a < client->world->drawn.actors; a++)
        if (multis[client->index][a].runs)
            check_fail(client->world, client->index, NO_QUEUE,
                       "a client is freed while a thread acquires several of its locks");
}

static void cancel_parts(struct multi *multi, struct client *client)
{
    multi->dead = true;
    multi->asked = NULL;
    for (size_t i = 0; i < multi->count; i++)
        if (multi->parts[i].wait)
            mrt_engine_cancel(client->engine, &multi->parts[i].wait->waiter, MORTISE_ECLOSED,
                              client_now(client));
}

void multi_died(struct client *client)
{
    const int count = (int)client->world->drawn.actors;
    struct multi *all = multis[client->index];
    for (int a = 0; a < count; a++)
        if (all[a].runs)
            cancel_parts(&all[a], client);
    while (mrt_engine_next_settled(client->engine))
        ; /* what waits there is about to be freed */
    for (int a = 0; a < count; a++)
        if (all[a].runs)
            resume(&all[a]);
}
