/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether states that the search takes for one are alike. All states are gone through as they
 * are, those that differ in the names of clients or in what should not matter one by one. Each
 * belongs to a class, of those that the search would take for one. From all states of a class the
 * same classes must be reached in one step; staying in the class is no step. Then, by induction, a
 * search that goes on from one state of each class reaches all classes that there are, and
 * no check fails elsewhere.
 *
 * This is a test of what is left out of the hash. It holds for the instances that were compared,
 * which have all that the larger ones have, but fewer at a time.
 */
#include "explore.h"

#include <stdlib.h>

#define CLASSES (UINT64_C(1) << 24) /* places for them */

struct class_entry {
    uint64_t name; /* 0: free */
    uint64_t next; /* what is reached from it */
};

static struct class_entry *classes;

void compare_open(void)
{
    classes = memory_outside(CLASSES * sizeof *classes);
}

uint64_t compare_class(const struct world *world)
{
    uint64_t name = state_hash(world, PRECISION_ALIKE).low;
    name = (name ^ world_faults(world)) * UINT64_C(0x9e3779b97f4a7c15);
    return name != 0 ? name : 1;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static uint64_t mixed(uint64_t name, uint64_t *next, uint32_t count)
{
    uint64_t hash = 1;
    qsort(next, count, sizeof *next, by_value);
    for (uint32_t i = 0; i < count; i++) {
        if (next[i] == name || (i > 0 && next[i] == next[i - 1]))
            continue;
        hash = (hash ^ next[i]) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    return hash;
}

void compare_note(uint64_t name, uint64_t *next, uint32_t count)
{
    uint64_t place = name % CLASSES, hash = mixed(name, next, count);
    uint64_t tries = 0;
    while (classes[place].name != 0 && classes[place].name != name && tries++ < CLASSES)
        place = (place + 1) % CLASSES;
    if (classes[place].name == 0)
        classes[place] = (struct class_entry){name, hash};
    else if (classes[place].name != name)
        search_fail("more classes than there is room for");
    else if (classes[place].next != hash)
        search_fail("two states that are taken for one go on differently");
}
