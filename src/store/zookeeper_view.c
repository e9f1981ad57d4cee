/*
 * What a directory's children say of a ticket: how much is ahead, which of these it is to
 * wait for, whether anything is behind. Names alone are read: they tell kind and weight.
 *
 * Mutexes and writers wait for the last one ahead. A reader waits for the last writer
 * ahead, so that all the readers behind one wake together; readers may stand in between.
 */
#include "core/defect.h"
#include "store/zookeeper_internal.h"

#include <string.h>

/* What is said of a directory's children, once each for a store. */
static void note_families(struct mrt_store *store, const struct String_vector *names,
                          unsigned families, int foreign)
{
    if (foreign >= 0 && strstr(names->data[foreign], "lock") != NULL)
        mrt_zk_note(store, MRT_ZK_NOTE_FOREIGN,
                    "node \"%.100s\" in a lock's directory is not understood and not counted",
                    names->data[foreign]);
    const unsigned both = 1u << MRT_ZK_CURATOR | 1u << MRT_ZK_KAZOO;
    if ((families & both) == both)
        mrt_zk_note(store, MRT_ZK_NOTE_MIXTURE,
                    "names of Curator (lock-) and of stock kazoo (__lock__) in one lock's "
                    "directory: those two do not exclude each other");
}

/* Whether the ticket waits for tickets of this family: a reader only for writers. */
static bool blocks(const struct mrt_zk_ticket *ticket, enum mrt_zk_family family)
{
    return ticket->family != MRT_ZK_READER || family != MRT_ZK_READER;
}

/* A ticket's node may have been made a reader's meanwhile, under the same sequence. */
static bool is_own(const struct mrt_zk_ticket *ticket, const char *node, int32_t sequence)
{
    return ticket->created && sequence == ticket->sequence && strstr(node, ticket->uuid);
}

/* What is ahead on both sides of the one that is waited for. */
static void split(struct mrt_zk_view *view, const struct mrt_zk_ticket *ticket,
                  const struct String_vector *names)
{
    int32_t blocker, sequence;
    mrt_zk_contender(names->data[view->blocker], &blocker);
    for (int i = 0; i < names->count; i++) {
        enum mrt_zk_family family = mrt_zk_contender(names->data[i], &sequence);
        if (family == MRT_ZK_FOREIGN || i == view->own || i == view->blocker ||
            (ticket->created && mrt_zk_before(ticket->sequence, sequence)))
            continue;
        *(mrt_zk_before(sequence, blocker) ? &view->before : &view->after) += mrt_zk_weight(family);
    }
}

struct mrt_zk_view mrt_zk_look(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                               const struct String_vector *names)
{
    struct mrt_zk_view view = {.own = -1, .blocker = -1};
    int32_t sequence, blocker = 0;
    unsigned families = 0;
    int foreign = -1;
    for (int i = 0; i < names->count; i++) {
        enum mrt_zk_family family = mrt_zk_contender(names->data[i], &sequence);
        if (!mrt_zk_is_ours(names->data[i]))
            families |= 1u << family;
        if (MRT_DEFECT(ZK_STRANGERS_IGNORED) &&
            (family == MRT_ZK_KAZOO || strstr(names->data[i], "-4000-")))
            continue;
        if (family == MRT_ZK_FOREIGN) {
            foreign = i;
        } else if (is_own(ticket, names->data[i], sequence)) {
            view.own = i;
        } else if (ticket->created && mrt_zk_before(ticket->sequence, sequence)) {
            view.behind = true;
        } else {
            view.tickets++;
            view.ahead += mrt_zk_weight(family);
            view.other |= !mrt_zk_same_lock(family, ticket->family);
            if (blocks(ticket, family) && (view.blocker < 0 || mrt_zk_before(blocker, sequence))) {
                view.blocker = i;
                blocker = sequence;
            }
        }
    }
    if (view.blocker >= 0)
        split(&view, ticket, names);
    note_families(store, names, families, foreign);
    return view;
}
