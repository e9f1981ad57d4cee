/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a ticket's session is dead, and the removal of a dead one's ticket.
 *
 * A session is dead once a majority has taken "dead" in its place, on condition that what stood
 * there is still the newest: a sign of life that has not been followed by another for a lease, or
 * nothing, since the server has dropped that. From then on the session can send no sign of life,
 * since each has the condition that the one before it is the newest. So death is certain and final,
 * and the removal may arrive however late. A read is not enough: a former
 * leader may answer it from an older state, or by its own clock.
 *
 * The server's clock may have stepped ahead, so that a session ends while its client believes in
 * it. So a ticket is removed only once its client knows, too (`knows`).
 *
 * A ticket that is being detached, or adopted, is changed by a publish to its other subject. So
 * "dead" is published there first, on condition that nothing has changed: one of the two is
 * refused.
 */
#ifndef MRT_STORE_NATS_GRAVE_H
#define MRT_STORE_NATS_GRAVE_H

#include "store/nats/api.h"

#define MRT_NATS_DEAD "dead"

enum mrt_nats_verdict {
    MRT_NATS_ALIVE, /* or not known to be dead */
    MRT_NATS_IS_DEAD,
    MRT_NATS_IS_DOOMED, /* it is dead, and its ticket is there still */
    MRT_NATS_NO_VERDICT /* `reply` says why */
};

struct mrt_nats_grave {
    struct mrt_nats_wire *wire;
    const char *token; /* of the queue */
    const char *name;  /* of the ticket, and its session */
    uint64_t sequence, lease;
    struct mrt_id session;
    bool looks; /* only: nothing is removed */
    /* Whether its client knows that it has ended (session.c). */
    bool (*knows)(struct mrt_nats_grave *grave, uint64_t sequence);
    void *judge; /* its own */
    unsigned turns;
    bool has_ended; /* its client knows */
    uint64_t attribute;
    void (*done)(void *argument, enum mrt_nats_verdict verdict, const struct mrt_nats_reply *reply);
    void *argument;
};

void mrt_nats_grave_begin(struct mrt_nats_grave *grave);
/* Whether a message is the one that ends what stood in its place. */
bool mrt_nats_is_dead(const struct mrt_nats_message *message);

#endif
