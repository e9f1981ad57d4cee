/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of a ticket's key: the candidate's value as it is, and behind it one line of ours,
 *
 *   \nmortise1 KIND CAPACITY WEIGHT REVOKED SINCE ID LABEL
 *
 * KIND and LABEL with percent escapes. So a program that knows values alone, such as etcdctl elect,
 * shows the value first. The identity stands there too, since a detached ticket changes it and
 * keeps its key.
 */
#ifndef MRT_STORE_ETCD_TICKET_H
#define MRT_STORE_ETCD_TICKET_H

#include "base/id.h"
#include "base/owner.h"

#include <stddef.h>

#define MRT_ETCD_KIND_SIZE 33
#define MRT_ETCD_LINE_SIZE (200 + 3 * (MRT_ETCD_KIND_SIZE + MRT_OWNER_SIZE))
#define MRT_ETCD_SUFFIX_SIZE MRT_ID_TEXT_SIZE

struct mrt_etcd_ticket {
    char kind[MRT_ETCD_KIND_SIZE];
    uint64_t capacity, weight, revoked;
    int64_t since; /* wall clock, in ms */
    struct mrt_id id;
    char label[MRT_OWNER_SIZE];
    size_t value_size; /* of the candidate's value */
};

/* The line. Its length. */
size_t mrt_etcd_ticket_format(const struct mrt_etcd_ticket *ticket, char line[MRT_ETCD_LINE_SIZE]);
/* False: it is none of ours. */
bool mrt_etcd_ticket_parse(const char *bytes, size_t size, struct mrt_etcd_ticket *ticket);

#endif
