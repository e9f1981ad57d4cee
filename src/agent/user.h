/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users of an agent, as the kernel tells them, and what each of them uses of it: user.c.
 */
#ifndef MRT_AGENT_USER_H
#define MRT_AGENT_USER_H

#include "agent/access.h"
#include "core/uthash.h"

struct mrt_agent;

/* The locks of one name that a user has or waits for. */
struct mrt_usage {
    uint64_t tickets, waiters; /* a waiter is a ticket too */
    UT_hash_handle hh;
    char name[];
};

enum mrt_refusal { MRT_REFUSAL_ACCESS, MRT_REFUSAL_VERB, MRT_REFUSAL_LIMIT, MRT_REFUSALS };

struct mrt_user {
    uid_t uid;
    const struct mrt_limits *limits; /* NULL: none, the agent's own user and root */
    uint64_t connections, tickets, bytes;
    unsigned operations; /* of the worker: operate.c */
    struct mrt_usage *names;
    bool has_logged[MRT_REFUSALS];
    UT_hash_handle hh;
};

/* `is_served`: he is not only refused. NULL: no memory, or there are too many users. */
struct mrt_user *mrt_user_find(struct mrt_agent *agent, uid_t uid, bool is_served);
void mrt_users_free(struct mrt_agent *agent);
/* Counts one more lock that waits for this full name. NULL: MORTISE_EFULL, whose particulars say
   which limit it is. */
struct mrt_usage *mrt_user_take(struct mrt_agent *agent, struct mrt_user *user, pid_t pid,
                                const char *name);
/* It does not wait any more. */
void mrt_usage_settle(struct mrt_usage *usage);
/* It is gone; `waits`: it waited until now. */
void mrt_user_give_back(struct mrt_user *user, struct mrt_usage *usage, bool waits);
/* Logs a refusal, the first of its kind that this user has. */
__attribute__((format(printf, 5, 6))) void mrt_user_log(const struct mrt_agent *agent,
                                                        struct mrt_user *user, pid_t pid,
                                                        enum mrt_refusal kind, const char *format,
                                                        ...);

#endif
