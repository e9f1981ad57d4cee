/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nats://[user@]host[:4222][,host[:port]...][/]?lease=10s&connect=5s&namespace=mortise&replicas=3
 *     &credentials=/path&tls=off|required|verify&tls_ca=/path
 * natss://... is the same with tls=verify, if the URI has no tls=.
 *
 * The password of the user, or a token if there is no user, is a line in the file of credentials=
 * or in MORTISE_NATS_AUTH; one in the URI is refused, unseen.
 */
#ifndef MRT_STORE_NATS_URI_H
#define MRT_STORE_NATS_URI_H

#include "base/name.h"
#include "base/uri.h"
#include "store/kit/address.h"
#include "store/nats/text.h"

struct mrt_nats_address {
    struct mrt_servers servers;
    mrt_time lease, connect;
    uint64_t replicas;                 /* 0: as many as the server's cluster needs */
    char base[MRT_NATS_BASE_SIZE];     /* of all subjects */
    char tickets[MRT_NATS_BASE_SIZE];  /* the stream of tickets and cells */
    char sessions[MRT_NATS_BASE_SIZE]; /* the stream of sessions of this lease */
};

/* 0, or MORTISE_EURI with particulars. */
int mrt_nats_uri_parse(const struct mrt_uri *uri, struct mrt_nats_address *address);
/* The password or the token into secret, "" for none; the caller wipes it. 0, or an error of
   mrt_credentials_read. */
int mrt_nats_secret_read(const struct mrt_uri *uri, const struct mrt_nats_address *address,
                         char secret[MRT_SECRET_MAX]);
/* The stream of sessions with a lease of so many milliseconds. */
void mrt_nats_sessions_stream(const struct mrt_nats_address *address, uint64_t lease,
                              char name[MRT_NATS_BASE_SIZE]);

#endif
