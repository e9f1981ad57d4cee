/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay stands between a connection in the clear and libnats, whose descriptor becomes an end of
 * a pair of sockets: what comes from the server is passed on in whole units (unit.h), and what the
 * library sends as it stands. A connection by TLS has none, since its bytes cannot be read here.
 *
 * Threads: its owner's.
 */
#ifndef MRT_STORE_NATS_RELAY_H
#define MRT_STORE_NATS_RELAY_H

#include "store/nats/unit.h"

#include <stdbool.h>

struct mrt_nats_relay {
    int outer, inner; /* to the server, and to the library; -1: there is no relay */
    char *in, *out;   /* each of MRT_NATS_UNIT_MAX */
    size_t in_size, out_size;
};

/* Takes the place of the library's connection. False: no memory, or no descriptor. */
bool mrt_nats_relay_open(struct mrt_nats_relay *relay, int library);
/* Passes on what the server has sent, and then calls `read` if there is something for the library.
   NULL: fine; else why no more will come. */
const char *mrt_nats_relay_receive(struct mrt_nats_relay *relay, void (*read)(void *argument),
                                   void *argument);
/* Passes on what the library has sent. Whether some of it is left, since the server takes no more
   now. */
bool mrt_nats_relay_send(struct mrt_nats_relay *relay);
/* The library finds its connection broken. */
void mrt_nats_relay_shut(struct mrt_nats_relay *relay);
void mrt_nats_relay_close(struct mrt_nats_relay *relay);

#endif
