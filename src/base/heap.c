/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairing heap, after Fredman, Sedgewick, Sleator and Tarjan (1986): insertion
 * and meld in one comparison, removal by pairing the children left to right and
 * melding them right to left.
 */
#include "base/heap.h"

#include "base/assert.h"

#include <stddef.h>

static bool before(const struct mrt_timer *a, const struct mrt_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/* Melds two roots; either may be NULL. */
static struct mrt_timer *meld(struct mrt_timer *a, struct mrt_timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (before(b, a)) {
        struct mrt_timer *swap = a;
        a = b;
        b = swap;
    }
    b->sibling = a->child;
    if (b->sibling)
        b->sibling->previous = b;
    b->previous = a;
    a->child = b;
    return a;
}

static struct mrt_timer *cut(struct mrt_timer *node)
{
    struct mrt_timer *next = node->sibling;
    node->sibling = NULL;
    node->previous = NULL;
    return next;
}

static struct mrt_timer *meld_children(struct mrt_timer *first)
{
    struct mrt_timer *pairs = NULL;
    while (first) {
        struct mrt_timer *a = first, *b = cut(a);
        first = b ? cut(b) : NULL;
        struct mrt_timer *pair = meld(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    struct mrt_timer *root = NULL;
    while (pairs) {
        struct mrt_timer *next = cut(pairs);
        root = meld(root, pairs);
        pairs = next;
    }
    return root;
}

void mrt_heap_set(struct mrt_heap *heap, struct mrt_timer *timer, mrt_time at)
{
    mrt_heap_clear(heap, timer);
    *timer =
        (struct mrt_timer){.at = at, .order = heap->order++, .kind = timer->kind, .armed = true};
    heap->root = meld(heap->root, timer);
}

void mrt_heap_clear(struct mrt_heap *heap, struct mrt_timer *timer)
{
    if (!timer->armed)
        return;
    timer->armed = false;
    struct mrt_timer *orphans = meld_children(timer->child);
    timer->child = NULL;
    if (timer == heap->root) {
        heap->root = orphans;
        return;
    }
    MRT_ASSERT(timer->previous);
    if (timer->sibling)
        timer->sibling->previous = timer->previous;
    if (timer->previous->child == timer)
        timer->previous->child = timer->sibling;
    else
        timer->previous->sibling = timer->sibling;
    cut(timer);
    heap->root = meld(heap->root, orphans);
}

mrt_time mrt_heap_next(const struct mrt_heap *heap)
{
    return heap->root ? heap->root->at : MRT_TIME_NEVER;
}

struct mrt_timer *mrt_heap_pop(struct mrt_heap *heap, mrt_time now)
{
    struct mrt_timer *timer = heap->root;
    if (!timer || timer->at > now)
        return NULL;
    mrt_heap_clear(heap, timer);
    return timer;
}
