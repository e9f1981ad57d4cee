/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a server reports about itself (INFO), and draws the consequences.
 *
 * redis_mode: whether the server is a node of a cluster; see claim.c.
 *
 * run_id: which run of which server a connection leads to. A connection's number means nothing to
 * another run; see connection.c.
 *
 * uptime=DURATION: a server without persistence forgets all holders when it restarts. So it is not
 * used before it has been up for that long, which must be at least the longest lease of any client
 * that uses it. Then, in a quorum, a member that restarts cannot let in a second holder. The
 * uptime is read on each connection, before anything else is sent.
 *
 * A server that may drop keys when it is short of memory is reported in the log, once.
 */
#include "store/redis/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text after "\nNAME:"; NULL: the reply has no such field. */
static const char *field(const redisReply *reply, const char *name)
{
    char line[48];
    if (reply->type != REDIS_REPLY_STRING)
        return NULL;
    int length = snprintf(line, sizeof line, "\n%s:", name);
    const char *found = strstr(reply->str, line);
    return found ? found + length : NULL;
}

/* ------------------------------------------------------------------ which it is */

bool mrt_redis_check_server(struct mrt_redis_store *store, struct mrt_redis_job *next)
{
    if (!mrt_redis_job_add(store, MRT_REDIS_SERVER, next))
        return false;
    mrt_redis_wire_words(&store->wire, "INFO", "server", NULL);
    return true;
}

static void keep_server(struct mrt_redis_store *store, const redisReply *reply)
{
    const char *run = field(reply, "run_id");
    char *server = store->connection.server;
    snprintf(server, sizeof store->connection.server, "%.*s", run ? (int)strcspn(run, "\r\n") : 0,
             run ? run : "");
    const char *mode = field(reply, "redis_mode");
    store->connection.clustered = mode && strncmp(mode, "cluster", strlen("cluster")) == 0;
}

/* ------------------------------------------------------------------ how long it has been up */

bool mrt_redis_check_server_reply(struct mrt_redis_store *store, const redisReply *reply)
{
    const char *text = field(reply, "uptime_in_seconds");
    int64_t seconds = text ? strtoll(text, NULL, 10) : -1;
    keep_server(store, reply);
    store->server_awaited = false;
    if (store->address.uptime == 0)
        return true;
    if (seconds > (store->address.uptime + MRT_SECOND - 1) / MRT_SECOND) /* which are rounded */
        return true;
    if (seconds < 0) {
        store->refusal = MORTISE_EPERMISSION;
        snprintf(store->refusal_text, sizeof store->refusal_text,
                 "the server does not say how long it has been up, which uptime= needs: %.100s",
                 reply->type == REDIS_REPLY_ERROR ? reply->str : "");
        return false;
    }
    store->refusal = MORTISE_EUNREACHABLE;
    snprintf(store->refusal_text, sizeof store->refusal_text,
             "%.100s has been up for %" PRId64 " s, which is less than uptime=%" PRId64 "ms",
             store->address.shown, seconds, store->address.uptime / MRT_MILLISECOND);
    return false;
}

/* ------------------------------------------------------------------ whether it drops keys */

void mrt_redis_check_memory(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    bool *asked = &store->memory_asked[job->command.claim];
    if (*asked || store->notes.each[MRT_REDIS_NOTE_EVICTION].taken ||
        !mrt_redis_job_add(store, MRT_REDIS_MEMORY, job))
        return;
    *asked = true;
    mrt_redis_wire_words(&store->wire, "INFO", "memory", NULL);
}

void mrt_redis_check_memory_reply(struct mrt_redis_store *store, const redisReply *reply)
{
    const char *limit = field(reply, "maxmemory"), *policy = field(reply, "maxmemory_policy");
    if (!limit || !policy || strtoull(limit, NULL, 10) == 0)
        return;
    bool all = strncmp(policy, "allkeys", 7) == 0, some = strncmp(policy, "volatile", 8) == 0;
    if (!all && !(some && store->memory_asked[1]))
        return;
    mrt_note(&store->notes, MRT_REDIS_NOTE_EVICTION,
             "the server drops keys when its memory is short (maxmemory-policy %.*s): %s may "
             "be lost; noeviction keeps them",
             (int)strcspn(policy, "\r\n"), policy, all ? "locks" : "claims");
}
