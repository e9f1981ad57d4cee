/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of scripts. A script is called by its digest (EVALSHA); a server that does not know it says
 * NOSCRIPT, and is sent the script itself (EVAL).
 */
#include "store/redis/script.h"

#include "base/assert.h"
#include "store/redis/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 12
#define KEYS_MAX 6

/* Keys that a script uses besides the sessions, the queues and the values, and that can be named
   before it runs. It finds the rest in the data: see head.lua. */
enum { OWN = 1, NOBODY = 2, QUEUE = 4, CELL = 8, CLAIM = 16, FENCE = 32 };
static const unsigned char used[] = {
    [MRT_REDIS_SESSION] = OWN | FENCE,
    [MRT_REDIS_STOP] = OWN,
    [MRT_REDIS_APPEND] = OWN | QUEUE,
    [MRT_REDIS_ADOPT] = OWN | QUEUE | NOBODY,
    [MRT_REDIS_REFRESH] = OWN | QUEUE,
    [MRT_REDIS_REMOVE] = OWN | QUEUE,
    [MRT_REDIS_DETACH] = OWN | QUEUE | NOBODY,
    [MRT_REDIS_OBSERVE] = OWN | QUEUE,
    [MRT_REDIS_CELL] = OWN | CELL,
    [MRT_REDIS_LIST] = QUEUE | CLAIM,
    [MRT_REDIS_OPERATE] = QUEUE | CLAIM,
    [MRT_REDIS_FORWARD] = FENCE,
};

struct keys {
    struct mrt_redis_text texts[KEYS_MAX];
    size_t count;
    char room[KEYS_MAX][MRT_REDIS_KEY_MAX];
};

static void put_call(struct mrt_redis_wire *wire, enum mrt_redis_script_name name, bool whole,
                     const struct mrt_redis_text *keys, size_t key_count,
                     const struct mrt_redis_text *arguments, size_t count)
{
    const struct mrt_redis_script *script = &mrt_redis_scripts[name];
    struct mrt_redis_text words[3 + KEYS_MAX + ARGUMENTS_MAX];
    const char digit[] = {(char)('0' + key_count), '\0'};
    MRT_ASSERT(key_count <= KEYS_MAX && count <= ARGUMENTS_MAX);
    words[0] = mrt_redis_text_of(whole ? "EVAL" : "EVALSHA");
    words[1] = whole ? (struct mrt_redis_text){script->text, script->length}
                     : mrt_redis_text_of(script->digest);
    words[2] = mrt_redis_text_of(digit);
    memcpy(words + 3, keys, key_count * sizeof *keys);
    memcpy(words + 3 + key_count, arguments, count * sizeof *arguments);
    mrt_redis_wire_put(wire, words, 3 + key_count + count);
}

void mrt_redis_claim_script_put(struct mrt_redis_wire *wire, enum mrt_redis_script_name name,
                                bool whole, const char *key, ...)
{
    struct mrt_redis_text only = mrt_redis_text_of(key), texts[ARGUMENTS_MAX];
    va_list arguments;
    va_start(arguments, key);
    size_t count = mrt_redis_texts(texts, ARGUMENTS_MAX, arguments);
    va_end(arguments);
    put_call(wire, name, whole, &only, 1, texts, count);
}

size_t mrt_redis_key(const struct mrt_redis_store *store, const char *kind, const char *name,
                     char key[MRT_REDIS_KEY_MAX])
{
    size_t base = strlen(store->address.base), middle = strlen(kind), end = strlen(name);
    MRT_ASSERT(base + middle + end < MRT_REDIS_KEY_MAX);
    memcpy(key, store->address.base, base);
    memcpy(key + base, kind, middle);
    memcpy(key + base + middle, name, end);
    key[base + middle + end] = '\0';
    return base + middle + end;
}

/* In the namespace "" a name is another program's as well, and stays as it is. */
bool mrt_redis_claim_is_apart(const struct mrt_redis_store *store, const char *name)
{
    return !strchr(name, '{') && strcmp(store->address.base, "{/}") != 0;
}

size_t mrt_redis_claim_key(const struct mrt_redis_store *store, const char *name,
                           char key[MRT_REDIS_KEY_MAX])
{
    bool adds = store->address.way == MRT_REDIS_CLUSTER && mrt_redis_claim_is_apart(store, name);
    int length = snprintf(key, MRT_REDIS_KEY_MAX, "%s%s", name, adds ? store->address.base : "");
    MRT_ASSERT(length >= 0 && length < MRT_REDIS_KEY_MAX);
    return (size_t)length;
}

static void add_key(const struct mrt_redis_store *store, struct keys *keys, const char *kind,
                    const char *name)
{
    char *room = keys->room[keys->count];
    size_t length = mrt_redis_key(store, kind, name, room);
    keys->texts[keys->count++] = (struct mrt_redis_text){room, length};
}

void mrt_redis_script_put(const struct mrt_redis_store *store, struct mrt_redis_wire *wire,
                          enum mrt_redis_script_name script, bool whole, const char *session,
                          const char *name, const struct mrt_redis_text *arguments, size_t count)
{
    struct keys keys;
    char claim[MRT_REDIS_KEY_MAX];
    keys.count = 0;
    add_key(store, &keys, "sessions", "");
    add_key(store, &keys, "queues", "");
    add_key(store, &keys, "values", "");
    if (used[script] & OWN)
        add_key(store, &keys, "s:", session);
    if (used[script] & NOBODY)
        add_key(store, &keys, "s:", "00000000000000000000000000000000");
    if (used[script] & FENCE)
        add_key(store, &keys, "fence", "");
    if (used[script] & QUEUE && *name)
        add_key(store, &keys, "q:", name);
    if (used[script] & CELL)
        add_key(store, &keys, "k:", name);
    if (used[script] & CLAIM && *name) {
        mrt_redis_claim_key(store, name, claim);
        add_key(store, &keys, "n:", claim);
    }
    put_call(wire, script, whole, keys.texts, keys.count, arguments, count);
}
