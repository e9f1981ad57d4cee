/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of etcd's JSON gateway (store/rest/wire.h). A transaction is sent once. With a user, calls
 * wait until a token has been fetched by the password; a token that is refused is fetched anew,
 * once a call. A server computes long for a password: with many clients that log in at once none
 * might have its answer in time, so each gives the next attempt twice as long.
 */
#ifndef MRT_STORE_ETCD_WIRE_H
#define MRT_STORE_ETCD_WIRE_H

#include "store/etcd/text.h"
#include "store/etcd/uri.h"
#include "store/rest/wire.h"

#define MRT_ETCD_ROOT "v3/"
#define MRT_ETCD_PATH_SIZE 64

struct mrt_etcd_wire {
    struct mrt_rest_wire rest;
    const struct mrt_etcd_address *address;
    const char *secret;
    char token[1024]; /* "": none */
    bool open;        /* the server knows no users */
    struct mrt_rest_call *login;
    unsigned late_logins; /* one after another that got no answer in time */
};

/* MORTISE_OK, ENOMEM, EINTERNAL. The address and the secret are the owner's. */
int mrt_etcd_wire_open(struct mrt_etcd_wire *wire, const struct mrt_etcd_address *address,
                       const char *secret);
void mrt_etcd_wire_close(struct mrt_etcd_wire *wire);

/* Sends a call; takes the text's bytes. `limit`: how long its answer may take; negative: so long,
   and it is urgent. NULL: no memory; the callback is not called. */
struct mrt_rest_call *mrt_etcd_send(struct mrt_etcd_wire *wire, const char *path,
                                    struct mrt_rest_text *body, mrt_time limit, mrt_rest_done *done,
                                    void *argument);
/* The same for a stream of lines, which ends when the server ends it: then `done` is called. */
struct mrt_rest_call *mrt_etcd_stream(struct mrt_etcd_wire *wire, const char *path,
                                      struct mrt_rest_text *body, mrt_rest_done *line,
                                      mrt_rest_done *done, void *argument);
/* Whether a call of this path may be sent only once. */
bool mrt_etcd_is_once(const char *path);

#endif
