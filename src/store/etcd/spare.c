/* SPDX-License-Identifier: Apache-2.0 */
/* See spare.h. The newest are first; the oldest leaves when there are too many. */
#include "store/etcd/spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPARES_MAX 64

struct mrt_etcd_spare {
    TAILQ_ENTRY(mrt_etcd_spare) link;
    char name[MRT_ETCD_SUFFIX_SIZE];
    char directory[];
};

static void drop(struct mrt_etcd_store *store, struct mrt_etcd_spare *spare)
{
    TAILQ_REMOVE(&store->spares, spare, link);
    store->spare_count--;
    free(spare);
}

void mrt_etcd_spare_keep(struct mrt_etcd_queue *queue, const struct mrt_etcd_record *record)
{
    struct mrt_etcd_store *store = queue->store;
    size_t size = strlen(queue->directory) + 1;
    struct mrt_etcd_spare *spare = malloc(sizeof *spare + size);
    if (!spare)
        return;
    snprintf(spare->name, sizeof spare->name, "%s", record->name);
    memcpy(spare->directory, queue->directory, size);
    TAILQ_INSERT_HEAD(&store->spares, spare, link);
    if (++store->spare_count > SPARES_MAX)
        drop(store, TAILQ_LAST(&store->spares, mrt_etcd_spares));
}

bool mrt_etcd_spare_take(struct mrt_etcd_queue *queue, char name[MRT_ETCD_SUFFIX_SIZE])
{
    struct mrt_etcd_store *store = queue->store;
    struct mrt_etcd_spare *spare;
    TAILQ_FOREACH (spare, &store->spares, link)
        if (strcmp(spare->directory, queue->directory) == 0) {
            snprintf(name, MRT_ETCD_SUFFIX_SIZE, "%s", spare->name);
            drop(store, spare);
            return true;
        }
    return false;
}

void mrt_etcd_spares_free(struct mrt_etcd_store *store)
{
    while (!TAILQ_EMPTY(&store->spares))
        drop(store, TAILQ_FIRST(&store->spares));
}
