/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depth first, with a set of the states seen. After each step the arena is compared with a
 * copy of it, block by block; what changed goes on a pile of old blocks, and going back is
 * taking them off again. A world costs what changes in it.
 *
 * From each new state the search first looks how it would end (settle), unless it has just done so
 * from one that ends alike; then it goes on in every way there is. States that are alike are one
 * (explore_state.c), but for a search of all states as they are, which is there to prove that the
 * other one misses nothing (explore_compare.c).
 */
#include "explore.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UNDO_MAX (UINT64_C(1) << 28) /* blocks */
#define FRAMES_MAX (UINT64_C(1) << 24)

struct undo {
    uint64_t block;
    unsigned char bytes[MEMORY_BLOCK];
};

/* A state on the way: where the blocks begin that lead back from it, and what to try next. */
struct frame {
    uint64_t undo_begin;
    struct action *actions; /* of all frames, one after the other */
    uint32_t next, count;
    struct action taken; /* that led here */
    uint64_t class;      /* to compare */
};

static struct {
    unsigned char *shadow; /* the arena as it was at the newest frame */
    struct undo *undo;
    uint64_t undo_count;
    struct frame *frames;
    uint64_t depth;
    struct action *actions;
    uint64_t *reached; /* the class that each of them led to */
    uint64_t action_count;
    struct seen *seen, *alike, *ends;
    enum search_how how;
    struct world *world;
    struct action last;
    struct result *result;
    jmp_buf failed;
} at;

_Noreturn void search_fail(const char *failure)
{
    at.result->failed = true;
    snprintf(at.result->failure, sizeof at.result->failure, "%s", failure);
    longjmp(at.failed, 1);
}

/* ------------------------------------------------------------- states as bytes */

/* Changes since the newest frame can be undone from now on. */
static void commit(void)
{
    unsigned char *bytes = memory_bytes();
    for (uint64_t offset = 0; offset < memory_size(); offset += MEMORY_BLOCK) {
        if (memcmp(bytes + offset, at.shadow + offset, MEMORY_BLOCK) == 0)
            continue;
        struct undo *undo = &at.undo[at.undo_count++];
        if (at.undo_count == UNDO_MAX)
            abort();
        undo->block = offset;
        memcpy(undo->bytes, at.shadow + offset, MEMORY_BLOCK);
        memcpy(at.shadow + offset, bytes + offset, MEMORY_BLOCK);
    }
}

/* Changes since the newest frame are forgotten. */
static void revert(void)
{
    memcpy(memory_bytes(), at.shadow, memory_size());
}

static void undo_to(uint64_t count)
{
    while (at.undo_count > count) {
        const struct undo *undo = &at.undo[--at.undo_count];
        memcpy(at.shadow + undo->block, undo->bytes, MEMORY_BLOCK);
        memcpy(memory_bytes() + undo->block, undo->bytes, MEMORY_BLOCK);
    }
}

/* ------------------------------------------------------------- the search */

static void push(struct action taken, uint64_t undo_begin, uint64_t class)
{
    struct frame *frame = &at.frames[at.depth++];
    if (at.depth == FRAMES_MAX)
        abort();
    *frame = (struct frame){.undo_begin = undo_begin,
                            .actions = at.actions + at.action_count,
                            .taken = taken,
                            .class = class};
    frame->count = (uint32_t)action_list(at.world, frame->actions);
    at.action_count += frame->count;
    if (at.depth > at.result->depth)
        at.result->depth = at.depth;
}

static void pop(void)
{
    const struct frame *frame = &at.frames[--at.depth];
    at.action_count -= frame->count;
    if (at.how == SEARCH_COMPARING)
        compare_note(frame->class, at.reached + at.action_count, frame->count);
    undo_to(frame->undo_begin);
}

/* True if the search goes on from here. */
static bool is_new(void)
{
    if (at.how == SEARCH_ALIKE)
        return seen_add(at.seen, state_hash(at.world, PRECISION_ALIKE), world_faults(at.world));
    bool new = seen_add(at.seen, state_hash(at.world, PRECISION_WHOLE), 0);
    if (new)
        seen_add(at.alike, state_hash(at.world, PRECISION_ALIKE), world_faults(at.world));
    return new;
}

static void look_at_the_end(void)
{
    if (at.how == SEARCH_ALIKE && seen_lately(at.ends, state_hash(at.world, PRECISION_END)))
        return;
    settle(at.world);
    revert();
}

static void step(struct frame *frame)
{
    uint64_t undo_begin = at.undo_count, class = 0;
    at.last = frame->actions[frame->next++];
    at.result->steps++;
    action_do(at.world, at.last);
    check_world(at.world);
    if (at.how == SEARCH_COMPARING) {
        class = compare_class(at.world);
        at.reached[frame->actions + frame->next - 1 - at.actions] = class;
    }
    if (!is_new()) {
        revert();
        return;
    }
    at.result->visits++;
    commit();
    look_at_the_end();
    push(at.last, undo_begin, class);
}

static void explore(void)
{
    at.result->visits = is_new();
    push((struct action){0}, 0, compare_class(at.world));
    while (at.depth > 0) {
        struct frame *frame = &at.frames[at.depth - 1];
        if (frame->next == frame->count)
            pop();
        else
            step(frame);
    }
    at.result->ended = true;
}

/* The way to the failure once more, with words. */
static void print_way(FILE *trace)
{
    uint64_t depth = at.depth;
    struct action last = at.last;
    revert();
    undo_to(0);
    for (uint64_t i = 1; i <= depth; i++) {
        struct action action = i < depth ? at.frames[i].taken : last;
        action_print(at.world, action, trace);
        if (i < depth)
            action_do(at.world, action);
    }
    fprintf(trace, "    %s\n", at.result->failure);
}

void search(const struct instance *instance, enum search_how how, struct result *result,
            FILE *trace)
{
    int bits = instance->full ? 25 : 18;
    at.result = result;
    at.how = how;
    at.shadow = memory_outside(1u << 20);
    at.undo = memory_outside(UNDO_MAX * sizeof(struct undo));
    at.frames = memory_outside(FRAMES_MAX * sizeof(struct frame));
    at.actions = memory_outside(FRAMES_MAX * ACTIONS_MAX * sizeof(struct action));
    at.reached = memory_outside(FRAMES_MAX * ACTIONS_MAX * sizeof(uint64_t));
    at.seen = seen_new(how == SEARCH_ALIKE ? bits : bits + 2);
    at.alike = how == SEARCH_ALIKE ? at.seen : seen_new(bits);
    at.ends = seen_new(bits - 2);
    compare_open();
    memory_open();
    at.world = world_new(instance);
    memcpy(at.shadow, memory_bytes(), memory_size());
    if (setjmp(at.failed) == 0)
        explore();
    else if (trace)
        print_way(trace);
    result->states = seen_count(at.alike);
}
