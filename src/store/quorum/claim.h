/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets, each a claim at a majority of the members. */
#ifndef MRT_STORE_QUORUM_CLAIM_H
#define MRT_STORE_QUORUM_CLAIM_H

#include "store/quorum/request.h"

enum mrt_quorum_claim { MRT_CLAIM_NONE, MRT_CLAIM_ASKED, MRT_CLAIM_PERHAPS, MRT_CLAIM_HAS };

enum mrt_quorum_step {
    MRT_QUORUM_IDLE,     /* it has no claim */
    MRT_QUORUM_CLAIMING, /* all are asked */
    MRT_QUORUM_HELD,
    MRT_QUORUM_LOOKING, /* HELD, and the members that have the claim are queried */
    MRT_QUORUM_LEAVING
};

struct mrt_quorum_ticket {
    TAILQ_ENTRY(mrt_quorum_ticket) link;
    enum mrt_quorum_step step;
    struct mrt_command command; /* under way, if `busy`; the engine owns its texts */
    bool busy;
    uint64_t round;
    struct mrt_id token; /* of the round: the claim's identity at the members */
    mrt_time asked_at;   /* when the round began */
    mrt_time decide_at;  /* a member that has not answered by then does not count */
    unsigned blocked;    /* members where another client has the claim, in this round */
    unsigned failures;   /* rounds in a row */
    unsigned doubted;    /* bits: members that have reported on its claim; not handled yet */
    int error;           /* of a member that refused */
    char detail[160];
    enum mrt_quorum_claim claims[MRT_QUORUM_MEMBERS_MAX];
    /* The requests that release a claim. They are allocated before the claim is requested, so that
     * a release never lacks memory. */
    struct mrt_quorum_request *removals[MRT_QUORUM_MEMBERS_MAX];
    char queue[];
};

void mrt_quorum_ticket_submit(struct mrt_quorum_store *store, const struct mrt_command *command,
                              mrt_time now);
void mrt_quorum_ticket_answer(struct mrt_quorum_store *store,
                              const struct mrt_quorum_request *request);
/* Decides claims that can be decided, also after a member has gone. */
void mrt_quorum_tickets_due(struct mrt_quorum_store *store, mrt_time now);
mrt_time mrt_quorum_tickets_next(const struct mrt_quorum_store *store);
/* Wakes the ticket's client, which refreshes the ticket. */
void mrt_quorum_ticket_wake(struct mrt_quorum_store *store, const struct mrt_quorum_ticket *ticket);
/* Notes that a member has reported on a claim unasked; no token: on all of its claims. */
void mrt_quorum_ticket_doubt(const struct mrt_quorum_member *member, struct mrt_id token);
/* Acts upon these notes; false: there were none. */
bool mrt_quorum_tickets_act(struct mrt_quorum_store *store);
/* A member's session has ended, and its claims with it. */
void mrt_quorum_tickets_lose(struct mrt_quorum_store *store,
                             const struct mrt_quorum_member *member);
/* Ends all; a command under way has an unknown outcome. */
void mrt_quorum_tickets_free(struct mrt_quorum_store *store);
/* The same, without an event. */
void mrt_quorum_tickets_drop(struct mrt_quorum_store *store);

#endif
