/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd's errors are known by their texts: the gateway's codes are those of gRPC, which put several
 * errors together. An error that is not in the table leaves the outcome unknown, which is always
 * true, and has the command repeated.
 */
#include "store/etcd/code.h"

#include "mortise.h"

#include <string.h>

static const struct {
    const char *text;
    enum mrt_etcd_class class;
    int error;
    const char *advice;
} table[] = {
    {"requested lease not found", MRT_ETCD_IS_REFUSAL, MORTISE_ELOST, ""},
    {"lease already exists", MRT_ETCD_IS_REFUSAL, MORTISE_EMISMATCH, ""},
    {"permission denied", MRT_ETCD_IS_REFUSAL, MORTISE_EPERMISSION,
     "; doc/etcd.md has the rights that are enough"},
    {"user name is empty", MRT_ETCD_IS_REFUSAL, MORTISE_EPERMISSION,
     "; the server wants a user: etcd://user@host and credentials="},
    {"authentication failed", MRT_ETCD_IS_REFUSAL, MORTISE_EPERMISSION, "; see credentials="},
    {"authentication is not enabled", MRT_ETCD_IS_REFUSAL, MORTISE_ENOTSUPPORTED, ""},
    {"invalid auth token", MRT_ETCD_IS_TOKEN, MORTISE_EPERMISSION, ""},
    {"revision of auth store is old", MRT_ETCD_IS_TOKEN, MORTISE_EPERMISSION, ""},
    {"database space exceeded", MRT_ETCD_IS_REFUSAL, MORTISE_ESTORE,
     "; the server takes nothing until it is compacted, defragmented and its alarm disarmed"},
    {"request is too large", MRT_ETCD_IS_REFUSAL, MORTISE_ESTORE, "; see --max-request-bytes"},
    {"too many operations", MRT_ETCD_IS_REFUSAL, MORTISE_ESTORE, "; see --max-txn-ops"},
    {"too large lease TTL", MRT_ETCD_IS_REFUSAL, MORTISE_EURI, "; see lease="},
    {"corrupt cluster", MRT_ETCD_IS_REFUSAL, MORTISE_ESTORE,
     "; the server has found its data corrupt"},
    {"Not Found", MRT_ETCD_IS_REFUSAL, MORTISE_ESTORE, "; etcd 3.4 or newer answers at /v3"},
    {"unknown service", MRT_ETCD_IS_REFUSAL, MORTISE_ESTORE, "; etcd 3.4 or newer answers at /v3"},
};

enum mrt_etcd_class mrt_etcd_classify(const char *text, int *error, const char **advice)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strstr(text, table[i].text)) {
            *error = table[i].error;
            *advice = table[i].advice;
            return table[i].class;
        }
    *error = MORTISE_EUNREACHABLE;
    *advice = "";
    return MRT_ETCD_IS_UNKNOWN;
}
