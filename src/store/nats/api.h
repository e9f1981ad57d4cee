/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JetStream as this store uses it: messages of a stream are read at its leader, one by one.
 *
 * Of a stream with replicas a former leader may answer a read with an older state, until it hears
 * of the newer leader; only the acknowledgement of a publish comes from a majority. So no decision
 * rests on what a read lacks: see walk.h and grave.h.
 */
#ifndef MRT_STORE_NATS_API_H
#define MRT_STORE_NATS_API_H

#include "store/nats/wire.h"

struct mrt_nats_message {
    char *subject, *bytes; /* NULL: there is none */
    size_t size;
    uint64_t sequence;
};

/* The first message at or behind this sequence whose subject matches. */
bool mrt_nats_get_next(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence,
                       const char *subject, mrt_nats_done *done, void *argument);
/* The newest message of a subject. */
bool mrt_nats_get_last(struct mrt_nats_wire *wire, const char *stream, const char *subject,
                       mrt_nats_done *done, void *argument);
/* Deletes a message; nobody is told whether that was done. */
void mrt_nats_delete(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence);
/* The message in the reply to a get. False: the reply is neither a message nor that there is none,
   or no memory; the caller ends with the reply, or as UNKNOWN. */
bool mrt_nats_message_read(const struct mrt_nats_reply *reply, struct mrt_nats_message *message);
void mrt_nats_message_free(struct mrt_nats_message *message);
/* Whether a ticket has left this place, and whether that is for good: nothing may come late. */
bool mrt_nats_is_gone(const struct mrt_nats_message *message, bool *for_good);

/* Subjects. `letter`: q, a (with an identity, or "*"), c, w. `token` is a name's. */
void mrt_nats_subject(const struct mrt_nats_address *address, char letter, const char *token,
                      const char *last, char subject[MRT_NATS_SUBJECT_SIZE]);
void mrt_nats_session_subject(const struct mrt_nats_address *address, uint64_t lease,
                              struct mrt_id session, char subject[MRT_NATS_SUBJECT_SIZE]);
/* Wakes who listens to a queue: a sign and a sequence. */
void mrt_nats_wake(struct mrt_nats_wire *wire, const char *token, char sign, uint64_t sequence);

#endif
