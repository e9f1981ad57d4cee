/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of an agent: which users may do what with which names, and how much of the agent each
 * may use. The agent's own user and root may do all, and are not asked about here.
 *
 * A file of lines; "#" begins a comment. Words are parted by blanks:
 *
 *     allow user NAME|UID|* VERB... on PREFIX|*
 *     allow group NAME|GID VERB... on PREFIX|*
 *     limit user NAME|UID|* [connections N] [tickets N] [names N] [waiters N] [bytes N] [hold D]
 *     namespace %u
 *
 * Names that users send are compared byte by byte with PREFIX. With "namespace %u" the locks of a
 * user are in a space of his own, which his number names; PREFIX is compared before that.
 *
 * Threads: none; once read it is constant. Another one takes its place at SIGHUP.
 */
#ifndef MRT_AGENT_ACCESS_H
#define MRT_AGENT_ACCESS_H

#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MRT_ACCESS_RULES_MAX 256

enum mrt_access_verb {
    MRT_ACCESS_ACQUIRE = 1, /* a lock of any kind */
    MRT_ACCESS_SHARED = 2,  /* a reader's alone */
    MRT_ACCESS_LIST = 4,
    MRT_ACCESS_CELLS = 8,
    MRT_ACCESS_REVOKE = 16,
    MRT_ACCESS_BREAK = 32,
    MRT_ACCESS_ADOPT = 64
};

/* The most that a user may use at a time. */
struct mrt_limits {
    uint64_t connections;
    uint64_t tickets; /* locks that he has or waits for */
    uint64_t names;   /* of those, which differ */
    uint64_t waiters; /* his, for one name */
    uint64_t bytes;   /* kept for his connections: replies that he does not read, commands */
    mrt_time hold;    /* how long one lasts at most; 0: for ever */
};

struct mrt_access;

/* The rules that are somebody's: a bit each. */
struct mrt_access_rules {
    uint64_t bits[MRT_ACCESS_RULES_MAX / 64];
};

/* Reads a policy. 0; MORTISE_EUNSAFE: others may write the file; MORTISE_EINVALID with the line and
   the word that is wrong. */
int mrt_access_read(const char *path, struct mrt_access **access);
void mrt_access_free(struct mrt_access *access);
/* Finds the rules of a user with these groups; false: there is none. */
bool mrt_access_find(const struct mrt_access *access, uid_t uid, const gid_t *groups, size_t count,
                     struct mrt_access_rules *rules);
/* Whether one of the rules has one of the verbs for this name. */
bool mrt_access_allows(const struct mrt_access *access, const struct mrt_access_rules *rules,
                       unsigned verbs, const char *name, size_t size);
/* The word that stands for the narrowest of these verbs. */
const char *mrt_access_verb_name(unsigned verbs);
const struct mrt_limits *mrt_access_limits(const struct mrt_access *access, uid_t uid);
/* Whether each user has a space of his own. */
bool mrt_access_has_spaces(const struct mrt_access *access);
/* The numbers that the kernel gives for users and groups that this system does not know. */
uid_t mrt_access_no_user(void);
gid_t mrt_access_no_group(void);

#endif
