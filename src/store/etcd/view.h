/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of a queue: the keys below its name at one revision, in the order in which they were made.
 * Keys that are not ours count as exclusive contenders, since that is what etcdctl lock and Go's
 * concurrency.Mutex make of every key there. Keys with another slash belong to a queue below.
 */
#ifndef MRT_STORE_ETCD_VIEW_H
#define MRT_STORE_ETCD_VIEW_H

#include "store/etcd/text.h"
#include "store/etcd/ticket.h"

/* A fence is the key's create_revision, so shifted. */
#define MRT_ETCD_FENCE_BITS 12

struct mrt_etcd_entry {
    char *name;  /* of its key, below the queue's */
    char *value; /* as it is */
    size_t value_size;
    bool ours;
    struct mrt_etcd_ticket ticket; /* if it is ours */
    int64_t created, modified, lease;
};

struct mrt_etcd_view {
    int64_t revision; /* 0: there is none */
    size_t count, room;
    struct mrt_etcd_entry *entries;
};

/* Reads a range's reply, of keys below `directory`; false: no memory, or malformed. */
bool mrt_etcd_view_read(struct mrt_etcd_view *view, struct json_object *range, int64_t revision,
                        const char *directory);
void mrt_etcd_view_free(struct mrt_etcd_view *view);
/* An event of a watch changes the view; false: no memory, or malformed. */
bool mrt_etcd_view_change(struct mrt_etcd_view *view, struct json_object *event,
                          const char *directory);

/* The ticket of this identity with this lease (0: nobody's); NULL: it is not there. */
const struct mrt_etcd_entry *mrt_etcd_view_find(const struct mrt_etcd_view *view, struct mrt_id id,
                                                int64_t lease);
/* The weight of an entry in a queue of this capacity. */
uint64_t mrt_etcd_weight(const struct mrt_etcd_entry *entry, uint64_t capacity);
/* The weight ahead of an entry, or of the end if it is NULL. */
uint64_t mrt_etcd_weight_ahead(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *entry,
                               uint64_t capacity);
/* How many entries are ahead. */
uint64_t mrt_etcd_place(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *entry);
bool mrt_etcd_grants(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *entry,
                     uint64_t capacity);
/* The kind and the capacity of a queue: those of its first ticket of ours, ahead of `entry` if that
   is given; NULL: it has none. */
const struct mrt_etcd_ticket *mrt_etcd_view_kind(const struct mrt_etcd_view *view,
                                                 const struct mrt_etcd_entry *entry);
uint64_t mrt_etcd_fence(const struct mrt_etcd_entry *entry);

#endif
