/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ticket's view, from the names of its directory's children: how much is ahead, which of these
 * it has to wait for, whether anything is behind. Names alone are read: they tell kind and weight.
 *
 * Mutexes and writers wait for the last one ahead. A reader waits for the last writer
 * ahead, so that all the readers behind one wake together; readers may stand in between.
 * In a semaphore's queue the last one ahead that marks its node is waited for if it waits itself;
 * else any child may be the one (ticket/semaphore.c).
 */
#include "store/zookeeper/ticket/view.h"

#include "core/rule.h"
#include "store/zookeeper/ticket/semaphore.h"

#include <stdlib.h>
#include <string.h>

#define MISPLACED_SIZE 180

static void say_misplaced(const struct mrt_store *store, const char *node,
                          char text[MISPLACED_SIZE])
{
    const struct mrt_zk_place place = mrt_zk_place_of(node);
    const char *layout = mrt_zk_layout_name(place.layout);
    snprintf(text, MISPLACED_SIZE,
             "node \"%.64s\" is of a program that does not see layout=%s; use %s%s", node,
             mrt_zk_layout_name(store->address.layout), layout ? "layout=" : "another name",
             layout ? layout : "");
}

/* Notes strange children of a directory, once each for a store. */
static void note_strangers(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                           const struct mrt_zk_view *view, const struct String_vector *names,
                           int foreign)
{
    char text[MISPLACED_SIZE];
    if (foreign >= 0 && strstr(names->data[foreign], "lock") != NULL)
        mrt_note(&store->notes, MRT_ZK_NOTE_FOREIGN,
                 "node \"%.100s\" in a lock's directory is not understood and not counted",
                 names->data[foreign]);
    if (view->misplaced >= 0 && ticket->held) {
        say_misplaced(store, names->data[view->misplaced], text);
        mrt_note(&store->notes, MRT_ZK_NOTE_MISPLACED, "held, and %s", text);
    }
}

void mrt_zk_keep_misplaced(const struct mrt_store *store, struct mrt_job *job, const char *node)
{
    char text[MISPLACED_SIZE];
    say_misplaced(store, node, text);
    mrt_job_set_detail(job, "ZooKeeper, lock \"%.50s\": %.175s", job->command.queue, text);
}

int64_t mrt_zk_first_czxid(const struct mrt_zk_place *place, const struct Stat *stat)
{
    return place->czxid != 0 ? place->czxid : stat->czxid;
}

/* Whether the ticket may wait for one at this place: a reader waits only for writers, a
   semaphore's ticket only for one that will mark its node. */
static bool blocks(const struct mrt_zk_ticket *ticket, const struct mrt_zk_place *place)
{
    if (ticket->place.family == MRT_ZK_SEMAPHORE)
        return mrt_zk_marks(place);
    return ticket->place.family != MRT_ZK_READER || place->family != MRT_ZK_READER;
}

/* A ticket's node may have been made a reader's meanwhile, under the same sequence. */
static bool is_own(const struct mrt_zk_ticket *ticket, const char *node, int32_t sequence)
{
    bool named =
        ticket->uuid[0] ? strstr(node, ticket->uuid) != NULL : strcmp(node, ticket->node) == 0;
    return ticket->created && sequence == ticket->place.sequence && named;
}

/* Of a node that is not its own; before it has one, all are. */
static bool is_ahead(const struct mrt_zk_ticket *ticket, const struct mrt_zk_place *place)
{
    return place->family != MRT_ZK_FOREIGN &&
           !(ticket->created && mrt_zk_before(ticket->place.sequence, place->sequence));
}

/* Splits the weight ahead into both sides of the one that is waited for. That is the last one
   ahead, but for readers, who may have other readers in between, and in semaphores. */
static void split(struct mrt_zk_view *view, const struct mrt_zk_ticket *ticket,
                  const struct mrt_zk_place *blocker, const struct String_vector *names)
{
    enum mrt_zk_family family = ticket->place.family;
    bool between = family == MRT_ZK_READER || family == MRT_ZK_SEMAPHORE;
    for (int i = 0; between && i < names->count; i++) {
        const struct mrt_zk_place place = mrt_zk_place_beside(names->data[i], &ticket->place);
        if (i != view->own && is_ahead(ticket, &place) &&
            mrt_zk_before(blocker->sequence, place.sequence))
            view->after += place.weight;
    }
    view->before = view->ahead - blocker->weight - view->after;
}

struct mrt_zk_view mrt_zk_view_of(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                                  const struct String_vector *names)
{
    struct mrt_zk_view view = {.own = -1, .blocker = -1, .misplaced = -1};
    struct mrt_zk_place blocker = {0};
    bool semaphore = ticket->place.family == MRT_ZK_SEMAPHORE;
    int foreign = -1;
    for (int i = 0; i < names->count; i++) {
        const struct mrt_zk_place place = mrt_zk_place_beside(names->data[i], &ticket->place);
        if (ticket->place.family <= MRT_ZK_WRITER &&
            mrt_zk_misplaced(&place, store->address.layout))
            view.misplaced = i;
        if (strcmp(names->data[i], MRT_ZK_CLAIM_NODE) == 0) {
            view.claim = true;
        } else if (place.family == MRT_ZK_FOREIGN) {
            foreign = i;
        } else if (is_own(ticket, names->data[i], place.sequence)) {
            view.own = i;
        } else if (!is_ahead(ticket, &place)) {
            view.behind = true;
        } else {
            view.count++;
            view.ahead += place.weight;
            if (!mrt_zk_same_lock(&place, &ticket->place))
                view.other = place;
            bool nearer = mrt_zk_before(blocker.sequence, place.sequence);
            if (blocks(ticket, &place) && (view.blocker < 0 || nearer)) {
                view.blocker = i;
                blocker = place;
            }
        }
    }
    if (view.blocker >= 0)
        split(&view, ticket, &blocker, names);
    if (semaphore && view.ahead - view.after <= ticket->place.capacity)
        view.blocker = -1; /* it fits: the departure of any may let this one in */
    note_strangers(store, ticket, &view, names, foreign);
    return view;
}

static int in_order(const void *a, const void *b)
{
    const struct mrt_zk_place *first = a, *second = b;
    return mrt_zk_before(second->sequence, first->sequence) -
           mrt_zk_before(first->sequence, second->sequence);
}

bool mrt_zk_crowded(const struct mrt_zk_ticket *ticket, const struct mrt_zk_view *view,
                    const struct String_vector *names, uint64_t most)
{
    struct mrt_zk_place *ahead = calloc((size_t)names->count + 1, sizeof *ahead);
    uint64_t weight = 0, holders = 0, count = 0;
    if (!ahead)
        return false; /* the limit is a courtesy, and no reason to refuse */
    for (int i = 0; i < names->count; i++) {
        ahead[count] = mrt_zk_place_beside(names->data[i], &ticket->place);
        count += i != view->own && is_ahead(ticket, &ahead[count]);
    }
    qsort(ahead, count, sizeof *ahead, in_order);
    while (holders < count &&
           mrt_rule_grants(weight, ahead[holders].weight, ticket->place.capacity))
        weight += ahead[holders++].weight;
    free(ahead);
    return count - holders >= most;
}
