/* SPDX-License-Identifier: Apache-2.0 */
/* Looks taken together: watch.h says what is counted and how. */
#include "cli/observe/watch.h"

#include <stdlib.h>
#include <string.h>

const uint32_t mrt_watch_bounds_ms[MRT_WATCH_BOUNDS] = {
    150, 350, 750, 1500, 3500, 7500, 15000, 30000, 60000, 300000, 900000, 3600000, 21600000};

void mrt_watch_init(struct mrt_watch *watch, size_t own_max)
{
    *watch = (struct mrt_watch){.own_max = own_max};
    TAILQ_INIT(&watch->idle);
}

static void free_ticket(struct mrt_watch_lock *lock, struct mrt_watch_ticket *ticket)
{
    HASH_DEL(lock->tickets, ticket);
    free(ticket->owner);
    free(ticket);
}

static void free_lock(struct mrt_watch *watch, struct mrt_watch_lock *lock)
{
    struct mrt_watch_ticket *ticket, *next;
    HASH_ITER (hh, lock->tickets, ticket, next)
        free_ticket(lock, ticket);
    if (lock->idle) {
        TAILQ_REMOVE(&watch->idle, lock, idle_link);
        watch->idle_count--;
    }
    HASH_DEL(watch->locks, lock);
    for (size_t i = 0; i < MRT_WATCH_PAST; i++)
        free(lock->past[i].owner);
    free(lock->name);
    free(lock);
}

void mrt_watch_fini(struct mrt_watch *watch)
{
    struct mrt_watch_lock *lock, *next;
    HASH_ITER (hh, watch->locks, lock, next)
        free_lock(watch, lock);
}

struct mrt_watch_lock *mrt_watch_find(const struct mrt_watch *watch, const char *name)
{
    struct mrt_watch_lock *lock;
    HASH_FIND_STR(watch->locks, name, lock);
    return lock;
}

struct mrt_watch_ticket *mrt_watch_ticket(const struct mrt_watch_lock *lock, uint64_t id)
{
    struct mrt_watch_ticket *ticket = NULL;
    if (lock)
        HASH_FIND(hh, lock->tickets, &id, sizeof id, ticket);
    return ticket;
}

const struct mrt_watch_past *mrt_watch_past(const struct mrt_watch_lock *lock, uint64_t back)
{
    if (!lock || back >= lock->past_count || back >= MRT_WATCH_PAST)
        return NULL;
    return &lock->past[(lock->past_count - 1 - back) % MRT_WATCH_PAST];
}

static struct mrt_watch_lock *add_lock(struct mrt_watch *watch, const char *name, mrt_time now)
{
    struct mrt_watch_lock *lock = calloc(1, sizeof *lock);
    if (!lock)
        return NULL;
    lock->name = strdup(name);
    if (lock->name)
        HASH_ADD_KEYPTR(hh, watch->locks, lock->name, strlen(lock->name), lock);
    if (!lock->name || lock->lost) {
        free(lock->name);
        free(lock);
        return NULL;
    }
    lock->watched_since = now;
    lock->own = watch->own_count < watch->own_max;
    watch->own_count += lock->own;
    return lock;
}

static struct mrt_watch_ticket *add_ticket(struct mrt_watch_lock *lock, uint64_t id)
{
    struct mrt_watch_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->id = id;
    HASH_ADD(hh, lock->tickets, id, sizeof ticket->id, ticket);
    if (!ticket->lost)
        return ticket;
    free(ticket);
    return NULL;
}

/* ---------------------------------------------------------------- counting */

static void add_time(struct mrt_watch_histogram *histogram, mrt_time time)
{
    size_t bucket = 0;
    while (bucket < MRT_WATCH_BOUNDS && time > mrt_time_from_ms(mrt_watch_bounds_ms[bucket]))
        bucket++;
    histogram->buckets[bucket]++;
    histogram->total++;
    histogram->sum = mrt_time_add(histogram->sum, time);
}

/* A ticket no longer is as it was: its hold is over, or its wait, which was `served` or not. */
static void end_phase(struct mrt_watch_counts *counts, const struct mrt_watch_ticket *ticket,
                      bool served, mrt_time now)
{
    if (ticket->phase == MRT_WATCH_WAITS && !served)
        counts->gone++;
    else if (ticket->phase != MRT_WATCH_DEAD && ticket->since_known)
        add_time(ticket->phase == MRT_WATCH_HOLDS ? &counts->holds : &counts->waits,
                 now - ticket->since);
}

static enum mrt_watch_phase phase_of(const struct mrt_row *row)
{
    if (row->place != 0)
        return MRT_WATCH_WAITS;
    return row->delay_ms > 0 ? MRT_WATCH_DEAD : MRT_WATCH_HOLDS;
}

