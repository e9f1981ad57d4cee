/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two streams of a store: found, compared with what this store makes, and made if one is
 * missing. A stream that somebody else has made is refused.
 */
#ifndef MRT_STORE_NATS_STREAM_H
#define MRT_STORE_NATS_STREAM_H

#include "store/nats/wire.h"

/* How much longer than a lease the server keeps a session: by so much its clock may be corrected,
   and the clocks of its replicas may differ. */
#define MRT_NATS_SLACK MRT_SECOND

struct mrt_nats_streams {
    struct mrt_nats_wire *wire;
    bool sessions; /* it is this one's turn */
    uint64_t replicas;
    uint64_t found; /* how many the stream of tickets has */
    char text[256]; /* a refusal's */
    /* Once, with the reply that ended it: DONE if all is well. */
    mrt_nats_done *done;
    void *argument;
};

#define MRT_NATS_REQUEST_SIZE (8 * MRT_NATS_BASE_SIZE)
/* The request that makes one of the streams. */
void mrt_nats_stream_request(const struct mrt_nats_address *address, bool sessions,
                             uint64_t replicas, char subject[MRT_NATS_REQUEST_SIZE],
                             char json[MRT_NATS_REQUEST_SIZE]);
/* False: no memory. The struct stays where it is until `done`. */
bool mrt_nats_streams_check(struct mrt_nats_streams *streams);

#endif
