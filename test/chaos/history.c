/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judgement on a history: sorted by time, each process is followed through its states,
 * and the holds, which begin in the order of the grants, are compared with those before.
 * An event without an explanation is a fault, so that a broken recorder is not taken for a lock
 * without fault.
 */
#include "chaos/history.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind { ASK, GOT, STILL, RELEASE, LOST, FAILED, LEFT, DEAD, CUT, HEAL, KINDS };
static const char *const names[KINDS] = {"ask",    "got",  "still", "release", "lost",
                                         "failed", "left", "dead",  "cut",     "heal"};

struct event {
    int64_t at, until;
    uint64_t number;
    unsigned long line;
    unsigned process;
    enum kind kind;
};

struct hold {
    struct event got;
    int64_t to, until;
};

struct process {
    enum { IDLE, ASKING, HOLDING, OVER } state;
    bool seen, awaited; /* awaited: alive at the newest heal, and not served since */
    size_t hold;
};

struct check {
    struct chaos_verdict *verdict;
    struct event *events;
    struct hold *holds;
    size_t count, held;
    struct process processes[CHAOS_PROCESSES];
    int64_t healed;
};

static void blame(struct check *check, unsigned long *counter, const char *what,
                  const struct event *event)
{
    struct chaos_verdict *verdict = check->verdict;
    ++*counter;
    if (verdict->first[0])
        return;
    snprintf(verdict->first, sizeof verdict->first, "line %lu: process %u, %s %" PRIu64 ": %s",
             event->line, event->process, names[event->kind], event->number, what);
}

static bool parse(const char *line, struct event *event)
{
    char kind[16];
    int end = 0;
    if (sscanf(line, "%" SCNd64 " %15s %u %" SCNu64 " %" SCNd64 " %n", &event->at, kind,
               &event->process, &event->number, &event->until, &end) != 5 ||
        line[end] != '\0' || event->process >= CHAOS_PROCESSES)
        return false;
    for (int i = 0; i < KINDS; i++) {
        event->kind = (enum kind)i;
        if (strcmp(kind, names[i]) == 0)
            return (i >= CUT) == (event->process == 0);
    }
    return false;
}

