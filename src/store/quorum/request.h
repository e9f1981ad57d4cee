/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to members, with the answer of each until it is handled. */
#ifndef MRT_STORE_QUORUM_REQUEST_H
#define MRT_STORE_QUORUM_REQUEST_H

#include "store/quorum/internal.h"

struct mrt_quorum_request {
    TAILQ_ENTRY(mrt_quorum_request) link;
    struct mrt_quorum_member *member;
    struct mrt_command command;
    struct mrt_id ticket; /* the engine's; none: a claim that has been let go */
    uint64_t round;       /* of the claims, or of the RENEWs */
    mrt_time sent;        /* RENEW: when its round began */
    mrt_time again;       /* unproven: when to repeat it; NEVER: it is under way */
    bool is_answered;
    mrt_time answered; /* when that was received, or later */
    bool is_forgotten; /* the answer is ignored; until it comes the member uses our texts */
    struct mrt_event answer;
    char detail[160];
    char queue[];
};

/* Makes a request, without sending it; NULL: no memory. The caller frees it if it is never sent. */
struct mrt_quorum_request *mrt_quorum_request_new(struct mrt_quorum_member *member,
                                                  const char *queue);
/* False: the member did not take it, and it is freed. */
bool mrt_quorum_request_send(struct mrt_quorum_request *request, const struct mrt_command *command,
                             struct mrt_id ticket, uint64_t round);
/* Sends a request that must be proven; if the member does not take it, sends it later. */
void mrt_quorum_request_insist(struct mrt_quorum_request *request,
                               const struct mrt_command *command);
/* A REMOVE of a claim that has been let go, whose answer is wanted. */
bool mrt_quorum_request_removes(const struct mrt_quorum_request *request);
/* Whether this claim is still being let go at the member. */
bool mrt_quorum_is_removing(const struct mrt_quorum_member *member, struct mrt_id token);
/* Takes it off the list and frees it. */
void mrt_quorum_request_drop(struct mrt_quorum_store *store, struct mrt_quorum_request *request);
/* Notes that it was answered but not proven: it is sent again after a pause. */
void mrt_quorum_request_repeat(struct mrt_quorum_request *request, mrt_time now);
/* Sends again what is due; and when that is. */
void mrt_quorum_requests_due(struct mrt_quorum_store *store, mrt_time now);
mrt_time mrt_quorum_requests_next(const struct mrt_quorum_store *store);
/* All requests to the member; or all there are: the members are closed. */
void mrt_quorum_requests_forget(struct mrt_quorum_store *store,
                                const struct mrt_quorum_member *member);
void mrt_quorum_requests_free(struct mrt_quorum_store *store);

#endif
