/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and what they use: see user.h. A user stays known until the agent ends, so a refusal is
 * logged once however often it is provoked; as many as USERS_MAX are served. Those who are refused
 * fill half of that at most, because one person may have many numbers (/etc/subuid). The agent's
 * own user and root always have their places.
 *
 * Invariant: a user's tickets are the sum of those of his names, and no name without one is kept.
 */
#include "agent/user.h"

#include "agent/peer.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USERS_MAX 4096

struct mrt_user *mrt_user_find(struct mrt_agent *agent, uid_t uid, bool is_served)
{
    struct mrt_user *user;
    bool is_own = uid == agent->uid || uid == 0;
    size_t most = is_own ? SIZE_MAX : is_served ? USERS_MAX : USERS_MAX / 2;
    HASH_FIND(hh, agent->users, &uid, sizeof uid, user);
    if (user || HASH_COUNT(agent->users) >= most)
        return user;
    user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->uid = uid;
    if (!is_own)
        user->limits = mrt_access_limits(agent->access, uid);
    HASH_ADD(hh, agent->users, uid, sizeof uid, user);
    if (user->hh.tbl)
        return user;
    free(user);
    return NULL;
}

void mrt_users_free(struct mrt_agent *agent)
{
    struct mrt_user *user, *next;
    struct mrt_usage *usage, *next_usage;
    HASH_ITER (hh, agent->users, user, next) {
        HASH_ITER (hh, user->names, usage, next_usage) {
            HASH_DEL(user->names, usage);
            free(usage);
        }
        HASH_DEL(agent->users, user);
        free(user);
    }
}

void mrt_user_log(const struct mrt_agent *agent, struct mrt_user *user, pid_t pid,
                  enum mrt_refusal kind, const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (user->has_logged[kind] || !agent->log)
        return;
    user->has_logged[kind] = true;
    int length = snprintf(text, sizeof text, "user %u (process %d) is refused: ", user->uid, pid);
    va_start(arguments, format);
    vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    agent->log(agent->log_argument, text);
}

static struct mrt_usage *new_usage(struct mrt_user *user, const char *name)
{
    size_t size = strlen(name);
    struct mrt_usage *usage = calloc(1, sizeof *usage + size + 1);
    if (!usage)
        return NULL;
    memcpy(usage->name, name, size + 1);
    HASH_ADD_KEYPTR(hh, user->names, usage->name, size, usage);
    if (usage->hh.tbl)
        return usage;
    free(usage);
    return NULL;
}

/* The limit that one more ticket of this name would pass; NULL: none. */
static const char *find_limit(const struct mrt_user *user, const struct mrt_usage *usage)
{
    const struct mrt_limits *limits = user->limits;
    if (!limits)
        return NULL;
    if (user->tickets >= limits->tickets)
        return "tickets";
    if (!usage && HASH_COUNT(user->names) >= limits->names)
        return "names";
    return usage && usage->waiters >= limits->waiters ? "waiters" : NULL;
}

struct mrt_usage *mrt_user_take(struct mrt_agent *agent, struct mrt_user *user, pid_t pid,
                                const char *name)
{
    struct mrt_usage *usage;
    HASH_FIND(hh, user->names, name, strlen(name), usage);
    const char *limit = find_limit(user, usage);
    if (limit) {
        mrt_user_log(agent, user, pid, MRT_REFUSAL_LIMIT, "he has all the %s of his limit", limit);
        mrt_error(MORTISE_EFULL, "user %u has all the %s of his limit", user->uid, limit);
        return NULL;
    }
    if (!usage)
        usage = new_usage(user, name);
    if (!usage) {
        mrt_error(MORTISE_EFULL, "the agent has no memory for another lock");
        return NULL;
    }
    usage->tickets++;
    usage->waiters++;
    user->tickets++;
    return usage;
}

void mrt_usage_settle(struct mrt_usage *usage)
{
    usage->waiters--;
}

void mrt_user_give_back(struct mrt_user *user, struct mrt_usage *usage, bool waits)
{
    usage->waiters -= waits;
    usage->tickets--;
    user->tickets--;
    if (usage->tickets > 0)
        return;
    HASH_DEL(user->names, usage);
    free(usage);
}
