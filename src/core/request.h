/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the store that concern no ticket: request.c.
 */
#ifndef MRT_CORE_REQUEST_H
#define MRT_CORE_REQUEST_H

#include "base/heap.h"
#include "base/id.h"
#include "base/list.h"
#include "core/store.h"
#include "mortise.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_waiter;

/* The answer to such a request. */
struct mrt_answer {
    uint64_t version; /* CELL_GET, CELL_SET */
    uint64_t fence;   /* OBSERVE, CELL_GET */
    size_t value_size;
    unsigned char value[MORTISE_VALUE_MAX];
};

enum mrt_request_state {
    MRT_REQUEST_IDLE,   /* an observer with an answer; its timer is the recheck */
    MRT_REQUEST_WANTED, /* sent when there is a session */
    MRT_REQUEST_SENT,
    MRT_REQUEST_PAUSED /* before it is sent again */
};

struct mrt_request {
    enum mrt_request_state state;
    struct mrt_engine *engine;
    struct mrt_command command;
    struct mrt_timer timer;
    struct mrt_waiter *waiter; /* NULL: an observer's, or given up */
    struct mrt_answer *result; /* the waiter's */
    struct mrt_answer answer;  /* of an observer: the newest */
    bool observer;
    bool ended;           /* to be freed when its command is answered */
    bool outcome_unknown; /* a write of unknown outcome: it may have been done */
    bool again;           /* observer: CHANGED has come while it was SENT */
    bool known;           /* of an observer: `answer` is valid */
    bool telling;
    uint32_t attempts;
    void *host;
    TAILQ_ENTRY(mrt_request) link, observed_link;
    char bytes[]; /* the name, and the value */
};

TAILQ_HEAD(mrt_request_list, mrt_request);

/* Follows the first ticket of a queue until it is ended. NULL: no memory. */
struct mrt_request *mrt_engine_observe(struct mrt_engine *engine, const char *queue, void *host);
void mrt_observer_end(struct mrt_request *observer);
void *mrt_observer_host(const struct mrt_request *observer);
/* The newest answer; fence 0: the queue has no ticket. */
const struct mrt_answer *mrt_observer_holder(const struct mrt_request *observer);
/* NULL: none is left. */
struct mrt_request *mrt_engine_next_observed(struct mrt_engine *engine);

/* ---------------------------------------------------- of core only */

/* mrt_engine_request, after the lease has been checked. */
void mrt_request_begin(struct mrt_engine *engine, const struct mrt_command *wanted,
                       struct mrt_answer *answer, struct mrt_waiter *waiter);
/* Sends the requests that wait for a session. */
void mrt_requests_serve(struct mrt_engine *engine);
/* The session is lost: unsent requests and observers wait for the next one. */
void mrt_requests_recall(struct mrt_engine *engine);
/* Ends them with this error, except observers, which try again. */
void mrt_requests_fail(struct mrt_engine *engine, int error, mrt_time now);
/* No server can be reached: ends each look at a leader. */
void mrt_requests_refused(struct mrt_engine *engine);
void mrt_request_answer(struct mrt_engine *engine, struct mrt_command *command,
                        const struct mrt_event *event, mrt_time now);
/* CHANGED. */
void mrt_request_changed(struct mrt_engine *engine, struct mrt_id id);
void mrt_request_timer(struct mrt_request *request);
void mrt_request_unsubmitted(struct mrt_engine *engine, struct mrt_command *command);
void mrt_request_cancel(struct mrt_waiter *waiter, int error);
void mrt_requests_free(struct mrt_engine *engine);

#endif
