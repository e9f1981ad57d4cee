/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts, as the server is called to run them, and the keys that they use. */
#ifndef MRT_STORE_REDIS_SCRIPT_H
#define MRT_STORE_REDIS_SCRIPT_H

#include "store/redis/wire.h"

#include "mortise.h"

/* Of a key or a channel, with what ends it. */
#define MRT_REDIS_KEY_MAX (2 * MRT_REDIS_BASE_MAX + MORTISE_NAME_MAX + 260)

struct mrt_redis_store;

enum mrt_redis_script_name {
    MRT_REDIS_SESSION,
    MRT_REDIS_STOP,
    MRT_REDIS_APPEND,
    MRT_REDIS_ADOPT,
    MRT_REDIS_REFRESH,
    MRT_REDIS_REMOVE,
    MRT_REDIS_DETACH,
    MRT_REDIS_OBSERVE,
    MRT_REDIS_CELL,
    MRT_REDIS_LIST,
    MRT_REDIS_OPERATE,
    MRT_REDIS_FORWARD,
    MRT_REDIS_CLAIM_EXTEND,
    MRT_REDIS_CLAIM_SHOW,
    MRT_REDIS_CLAIM_DELETE
};

struct mrt_redis_script {
    char digest[41];
    const char *text;
    size_t length;
};
extern const struct mrt_redis_script mrt_redis_scripts[];

/* A key or a channel of the store's, of a kind that scripts/common.lua names; its length. */
size_t mrt_redis_key(const struct mrt_redis_store *store, const char *kind, const char *name,
                     char key[MRT_REDIS_KEY_MAX]);
/* Whether a cluster may keep the key of a claim of this name in another slot than all other keys.
 */
bool mrt_redis_claim_is_apart(const struct mrt_redis_store *store, const char *name);
/* Writes the key of a claim: its name, and behind it the namespace's tag if the URI is of a cluster
   and the name has no tag. Returns its length. */
size_t mrt_redis_claim_key(const struct mrt_redis_store *store, const char *name,
                           char key[MRT_REDIS_KEY_MAX]);
/* Calls a script of claims, of one key: by its digest, or in whole. Ends with NULL. */
__attribute__((sentinel)) void mrt_redis_claim_script_put(struct mrt_redis_wire *wire,
                                                          enum mrt_redis_script_name name,
                                                          bool whole, const char *key, ...);
/* Calls any other script, with all keys that can be known: of this session (NULL: an operator's),
   and of the queue or the cell of this name ("": none). */
void mrt_redis_script_put(const struct mrt_redis_store *store, struct mrt_redis_wire *wire,
                          enum mrt_redis_script_name script, bool whole, const char *session,
                          const char *name, const struct mrt_redis_text *arguments, size_t count);

#endif