static bool see_ticket(struct mrt_watch *watch, struct mrt_watch_lock *lock,
                       const struct mrt_row *row, mrt_time now)
{
    struct mrt_watch_ticket *ticket = mrt_watch_ticket(lock, row->id);
    enum mrt_watch_phase phase = phase_of(row);
    bool holds = phase == MRT_WATCH_HOLDS, first_look = watch->look == 1, is_new = !ticket;
    if (is_new)
        ticket = add_ticket(lock, row->id);
    if (!ticket)
        return false;
    if (is_new)
        ticket->owner = strdup(row->owner);
    ticket->fence = row->fence;
    ticket->look = watch->look;
    if (!is_new && ticket->phase == phase)
        return true;
    struct mrt_watch_counts *both[] = {&watch->totals, &lock->counts};
    for (size_t i = 0; i < 2; i++) {
        if (!is_new)
            end_phase(both[i], ticket, row->place == 0, now);
        both[i]->grants += holds && !first_look;
        both[i]->contended += holds && !is_new;
        both[i]->deaths += phase == MRT_WATCH_DEAD && !first_look;
    }
    ticket->phase = phase;
    ticket->since = now;
    ticket->since_known = !first_look;
    return true;
}

/* The first row of a lock's queue in this look. */
static void begin_lock(struct mrt_watch *watch, struct mrt_watch_lock *lock, size_t row,
                       uint64_t id)
{
    lock->first = row;
    lock->look = watch->look;
    lock->holders = lock->waiters = 0;
    lock->used = 0;
    lock->waiting_since_ms = 0;
    if (lock->first_id != 0 && lock->first_id != id) {
        lock->counts.changes++;
        watch->totals.changes++;
    }
    lock->first_id = id;
    if (lock->idle) {
        TAILQ_REMOVE(&watch->idle, lock, idle_link);
        watch->idle_count--;
        lock->idle = false;
    }
}

static bool see_row(struct mrt_watch *watch, const struct mrt_rows *rows, size_t i, mrt_time now)
{
    const struct mrt_row *row = &rows->rows[i];
    struct mrt_watch_lock *lock = mrt_watch_find(watch, row->name);
    if (!lock)
        lock = add_lock(watch, row->name, now);
    if (!lock)
        return false;
    if (lock->look != watch->look)
        begin_lock(watch, lock, i, row->id);
    bool holds = row->place == 0;
    watch->held += holds && lock->holders == 0;
    lock->holders += holds;
    lock->waiters += !holds;
    lock->used += holds ? row->weight : 0;
    if (!holds && row->since_wall_ms != 0 &&
        (!lock->waiting_since_ms || row->since_wall_ms < lock->waiting_since_ms))
        lock->waiting_since_ms = row->since_wall_ms;
    watch->holders += holds;
    watch->waiters += !holds;
    /* Tickets without a number cannot be told apart from look to look. */
    return row->id == 0 || see_ticket(watch, lock, row, now);
}

/* ------------------------------------------------------------ what is gone */

/* Its owner goes over. */
static void remember(struct mrt_watch_lock *lock, struct mrt_watch_ticket *ticket, mrt_time now)
{
    if (ticket->phase != MRT_WATCH_HOLDS)
        return;
    struct mrt_watch_past *past = &lock->past[lock->past_count++ % MRT_WATCH_PAST];
    free(past->owner);
    *past = (struct mrt_watch_past){ticket->fence, ticket->owner, now - ticket->since, now};
    ticket->owner = NULL;
}

static void end_tickets(struct mrt_watch *watch, struct mrt_watch_lock *lock, mrt_time now)
{
    struct mrt_watch_ticket *ticket, *next;
    HASH_ITER (hh, lock->tickets, ticket, next) {
        if (ticket->look == watch->look)
            continue;
        end_phase(&watch->totals, ticket, false, now);
        end_phase(&lock->counts, ticket, false, now);
        remember(lock, ticket, now);
        free_ticket(lock, ticket);
    }
}

static void forget_idle(struct mrt_watch *watch, mrt_time now)
{
    struct mrt_watch_lock *lock;
    while ((lock = TAILQ_FIRST(&watch->idle)) != NULL &&
           (watch->idle_count > MRT_WATCH_IDLE_MAX || now - lock->idle_since > MRT_WATCH_IDLE))
        free_lock(watch, lock);
}

static void end_look(struct mrt_watch *watch, mrt_time now)
{
    struct mrt_watch_lock *lock, *next;
    HASH_ITER (hh, watch->locks, lock, next) {
        if (lock->tickets)
            end_tickets(watch, lock, now);
        if (lock->look == watch->look)
            continue;
        lock->holders = lock->waiters = 0;
        if (lock->own || lock->idle)
            continue;
        lock->idle = true;
        lock->idle_since = now;
        TAILQ_INSERT_TAIL(&watch->idle, lock, idle_link);
        watch->idle_count++;
    }
    forget_idle(watch, now);
}

bool mrt_watch_look(struct mrt_watch *watch, const struct mrt_rows *rows, mrt_time now)
{
    bool complete = true;
    watch->look++;
    watch->held = watch->holders = watch->waiters = 0;
    for (size_t i = 0; i < rows->count; i++)
        complete &= see_row(watch, rows, i, now);
    end_look(watch, now);
    return complete;
}
