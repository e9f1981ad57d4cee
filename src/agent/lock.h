/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of connections: locks, questions to the store, processes that have locks, and the list
 * of all. Of agent/ only.
 */
#ifndef MRT_AGENT_LOCK_H
#define MRT_AGENT_LOCK_H

#include "agent/peer.h"

/* ------------------------------------------------------------------ lock.c */

/* The options of a LOCK, beside the name. */
struct mrt_lock_wish {
    struct mrt_recipe recipe;
    uint64_t weight;
    mrt_time deadline;
    bool try_only;
    mrt_time longest; /* how long the hold lasts at most; 0: for ever */
    bool binds;       /* BIND PROCESS */
    struct mrt_resp_word label, value;
};

void mrt_lock_take(struct mrt_peer *peer, const struct mrt_resp_word *name,
                   const struct mrt_lock_wish *wish, struct mrt_reply *reply);
void mrt_lock_release(struct mrt_peer *peer, const struct mrt_resp_word *name, uint64_t fence,
                      struct mrt_reply *reply);
void mrt_lock_tell(struct mrt_peer *peer, const struct mrt_resp_word *name,
                   struct mrt_reply *reply);
/* Sets its end anew, so long from now. */
void mrt_lock_extend(struct mrt_peer *peer, const struct mrt_resp_word *name, uint64_t fence,
                     mrt_time longest, struct mrt_reply *reply);
/* The name with the namespace and the user's space before it; false: it is no name, and the reply
   says why. */
bool mrt_lock_name(const struct mrt_peer *peer, const struct mrt_resp_word *name,
                   char full[MRT_FULL_NAME_SIZE], struct mrt_reply *reply);
/* A question whose answer is replied so; NULL: no memory. */
struct mrt_lock *mrt_lock_new_question(struct mrt_peer *peer, mrt_question_reply *reply);
/* Its acquire, or its question, has ended: replies. */
void mrt_lock_finish(struct mrt_lock *lock, struct mrt_reply *reply);
/* Ends the LOCK that waits; there is one. False: it has been granted, or has failed, already. */
bool mrt_lock_cancel(struct mrt_peer *peer);
/* Ends one that waits, or releases one that is held, and frees it. */
void mrt_lock_drop(struct mrt_lock *lock);
bool mrt_lock_has_name(const struct mrt_lock *lock, const struct mrt_resp_word *name);
/* Whether a lock of the peer is held. */
bool mrt_lock_any_held(const struct mrt_peer *peer);

/* ------------------------------------------------------------------- ask.c */

/* Asks the store: `wanted` lacks its name alone. */
void mrt_ask(struct mrt_peer *peer, struct mrt_command *wanted, const struct mrt_resp_word *name,
             struct mrt_reply *reply);

/* ------------------------------------------------------------------ list.c */

void mrt_list(struct mrt_peer *peer, const struct mrt_resp_word *prefix, struct mrt_reply *reply);
/* Client sessions (desk.h) that there are now, and locks, of both protocols. */
struct mrt_agent_counts {
    size_t sessions, tickets, holders;
};
void mrt_count(const struct mrt_agent *agent, struct mrt_agent_counts *counts);

#endif
