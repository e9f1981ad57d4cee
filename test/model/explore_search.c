/*
 * Depth first, with a set of the states seen. After each step the arena is compared with a
 * copy of it, block by block; what changed goes on a pile of old blocks, and going back is
 * taking them off again. A world costs what changes in it.
 *
 * From each new state the search first looks how it would end (settle), then goes on in every
 * way there is.
 */
#include "explore.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SEEN_FIRST (UINT64_C(1) << 16) /* slots; as many again when half are used */
#define UNDO_MAX (UINT64_C(1) << 28)   /* blocks */
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
};

static struct {
    unsigned char *shadow; /* the arena as it was at the newest frame */
    struct undo *undo;
    uint64_t undo_count;
    struct frame *frames;
    uint64_t depth;
    struct action *actions;
    uint64_t action_count;
    struct state_hash *seen;
    uint64_t seen_slots;
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

/* What changed since the newest frame can be undone from now on. */
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

/* What changed since the newest frame is forgotten. */
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

/* Where a state is in the set, or has its place. */
static struct state_hash *find(struct state_hash hash)
{
    uint64_t slot = hash.high & (at.seen_slots - 1);
    while (at.seen[slot].low != 0 &&
           (at.seen[slot].low != hash.low || at.seen[slot].high != hash.high))
        slot = (slot + 1) & (at.seen_slots - 1);
    return &at.seen[slot];
}

static void enlarge(void)
{
    struct state_hash *old = at.seen;
    uint64_t count = at.seen_slots;
    at.seen_slots *= 2;
    at.seen = memory_outside(at.seen_slots * sizeof *old);
    for (uint64_t i = 0; i < count; i++)
        if (old[i].low != 0)
            *find(old[i]) = old[i];
    munmap(old, count * sizeof *old);
}

/* Whether it is new; then it is seen now. */
static bool is_new(struct state_hash hash)
{
    hash.low |= 1; /* a place that is empty has 0 */
    struct state_hash *place = find(hash);
    if (place->low != 0)
        return false;
    *place = hash;
    if (++at.result->states > at.seen_slots / 2)
        enlarge();
    return true;
}

/* ------------------------------------------------------------- the search */

static void push(struct action taken, uint64_t undo_begin)
{
    struct frame *frame = &at.frames[at.depth++];
    if (at.depth == FRAMES_MAX)
        abort();
    *frame = (struct frame){
        .undo_begin = undo_begin, .actions = at.actions + at.action_count, .taken = taken};
    frame->count = (uint32_t)action_list(at.world, frame->actions);
    at.action_count += frame->count;
    if (at.depth > at.result->depth)
        at.result->depth = at.depth;
}

static void pop(void)
{
    const struct frame *frame = &at.frames[--at.depth];
    at.action_count -= frame->count;
    undo_to(frame->undo_begin);
}

static void step(struct action action)
{
    uint64_t undo_begin = at.undo_count;
    at.last = action;
    at.result->transitions++;
    action_do(at.world, action);
    check_world(at.world);
    if (!is_new(state_hash(at.world))) {
        revert();
        return;
    }
    commit();
    settle(at.world);
    revert();
    push(action, undo_begin);
}

static void explore(void)
{
    push((struct action){0}, 0);
    while (at.depth > 0) {
        struct frame *frame = &at.frames[at.depth - 1];
        if (frame->next == frame->count)
            pop();
        else
            step(frame->actions[frame->next++]);
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

void search(const struct instance *instance, struct result *result, FILE *trace)
{
    at.result = result;
    at.seen_slots = SEEN_FIRST;
    at.shadow = memory_outside(1u << 20);
    at.undo = memory_outside(UNDO_MAX * sizeof(struct undo));
    at.frames = memory_outside(FRAMES_MAX * sizeof(struct frame));
    at.actions = memory_outside(FRAMES_MAX * ACTIONS_MAX * sizeof(struct action));
    at.seen = memory_outside(at.seen_slots * sizeof *at.seen);
    memory_open();
    at.world = world_new(instance);
    memcpy(at.shadow, memory_bytes(), memory_size());
    if (setjmp(at.failed) == 0)
        explore();
    else if (trace)
        print_way(trace);
}
