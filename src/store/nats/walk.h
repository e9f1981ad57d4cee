/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk through a queue: its tickets are read one by one in the order of their sequences, each by
 * "the first message at or behind this sequence", up to one's own ticket.
 *
 * Why a walk that reaches its own ticket has missed none that is ahead, although each step may be
 * answered at another time, and by another server. A ticket's place is never written again, so
 * its sequence is the same as long as it lives, and nothing is ever added before a sequence that
 * has been given out. A server that shows one's own ticket has all that was written before it.
 * A step from `cursor` that is answered with the message at X shows that nothing stood between
 * them then; what has a lower sequence than X and was not there has left for good, or X would not
 * have been there yet. An older state shows more ahead, never fewer. A state so old that it lacks
 * one's own ticket ends the walk without it, which proves nothing: the command tries again.
 *
 * A ticket's change (another weight, no session) is read apart, where it matters. An older one is
 * heavier, or has a session still: it blocks longer.
 */
#ifndef MRT_STORE_NATS_WALK_H
#define MRT_STORE_NATS_WALK_H

#include "store/nats/grave.h"
#include "store/nats/text.h"

#define MRT_NATS_READ_MAX (64 << 20) /* bytes of tickets: a server may have them without end */

struct mrt_nats_entry {
    uint64_t sequence, attribute; /* of its place, and of its change; 0: it has none */
    char name[MRT_ID_TEXT_SIZE];
    bool ours;   /* else it blocks all others */
    bool doomed; /* its session is dead */
    struct mrt_nats_ticket ticket;
    char *value;
    size_t value_size;
};

struct mrt_nats_ahead;
struct mrt_nats_walk {
    struct mrt_nats_wire *wire;
    const char *token;
    uint64_t own;              /* sequence of the own ticket; 0: to the end of the queue */
    uint64_t weight, capacity; /* of the own ticket; capacity 0: not known */
    struct mrt_id self;        /* a session that lives */
    bool stops;                /* as soon as the own ticket is not granted */
    bool changes;              /* reads the change of each ticket */
    bool behind;               /* reads whether a ticket is behind the own one */
    bool fresh;                /* the own ticket cannot have been changed yet */
    bool buries, looks;        /* removes tickets of the dead that hold; leaves them out, all */
    bool (*knows)(struct mrt_nats_grave *grave, uint64_t sequence); /* grave.h; of the argument */
    mrt_time judge_again;         /* when a session ahead may be found dead at the earliest */
    struct mrt_nats_ahead *known; /* what was known to be ahead when it began */
    size_t known_count;
    void (*done)(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure);
    void *argument;
    /* Found by it: */
    struct mrt_nats_entry *entries;
    size_t count, room;
    bool has_own;   /* it is the last entry */
    bool lacks_own; /* it is not there, though the walk has been cut */
    bool others_behind;
    bool cut; /* there may be more between the entries and the own ticket */
    bool any_doomed;
    bool quick; /* the first entry is the first of the known */
    /* Its own: */
    uint64_t cursor;
    size_t judged, size;
    bool is_buried;
    struct mrt_nats_grave grave;
};

/* Ends by `done`, possibly at once. Its findings stay until the walk is freed. */
void mrt_nats_walk_begin(struct mrt_nats_walk *walk);
void mrt_nats_walk_free(struct mrt_nats_walk *walk);

/* The weight of an entry, and of all before one (or of all, if that is NULL). */
uint64_t mrt_nats_weight(const struct mrt_nats_entry *entry, uint64_t capacity);
uint64_t mrt_nats_weight_ahead(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry,
                               uint64_t capacity);
bool mrt_nats_holds(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry,
                    uint64_t capacity);
/* The kind of a queue: that of its first ticket of ours, ahead of the own one; NULL: it has none.
 */
const struct mrt_nats_ticket *mrt_nats_walk_kind(const struct mrt_nats_walk *walk);

#endif
