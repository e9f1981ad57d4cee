/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the server: the first word says whether anything can have been done. A server checks
 * what it can before a script's first write; an error that is not in the table may have come in the
 * middle of one, and then the outcome is unknown.
 */
#include "store/redis/error.h"

#include "mortise.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *word;
    enum mrt_redis_outcome outcome;
    int error;
    const char *advice;
} errors[] = {
    {"NOSCRIPT", MRT_REDIS_NO_SCRIPT, MORTISE_ESTORE, ""},
    {"LOADING", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"BUSY", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"TRYAGAIN", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"CLUSTERDOWN", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"MASTERDOWN", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"NOREPLICAS", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"READONLY", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, " (this server is a replica)"},
    {"MISCONF", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"OOM", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, ""},
    {"NOAUTH", MRT_REDIS_REFUSED, MORTISE_EPERMISSION, " (give credentials=/path)"},
    {"WRONGPASS", MRT_REDIS_REFUSED, MORTISE_EPERMISSION, ""},
    {"NOPERM", MRT_REDIS_REFUSED, MORTISE_EPERMISSION, ""},
    {"WRONGTYPE", MRT_REDIS_REFUSED, MORTISE_EMISMATCH, " (a key of this name is something else)"},
    {"MOVED", MRT_REDIS_REFUSED, MORTISE_ENOTSUPPORTED,
     " (redis+cluster: finds the node of a key; a name as {mortise/}NAME is in its namespace's)"},
    {"ASK", MRT_REDIS_NOT_DONE, MORTISE_ESTORE, " (the cluster is moving this namespace)"},
    {"CROSSSLOT", MRT_REDIS_REFUSED, MORTISE_ENOTSUPPORTED, ""},
};

/* Errors that begin with no code word: a part of their text identifies them. */
static const struct {
    const char *part;
    int error;
    const char *advice;
} plain_errors[] = {
    {"unknown command", MORTISE_ENOTSUPPORTED, " (the store needs scripts)"},
    {"AUTH", MORTISE_EPERMISSION, ""},
    {"unauthenticated", MORTISE_EPERMISSION, " (give credentials=/path)"}, /* of a longer command */
    {"invalid password", MORTISE_EPERMISSION, ""},
    {"DB index", MORTISE_EURI, ""},
    {"max number of clients", MORTISE_ESTORE, ""},
};

enum mrt_redis_outcome mrt_redis_classify(const char *text, int *error, const char **advice)
{
    size_t length = strcspn(text, " ");
    *advice = "";
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strlen(errors[i].word) == length && memcmp(errors[i].word, text, length) == 0) {
            *error = errors[i].error;
            *advice = errors[i].advice;
            return errors[i].outcome;
        }
    for (size_t i = 0; i < sizeof plain_errors / sizeof plain_errors[0]; i++)
        if (strstr(text, plain_errors[i].part)) {
            *error = plain_errors[i].error;
            *advice = plain_errors[i].advice;
            return *error == MORTISE_ESTORE ? MRT_REDIS_NOT_DONE : MRT_REDIS_REFUSED;
        }
    *error = MORTISE_ESTORE;
    return MRT_REDIS_UNKNOWN;
}