static int read_events(struct check *check, FILE *history)
{
    size_t room = 0;
    char line[160];
    for (unsigned long number = 1; fgets(line, sizeof line, history); number++) {
        if (check->count == room) {
            room = room ? room * 2 : 1024;
            struct event *more = realloc(check->events, room * sizeof *more);
            if (!more)
                return -1;
            check->events = more;
        }
        struct event *event = &check->events[check->count];
        *event = (struct event){.line = number};
        if (parse(line, event))
            check->count++;
        else
            blame(check, &check->verdict->broken, "not an event", event);
    }
    check->verdict->events = check->count;
    check->holds = malloc((check->count + 1) * sizeof *check->holds);
    return check->holds ? 0 : -1;
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* ------------------------------------------------------------------ events */

static void count_unserved(struct check *check, const struct event *event)
{
    for (unsigned i = 0; i < CHAOS_PROCESSES; i++) {
        if (check->processes[i].awaited)
            blame(check, &check->verdict->unserved, "somebody was not served before", event);
        check->processes[i].awaited = false;
    }
}

static void on_heal(struct check *check, const struct event *event)
{
    struct chaos_verdict *verdict = check->verdict;
    count_unserved(check, event);
    for (unsigned i = 0; i < CHAOS_PROCESSES; i++) {
        struct process *process = &check->processes[i];
        process->awaited = process->seen && process->state != OVER;
    }
    check->healed = event->at;
    if (verdict->heals < CHAOS_HEALS)
        verdict->heal[verdict->heals++] = (struct chaos_heal){.scene = event->number};
}

static void on_served(struct check *check, struct process *process, int64_t at)
{
    struct chaos_verdict *verdict = check->verdict;
    if (!process->awaited)
        return;
    process->awaited = false;
    struct chaos_heal *heal = &verdict->heal[verdict->heals - 1];
    if (at - check->healed > heal->longest)
        heal->longest = at - check->healed;
}

static void on_got(struct check *check, struct process *process, const struct event *event)
{
    process->state = HOLDING;
    process->hold = check->held;
    check->holds[check->held++] =
        (struct hold){.got = *event, .to = INT64_MAX, .until = event->until};
    on_served(check, process, event->at);
    check->verdict->holds++;
}

static void on_still(struct check *check, struct process *process, const struct event *event)
{
    struct hold *hold = &check->holds[process->hold];
    if (hold->got.number != event->number)
        blame(check, &check->verdict->broken, "another fence than at the grant", event);
    if (event->until > hold->until)
        hold->until = event->until;
}

static void on_end_of_hold(struct check *check, struct process *process, const struct event *event)
{
    check->holds[process->hold].to = event->at;
    process->state = IDLE;
}

static void on_dead(struct check *check, struct process *process, const struct event *event)
{
    if (process->state == HOLDING)
        on_end_of_hold(check, process, event);
    process->awaited = false;
    process->state = OVER;
    check->verdict->dead++;
}

/* The state in which a process may report the event. */
static bool in_order(const struct process *process, enum kind kind)
{
    switch (kind) {
    case ASK:
    case LEFT:
        return process->state == IDLE;
    case GOT:
    case FAILED:
        return process->state == ASKING;
    case STILL:
    case RELEASE:
    case LOST:
        return process->state == HOLDING;
    default:
        return process->state != OVER;
    }
}

static void on_process(struct check *check, const struct event *event)
{
    struct process *process = &check->processes[event->process];
    process->seen = true;
    if (!in_order(process, event->kind)) {
        blame(check, &check->verdict->broken, "out of order", event);
        return;
    }
    if (event->kind == ASK)
        process->state = ASKING;
    else if (event->kind == GOT)
        on_got(check, process, event);
    else if (event->kind == STILL)
        on_still(check, process, event);
    else if (event->kind == RELEASE || event->kind == LOST)
        on_end_of_hold(check, process, event);
    else if (event->kind == FAILED)
        process->state = IDLE;
    else if (event->kind == LEFT)
        process->state = OVER;
    else
        on_dead(check, process, event);
    check->verdict->failed += event->kind == FAILED;
    check->verdict->lost += event->kind == LOST;
}

/* ------------------------------------------------------------------- holds */

static void compare_holds(struct check *check)
{
    struct chaos_verdict *verdict = check->verdict;
    int64_t busy = INT64_MIN;
    uint64_t newest = 0;
    for (size_t i = 0; i < check->held; i++) {
        const struct hold *hold = &check->holds[i];
        int64_t from = hold->got.at;
        int64_t end = hold->to < hold->until ? hold->to : hold->until;
        if (from < busy) {
            int64_t both = (end < busy ? end : busy) - from;
            blame(check, &verdict->overlaps, "while another held", &hold->got);
            if (both > verdict->longest_overlap)
                verdict->longest_overlap = both;
        }
        if (hold->got.number <= newest)
            blame(check, &verdict->fences, "a fence that does not rise", &hold->got);
        newest = hold->got.number > newest ? hold->got.number : newest;
        busy = end > busy ? end : busy;
    }
}

int chaos_history_check(FILE *history, struct chaos_verdict *verdict)
{
    struct check *check = calloc(1, sizeof *check);
    const struct event end = {.kind = LEFT};
    memset(verdict, 0, sizeof *verdict);
    if (!check)
        return -1;
    check->verdict = verdict;
    int error = read_events(check, history);
    if (!error && check->count > 0)
        qsort(check->events, check->count, sizeof *check->events, by_time);
    for (size_t i = 0; !error && i < check->count; i++) {
        const struct event *event = &check->events[i];
        if (event->kind == HEAL)
            on_heal(check, event);
        else if (event->kind == CUT)
            count_unserved(check, event);
        else
            on_process(check, event);
    }
    count_unserved(check, &end);
    for (unsigned i = 0; i < CHAOS_PROCESSES; i++)
        if (check->processes[i].seen && check->processes[i].state != OVER)
            blame(check, &verdict->broken, "a process neither left nor died", &end);
    compare_holds(check);
    free(check->events);
    free(check->holds);
    free(check);
    return error;
}

unsigned long chaos_faults(const struct chaos_verdict *verdict)
{
    return verdict->overlaps + verdict->fences + verdict->unserved + verdict->broken;
}
