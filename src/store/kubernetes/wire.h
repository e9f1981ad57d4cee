/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the API server (store/rest/wire.h). Each shows the token of the file that the URI
 * names, which is read anew when it has changed: the kubelet replaces a pod's token before it
 * expires. The file may be a symbolic link, as the kubelet's are; it is root's or this user's, and
 * nobody else may write to it. A token that is refused is read once more.
 *
 * The codes of refusals: MORTISE_ECONFLICT of a write that came too late (409), MORTISE_ENOTHELD of
 * an object that is not there (404). Nothing was done either time. A request that the server could
 * not finish (5xx) has an unknown outcome.
 */
#ifndef MRT_STORE_KUBERNETES_WIRE_H
#define MRT_STORE_KUBERNETES_WIRE_H

#include "store/kubernetes/uri.h"
#include "store/rest/wire.h"

#include <sys/types.h>
#include <time.h>

#define MRT_K8S_TARGET_SIZE 1536

struct mrt_k8s_wire {
    struct mrt_rest_wire rest;
    const struct mrt_k8s_address *address;
    char token[MRT_REST_TOKEN_MAX - 8]; /* "": none, or it could not be read */
    struct timespec changed;            /* of the file that it is of */
    ino_t file;
    char said[128]; /* of the newest refusal, in our words */
};

/* MORTISE_OK, ENOMEM. The address is the owner's. */
int mrt_k8s_wire_open(struct mrt_k8s_wire *wire, const struct mrt_k8s_address *address);
void mrt_k8s_wire_close(struct mrt_k8s_wire *wire);
/* Whether there is a token to show, if the URI names one: 0; EUNSAFE, EPERMISSION, EUNREACHABLE,
   EURI with particulars. */
int mrt_k8s_token_check(const struct mrt_k8s_address *address);

/* The path of the namespace's Leases, or of one; `query` behind it, "": none. */
void mrt_k8s_target(const struct mrt_k8s_address *address, const char *name, const char *query,
                    char target[MRT_K8S_TARGET_SIZE]);

#endif
