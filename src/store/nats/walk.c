/* SPDX-License-Identifier: Apache-2.0 */
/* See walk.h. A walk reads, then judges: sessions of tickets that hold ahead of one's own are
   looked up, and what dead ones left is removed. */
#include "store/nats/walk.h"

#include "core/rule.h"
#include "store/nats/internal.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD_MAX 64 /* more are not counted: they do not change what is granted */

static const struct mrt_nats_reply no_memory = {
    .outcome = MRT_NATS_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a queue"};

static const struct mrt_nats_reply too_long = {
    .outcome = MRT_NATS_REFUSED, .error = MORTISE_ESTORE, .text = "a queue of more than 64 MiB"};

static void step(struct mrt_nats_walk *walk);
static void judge(struct mrt_nats_walk *walk);

static void drop_entries(struct mrt_nats_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        free(walk->entries[i].value);
    walk->count = 0;
}

void mrt_nats_walk_free(struct mrt_nats_walk *walk)
{
    drop_entries(walk);
    free(walk->entries);
    free(walk->known);
    *walk = (struct mrt_nats_walk){.wire = NULL};
}

/* ------------------------------------------------------------------- rules */

uint64_t mrt_nats_weight(const struct mrt_nats_entry *entry, uint64_t capacity)
{
    return entry->ours ? entry->ticket.weight : capacity;
}

uint64_t mrt_nats_weight_ahead(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry,
                               uint64_t capacity)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < walk->count && &walk->entries[i] != entry; i++)
        if (__builtin_add_overflow(sum, mrt_nats_weight(&walk->entries[i], capacity), &sum))
            return UINT64_MAX;
    return sum;
}

bool mrt_nats_holds(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry,
                    uint64_t capacity)
{
    return mrt_rule_grants(mrt_nats_weight_ahead(walk, entry, capacity),
                           mrt_nats_weight(entry, capacity), capacity);
}

const struct mrt_nats_ticket *mrt_nats_walk_kind(const struct mrt_nats_walk *walk)
{
    for (size_t i = 0; i + walk->has_own < walk->count; i++)
        if (walk->entries[i].ours)
            return &walk->entries[i].ticket;
    return NULL;
}

static uint64_t capacity_of(const struct mrt_nats_walk *walk)
{
    const struct mrt_nats_ticket *kind = mrt_nats_walk_kind(walk);
    return walk->capacity > 0 ? walk->capacity : kind ? kind->capacity : 1;
}

/* The tickets before the own one. */
static size_t count_ahead(const struct mrt_nats_walk *walk)
{
    return walk->count - walk->has_own;
}

static bool is_granted(const struct mrt_nats_walk *walk)
{
    const struct mrt_nats_entry *own = walk->has_own ? &walk->entries[walk->count - 1] : NULL;
    uint64_t capacity = capacity_of(walk);
    return mrt_rule_grants(mrt_nats_weight_ahead(walk, own, capacity),
                           own ? mrt_nats_weight(own, capacity) : walk->weight, capacity);
}

/* ------------------------------------------------------------------ reading */

static void read_again(struct mrt_nats_walk *walk)
{
    drop_entries(walk);
    walk->any_doomed = walk->has_own = walk->cut = walk->quick = walk->is_buried =
        walk->others_behind = walk->lacks_own = false;
    walk->judged = walk->size = 0;
    walk->cursor = 1;
    step(walk);
}

static void fail(struct mrt_nats_walk *walk, const struct mrt_nats_reply *reply)
{
    walk->done(walk, reply);
}

static bool reads_change(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry)
{
    bool own = walk->own > 0 && entry->sequence == walk->own;
    if (!entry->ours || (own && walk->fresh))
        return false;
    return own || walk->changes || entry->ticket.weight > 1 ||
           mrt_id_equal(entry->ticket.session, walk->self);
}

/* Whether the first ticket alone keeps the own one waiting, and was known to. */
static bool is_known(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry)
{
    if (walk->count != 1 ||
        mrt_rule_grants(mrt_nats_weight(entry, walk->capacity), walk->weight, walk->capacity))
        return false;
    bool known = false;
    for (size_t i = 0; i < walk->known_count; i++) {
        known |= walk->known[i].sequence == entry->sequence;
        if (walk->known[i].weight > 1 && walk->known[i].sequence > entry->sequence)
            return false; /* it may have become lighter */
    }
    return known;
}

