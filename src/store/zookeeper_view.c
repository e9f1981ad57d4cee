/*
 * What a directory's children say of a ticket: how much is ahead, which of these it is to
 * wait for, whether anything is behind. Names alone are read, and each weighs 1.
 *
 * A mutex waits for the last one ahead, so nothing comes after that one; kinds with weights
 * may wait for another.
 */
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

struct mrt_zk_view mrt_zk_look(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                               const struct String_vector *names)
{
    struct mrt_zk_view view = {.blocker = -1};
    int32_t sequence, blocker = 0;
    unsigned families = 0;
    int foreign = -1;
    for (int i = 0; i < names->count; i++) {
        enum mrt_zk_family family = mrt_zk_contender(names->data[i], &sequence);
        families |= 1u << family;
        if (family == MRT_ZK_FOREIGN) {
            foreign = i;
        } else if (ticket->created && strcmp(names->data[i], ticket->node) == 0) {
            view.own = true;
        } else if (ticket->created && mrt_zk_before(ticket->sequence, sequence)) {
            view.behind = true;
        } else {
            view.ahead++;
            if (view.blocker < 0 || mrt_zk_before(blocker, sequence)) {
                view.blocker = i;
                blocker = sequence;
            }
        }
    }
    note_families(store, names, families, foreign);
    return view;
}
