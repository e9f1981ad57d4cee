/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session: how long it is alive: session.c.
 */
#ifndef MRT_CORE_SESSION_H
#define MRT_CORE_SESSION_H

#include "base/heap.h"
#include "base/id.h"
#include "core/store.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;

enum mrt_session_state {
    MRT_SESSION_NONE,
    MRT_SESSION_STARTING,
    MRT_SESSION_LIVE,
    MRT_SESSION_STOPPING
};

/* A sign of life that was acknowledged. */
struct mrt_sign {
    mrt_time sent, answered;
};
#define MRT_SIGNS 8 /* so many signs are remembered; three are needed */

struct mrt_session {
    enum mrt_session_state state;
    struct mrt_id id;
    mrt_time lease;       /* 0: needs no proof of life */
    mrt_time proof_lag;   /* how old a sign of life must be to be proven by the next one */
    bool dates;           /* each RENEWED carries the time it proves */
    bool relayed;         /* and what was heard: the store lends a session of its own */
    mrt_time heard;       /* when the newest acknowledged sign of life was sent */
    mrt_time proof;       /* when the newest proven one was sent */
    mrt_time sent;        /* when the newest START or RENEW was sent */
    mrt_time valid_until; /* MRT_TIME_NEVER without a lease; 0: not live */
    struct mrt_sign signs[MRT_SIGNS]; /* with a proof_lag */
    uint32_t sign_count;
    bool suspended;
    bool unreachable;           /* the newest sign of life failed */
    bool owes;                  /* it was live when the engine was closed */
    uint32_t attempts;          /* failures in a row, for the pause before the next */
    struct mrt_command command; /* START, STOP */
    struct mrt_command renew;
    struct mrt_timer timer;
};

/* Begins to open one, if there is none. */
void mrt_session_need(struct mrt_engine *engine);
/* Whether it is not open, or the connection that it lives by is known to be lost. */
bool mrt_session_unreachable(const struct mrt_engine *engine);
/* A sign of life that was sent at `sent` has been acknowledged; `heard` is the event's. */
void mrt_session_prove(struct mrt_engine *engine, mrt_time sent, mrt_time heard, mrt_time now);
/* Whether no sign of life has been acknowledged for too long. */
bool mrt_session_is_silent(const struct mrt_session *session, mrt_time now);
void mrt_session_suspend(struct mrt_engine *engine, bool suspended);
/* How often a sign of life is sent. */
mrt_time mrt_session_interval(const struct mrt_session *session);
/* Sets the timer of a session that is LIVE and has a lease; no effect else. */
void mrt_session_arm(struct mrt_engine *engine);
/* Sets the timer for the next attempt to open or end the session. */
void mrt_session_again_later(struct mrt_engine *engine, mrt_time now);

#endif