static void got_own(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_walk *walk = argument;
    struct mrt_nats_message message;
    bool for_good;
    if (!mrt_nats_message_read(reply, &message)) {
        fail(walk, reply);
        return;
    }
    walk->lacks_own = message.sequence != walk->own || mrt_nats_is_gone(&message, &for_good);
    mrt_nats_message_free(&message);
    judge(walk);
}

/* A walk that has been cut looks whether its own ticket is there. */
static void check_own(struct mrt_nats_walk *walk)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_subject(walk->wire->address, 'q', walk->token, "*", subject);
    if (walk->own == 0 || walk->fresh)
        judge(walk);
    else if (!mrt_nats_get_next(walk->wire, walk->wire->address->tickets, walk->own, subject,
                                got_own, walk))
        fail(walk, &no_memory);
}

/* The newest entry is complete. */
static void entry_is_read(struct mrt_nats_walk *walk)
{
    const struct mrt_nats_entry *entry = &walk->entries[walk->count - 1];
    walk->size += sizeof *entry + entry->value_size;
    if (walk->size > MRT_NATS_READ_MAX) {
        fail(walk, &too_long);
        return;
    }
    walk->cursor = entry->sequence + 1;
    walk->has_own = walk->own > 0 && entry->sequence == walk->own;
    if (walk->has_own && !walk->behind) {
        judge(walk);
        return;
    }
    walk->quick = !walk->has_own && is_known(walk, entry);
    bool enough = walk->stops ? !is_granted(walk) : walk->own > 0 && walk->count >= AHEAD_MAX;
    if (!walk->has_own && (walk->quick || (enough && !is_granted(walk)))) {
        walk->cut = true;
        check_own(walk);
        return;
    }
    step(walk);
}

static bool take_value(struct mrt_nats_entry *entry, const struct mrt_nats_message *message)
{
    size_t offset = entry->ticket.value_offset;
    char *value = malloc(message->size - offset + 1);
    if (!value)
        return false;
    free(entry->value);
    entry->value = value;
    entry->value_size = message->size - offset;
    memcpy(value, message->bytes + offset, entry->value_size);
    return true;
}

static void got_change(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_walk *walk = argument;
    struct mrt_nats_entry *entry = &walk->entries[walk->count - 1];
    struct mrt_nats_message message;
    struct mrt_nats_ticket ticket;
    if (!mrt_nats_message_read(reply, &message)) {
        fail(walk, reply);
        return;
    }
    entry->attribute = message.sequence;
    bool fine = true;
    if (message.bytes && mrt_nats_ticket_parse(message.bytes, message.size, &ticket)) {
        entry->ticket = ticket;
        fine = take_value(entry, &message);
    }
    mrt_nats_message_free(&message);
    if (fine)
        entry_is_read(walk);
    else
        fail(walk, &no_memory);
}

/* A new entry at the end; NULL: no memory. */
static struct mrt_nats_entry *add_entry(struct mrt_nats_walk *walk)
{
    if (walk->count == walk->room) {
        size_t room = 2 * walk->room + 4;
        struct mrt_nats_entry *entries = realloc(walk->entries, room * sizeof *entries);
        if (!entries)
            return NULL;
        walk->entries = entries;
        walk->room = room;
    }
    walk->entries[walk->count] = (struct mrt_nats_entry){.sequence = 0};
    return &walk->entries[walk->count++];
}

static void read_ticket(struct mrt_nats_walk *walk, const struct mrt_nats_message *message)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    const char *dot = strrchr(message->subject, '.');
    struct mrt_nats_entry *entry = add_entry(walk);
    struct mrt_id id;
    if (!entry || !dot) {
        fail(walk, &no_memory);
        return;
    }
    entry->sequence = message->sequence;
    bool named = mrt_id_parse(dot + 1, &id);
    if (named)
        memcpy(entry->name, dot + 1, sizeof entry->name);
    entry->ours = named && mrt_nats_ticket_parse(message->bytes, message->size, &entry->ticket);
    if (entry->ours && !take_value(entry, message)) {
        fail(walk, &no_memory);
        return;
    }
    mrt_nats_subject(walk->wire->address, 'a', walk->token, entry->name, subject);
    if (!reads_change(walk, entry))
        entry_is_read(walk);
    else if (!mrt_nats_get_last(walk->wire, walk->wire->address->tickets, subject, got_change,
                                walk))
        fail(walk, &no_memory);
}

