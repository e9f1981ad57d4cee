/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of states. Of each state there is a fingerprint of 64 bits, in a place that the other 64
 * bits of its hash say, and a mask of the faults that the runs which have been there had left: each
 * set of faults is a bit. A state with more faults left can do all that one with fewer can, so a
 * visit with more is also a visit with fewer, and a state is new again only with faults that are in
 * no set there has been.
 *
 * That takes 10 bytes a state. As the place does not depend on the fingerprint, two states are
 * mixed up only if they meet in one run of places: if ten are looked at in a step, that is a
 * probability of 1e-18 for each, and of 1e-8 in a search of ten thousand million steps.
 *
 * A set may also be one that forgets: a state stays until another takes its place.
 */
#include "explore.h"

#include <stdlib.h>
#include <sys/mman.h>

struct seen {
    uint64_t slots, count;
    uint64_t *prints; /* 0: empty */
    uint16_t *masks;
};

static void *huge(uint64_t size)
{
    void *memory = memory_outside(size);
    madvise(memory, size, MADV_HUGEPAGE); /* a help if it works */
    return memory;
}

struct seen *seen_new(int bits)
{
    struct seen *seen = memory_outside(sizeof *seen);
    seen->slots = UINT64_C(1) << bits;
    seen->prints = huge(seen->slots * sizeof *seen->prints);
    seen->masks = huge(seen->slots * sizeof *seen->masks);
    return seen;
}

/* All sets of faults that are in this one, as bits. */
static uint16_t within(unsigned faults)
{
    unsigned mask = 0;
    for (unsigned set = 0; set < FAULT_SETS; set++)
        if ((set & faults) == set)
            mask |= 1u << set;
    return (uint16_t)mask;
}

static uint64_t print_of(struct state_hash hash)
{
    return hash.low != 0 ? hash.low : 1;
}

bool seen_add(struct seen *seen, struct state_hash hash, unsigned faults)
{
    uint64_t print = print_of(hash), slot = hash.high & (seen->slots - 1);
    while (seen->prints[slot] != 0 && seen->prints[slot] != print)
        slot = (slot + 1) & (seen->slots - 1);
    if (seen->masks[slot] & 1u << faults)
        return false;
    seen->masks[slot] |= within(faults);
    if (seen->prints[slot] == 0 && ++seen->count > seen->slots / 16 * 15)
        search_fail("more states than there is room for");
    seen->prints[slot] = print;
    return true;
}

bool seen_lately(struct seen *seen, struct state_hash hash)
{
    uint64_t print = print_of(hash), *place = &seen->prints[hash.high & (seen->slots - 1)];
    bool same = *place == print;
    *place = print;
    return same;
}

uint64_t seen_count(const struct seen *seen)
{
    return seen->count;
}
