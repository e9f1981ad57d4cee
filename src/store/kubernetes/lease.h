/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Lease, as JSON. Its record is its `spec`, which client-go's leader election reads and writes
 * likewise. Annotations have the things that other programs do not know: the lock's full name, and
 * of its holder the kind, the owner, the value, and how often an operator has requested that it
 * gives up. Another program may become the holder and leave the annotations, so the holder's count
 * only while the annotation `holder` is the record's holderIdentity.
 *
 * A write is the whole object as it was read, with these changes: what others keep in it stays, and
 * its resourceVersion and uid make the server refuse the write if the object is another by now.
 *
 * The reader's own clock decides whether a record still counts: it does for its
 * leaseDurationSeconds since this reader first saw it. No time that a record names is compared. A
 * record without that number counts for client-go's default, or for the reader's own lease if that
 * is longer.
 */
#ifndef MRT_STORE_KUBERNETES_LEASE_H
#define MRT_STORE_KUBERNETES_LEASE_H

#include "base/id.h"
#include "base/time.h"
#include "store/rest/text.h"

#define MRT_K8S_PREFIX "mortise.dev/"
#define MRT_K8S_LABEL MRT_K8S_PREFIX "lock"
#define MRT_K8S_UNSTATED (15 * MRT_SECOND)

struct mrt_k8s_lease {
    struct json_object *json; /* NULL: there is none */
    bool known;               /* `json` is how it was when it was last read or written */
    mrt_time seen;            /* when this record was first seen */
    mrt_time unstated;        /* how long a record counts that does not say it */
    int64_t floor;            /* one more than the largest leaseTransitions that was seen, or 0 */
};

/* Takes a reference. NULL: there is none. */
void mrt_k8s_lease_set(struct mrt_k8s_lease *lease, struct json_object *json, mrt_time now);
/* When the record is over, by this reader's clock; 0: nobody holds it. */
mrt_time mrt_k8s_lease_end(const struct mrt_k8s_lease *lease);

/* Of an object, which may be NULL. "" if there is none. */
const char *mrt_k8s_holder(struct json_object *json);
bool mrt_k8s_is_holder(struct json_object *json, struct mrt_id ticket);
/* The ticket that an identity of ours names. */
bool mrt_k8s_ticket_of(const char *holder, struct mrt_id *ticket);
/* Whether it is the Lease of this name. */
bool mrt_k8s_is_lease(struct json_object *json, const char *name);
/* Whether it is a list of Leases; those in it do not say what they are. */
bool mrt_k8s_is_list(struct json_object *json);
/* The Lease of this name in a list; NULL: it is not there. */
struct json_object *mrt_k8s_item(struct json_object *list, const char *name);
const char *mrt_k8s_version(struct json_object *json);
uint64_t mrt_k8s_fence(struct json_object *json);
/* Whether its leaseTransitions cannot rise any more. */
bool mrt_k8s_is_used_up(struct json_object *json);
/* The rule by which the API server's own coordinator chooses the holder; "": it does not. */
const char *mrt_k8s_strategy(struct json_object *json);
/* When it was acquired, in ms since 1970; 0: not known. */
int64_t mrt_k8s_since(struct json_object *json);
/* The lock's full name; without an annotation the Lease's. */
const char *mrt_k8s_full_name(struct json_object *json);
/* An annotation of the present holder's: "kind", "owner", "value", "revoke". */
const char *mrt_k8s_note(struct json_object *json, const char *name);
uint64_t mrt_k8s_revoked(struct json_object *json);
/* The value of a holder of ours, or another's identity. To be freed; NULL: no
   memory. */
char *mrt_k8s_value(struct json_object *json, size_t *size);

/* The wall clock's time in ns, but one that rises with the monotonic clock: a renewal that wrote
   the same record again would be none to those who watch. `*ahead` is by how much the wall clock
   was ahead of that at most; 0 at first. client-go compares whole seconds alone, so they rise, too.
 */
int64_t mrt_k8s_rising_time(int64_t *ahead);

struct mrt_k8s_holding {
    struct mrt_id ticket;
    const char *full, *kind, *owner;
    const void *value; /* NULL: none */
    size_t value_size;
    int64_t seconds;
    int64_t time; /* of this write */
};
/* An object to write, which the caller puts. NULL: no memory. `old` NULL: a new object, whose
   leaseTransitions is `floor`. */
struct json_object *mrt_k8s_taken(struct json_object *old, const char *name, int64_t floor,
                                  const struct mrt_k8s_holding *holding);
struct json_object *mrt_k8s_renewed(struct json_object *old, const struct mrt_k8s_holding *holding);
struct json_object *mrt_k8s_released(struct json_object *old);
/* A new object that nobody holds. */
struct json_object *mrt_k8s_empty(const char *name, int64_t floor);
/* One more request to give it up. */
struct json_object *mrt_k8s_revoking(struct json_object *old);

#endif