static void got(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_walk *walk = argument;
    struct mrt_nats_message message;
    bool for_good;
    if (!mrt_nats_message_read(reply, &message)) {
        fail(walk, reply);
        return;
    }
    if (!message.bytes) {
        judge(walk);
    } else if (mrt_nats_is_gone(&message, &for_good)) {
        if (for_good)
            mrt_nats_delete(walk->wire, walk->wire->address->tickets, message.sequence);
        walk->cursor = message.sequence + 1;
        step(walk);
    } else if (walk->has_own) {
        walk->others_behind = true;
        judge(walk);
    } else if (walk->own > 0 && message.sequence > walk->own) {
        judge(walk); /* without the own one */
    } else {
        read_ticket(walk, &message);
    }
    mrt_nats_message_free(&message);
}

static void step(struct mrt_nats_walk *walk)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_subject(walk->wire->address, 'q', walk->token, "*", subject);
    if (!mrt_nats_get_next(walk->wire, walk->wire->address->tickets, walk->cursor, subject, got,
                           walk))
        fail(walk, &no_memory);
}

void mrt_nats_walk_begin(struct mrt_nats_walk *walk)
{
    read_again(walk);
}

/* ------------------------------------------------------------------ judging */

static void take_out(struct mrt_nats_walk *walk, size_t index)
{
    free(walk->entries[index].value);
    memmove(&walk->entries[index], &walk->entries[index + 1],
            (--walk->count - index) * sizeof walk->entries[0]);
}

static void judged(void *argument, enum mrt_nats_verdict verdict,
                   const struct mrt_nats_reply *reply)
{
    struct mrt_nats_walk *walk = argument;
    if (verdict == MRT_NATS_IS_DEAD) {
        take_out(walk, walk->judged);
        walk->is_buried = true;
    } else {
        bool doomed = verdict == MRT_NATS_IS_DOOMED;
        walk->entries[walk->judged++].doomed = doomed;
        walk->any_doomed |= doomed;
    }
    if (verdict == MRT_NATS_NO_VERDICT && reply->outcome == MRT_NATS_UNKNOWN)
        fail(walk, reply);
    else
        judge(walk); /* what cannot be judged, as without the rights, is there */
}

/* Whether a ticket holds, or would if those of the dead were gone. */
static bool may_hold(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry)
{
    uint64_t sum = 0, capacity = capacity_of(walk);
    for (size_t i = 0; &walk->entries[i] != entry; i++)
        if (!walk->entries[i].doomed &&
            __builtin_add_overflow(sum, mrt_nats_weight(&walk->entries[i], capacity), &sum))
            return false;
    return mrt_rule_grants(sum, mrt_nats_weight(entry, capacity), capacity);
}

static bool needs_verdict(const struct mrt_nats_walk *walk, const struct mrt_nats_entry *entry)
{
    if (!entry->ours || mrt_id_none(entry->ticket.session) ||
        mrt_id_equal(entry->ticket.session, walk->self))
        return false;
    return walk->looks || (walk->buries && !is_granted(walk) && may_hold(walk, entry));
}

static void judge(struct mrt_nats_walk *walk)
{
    while (walk->judged < count_ahead(walk)) {
        const struct mrt_nats_entry *entry = &walk->entries[walk->judged];
        if (!needs_verdict(walk, entry)) {
            walk->judged++;
            continue;
        }
        walk->grave = (struct mrt_nats_grave){.wire = walk->wire,
                                              .token = walk->token,
                                              .name = entry->name,
                                              .sequence = entry->sequence,
                                              .lease = entry->ticket.lease,
                                              .session = entry->ticket.session,
                                              .looks = walk->looks,
                                              .knows = walk->knows,
                                              .judge = walk->argument,
                                              .done = judged,
                                              .argument = walk};
        mrt_nats_grave_begin(&walk->grave);
        return;
    }
    if (walk->quick && walk->any_doomed)
        walk->known_count = 0; /* those behind it may be dead, too */
    if ((walk->is_buried && walk->cut) || (walk->quick && walk->any_doomed))
        read_again(walk);
    else
        walk->done(walk, NULL);
}
