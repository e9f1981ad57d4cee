/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's calls: on a wire of their own, one at a time, each waited for within the
   client's time-out. Of the store they read what stays as it was opened. */
#ifndef MRT_STORE_NATS_ASK_H
#define MRT_STORE_NATS_ASK_H

#include "store/nats/internal.h"

struct mrt_nats_operation {
    const struct mrt_nats_address *address;
    struct mrt_nats_wire wire;
    mrt_time timeout, deadline; /* of each call */
    /* Of the newest call: */
    bool ended, unknown;
    int error, code;
    uint64_t sequence;
    struct json_object *json;
    bool is_dead; /* a session that was looked up */
};

int mrt_nats_operation_open(struct mrt_nats_operation *operation,
                            const struct mrt_nats_address *address, const char *secret,
                            mrt_time timeout);
void mrt_nats_operation_close(struct mrt_nats_operation *operation);
/* The callback of a call, with the operation as its argument. */
void mrt_nats_operation_answered(void *argument, const struct mrt_nats_reply *reply);
/* Waits until the newest call has ended; `begun` false: there was no memory for it. 0, or a code
   with its particulars. */
int mrt_nats_operation_wait(struct mrt_nats_operation *operation, bool begun);
/* Ends the requests under way, whose callbacks do not come any more. */
void mrt_nats_operation_end_wire(struct mrt_nats_operation *operation);
/* Publishes and waits. */
int mrt_nats_ask(struct mrt_nats_operation *operation, const char *subject, int64_t expected,
                 const void *bytes, size_t size);

/* The message that the newest call, a get, has found; `error` is the call's. */
int mrt_nats_take_message(struct mrt_nats_operation *operation, int error,
                          struct mrt_nats_message *message);
/* The first message of the stream of tickets at or behind this sequence. */
int mrt_nats_read_next(struct mrt_nats_operation *operation, uint64_t sequence, const char *subject,
                       struct mrt_nats_message *message);
/* Whether a session is dead, and its ticket removed unless the grave only looks. */
bool mrt_nats_judge(struct mrt_nats_operation *operation, struct mrt_nats_grave *grave);
/* Removes tickets of the dead in queues that nobody uses, if it can. */
void mrt_nats_sweep(struct mrt_nats_operation *operation);

int mrt_nats_list(struct mrt_store *port, const char *name, const char *prefix,
                  mrt_listed_callback callback, void *argument);
int mrt_nats_revoke(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_nats_break(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_nats_server(struct mrt_store *port, char *text, size_t size);
int mrt_nats_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
int mrt_nats_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
