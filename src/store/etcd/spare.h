/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of deleted keys that the next ticket of the same queue takes again.
 *
 * etcd reads a range by going through all keys that it has had since it was compacted, those that
 * were deleted too. A new name for each ticket would make each acquire slower than the one before.
 *
 * Invariant: nothing that was sent for a name that is spare has an effect any more. A change has
 * the condition that the session's key is unchanged, and a removal that the key has the ticket's
 * create_revision; a name whose removal could not have that condition is not kept.
 */
#ifndef MRT_STORE_ETCD_SPARE_H
#define MRT_STORE_ETCD_SPARE_H

#include "store/etcd/internal.h"

/* The key of this ticket has been deleted by its removal, for certain. */
void mrt_etcd_spare_keep(struct mrt_etcd_queue *queue, const struct mrt_etcd_record *record);
/* False: there is none for this queue. */
bool mrt_etcd_spare_take(struct mrt_etcd_queue *queue, char name[MRT_ETCD_SUFFIX_SIZE]);
void mrt_etcd_spares_free(struct mrt_etcd_store *store);

#endif
