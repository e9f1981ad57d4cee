/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: one client's sessions, tickets, waiters and holds as a step
 * function. It is given calls, events and the time, and leaves effects in lists;
 * it has no thread, socket, clock or random number of its own, and what ships is
 * what the simulator drives.
 *
 * Effects, to be fetched after every call:
 *   mrt_engine_next_command  what to submit to the store
 *   mrt_engine_next_settled  waiters that are DONE or WOKEN
 *   mrt_engine_next_told     holds whose state changed
 *   mrt_engine_next_asked    holds that somebody asks to give up
 *   mrt_engine_next_placed   waiters that are queued, or whose place has changed
 *   mrt_engine_next_observed observers that have something new to tell
 *   mrt_engine_next_contact  whether the store has fallen silent, or answers again
 *   mrt_engine_next_time     when to call mrt_engine_tick
 *
 * Threads: none. The caller serialises everything on one engine.
 * Memory: waiters are the caller's; holds are slots of the engine that are used
 * again but stay until mrt_engine_free, so until then a stale mrt_hold pointer may
 * be looked at, and its generation tells that it is stale.
 */
#ifndef MRT_CORE_ENGINE_H
#define MRT_CORE_ENGINE_H

#include "base/id.h"
#include "core/acquire.h"
#include "core/agenda.h"
#include "core/calls.h"
#include "core/contact.h"
#include "core/hold.h"
#include "core/request.h"
#include "core/store.h"
#include "core/waiter.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;

#define MRT_MARGIN_MIN (10 * MRT_MILLISECOND) /* the library's margin_min */

struct mrt_engine_config {
    struct mrt_id seed;    /* 128 bits of entropy; all identities derive from it */
    bool strict;           /* local order is strict FIFO */
    mrt_time fair_after;   /* eventually fair: handed over directly after waiting so long */
    mrt_time budget;       /* how long a turn lasts while others wait; 0: no hand-over at all */
    uint32_t budget_count; /* how many grants a turn has at most */
    uint64_t queue_max;    /* how many tickets may wait in a queue; 0: any number */
    uint64_t tickets_max;  /* how many tickets this client may have at a time; 0: any number */
    void *host;            /* for mrt_engine_host */
    size_t hold_host_size; /* bytes that the host keeps beside each hold */
    /* Where the slots of holds come from, and go at mrt_engine_free; NULL: the heap, where nothing
       may read them afterwards. A slot has `size` bytes, all 0 but for its generation, which has to
       be larger than those that it has had. take_slot gives NULL if there is no memory. */
    struct mrt_hold *(*take_slot)(size_t size);
    void (*give_back_slot)(struct mrt_hold *slot);
    mrt_time margin_min; /* a lease ends earlier by this, or by 3 %, whichever is more */
    mrt_time recheck; /* recheck after so long, where a store says longer; 0: as the store says */
    /* The pause after a failure doubles from pause_min to pause_max; 0: 10 ms, 1 s. */
    mrt_time pause_min, pause_max;
    uint32_t attempts_max; /* how often a refused command is repeated; 0: 10 */
    mrt_time give_up;      /* how long an acquire waits for a silent store; 0: for ever */
    mrt_time notice;       /* mrt_engine_next_contact tells of a silence of this length; 0: never */
    /* Others trust this engine's session, for so long after they were last told that it is alive:
       one that is lost earlier is not ended at the store until that is over. And what the engine
       leaves in the store was left by one of them that has died: a delay counts also when the
       engine is closed. 0: nobody does. */
    mrt_time trusted_for;
    bool delay_is_host; /* delays protect processes of this host alone: they may end with it */
};

/* 0 or MORTISE_ENOMEM. */
int mrt_engine_new(const struct mrt_engine_config *config, struct mrt_engine **engine);
/* Frees everything, whatever its state. */
void mrt_engine_free(struct mrt_engine *engine);

void *mrt_engine_host(const struct mrt_engine *engine);
/* The least that is left of a lease while the store answers immediately: session.c. */
mrt_time mrt_lease_left(mrt_time lease, mrt_time proof_lag);

/* Takes an event of the store. */
void mrt_engine_event(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now);
/* Advances time: due timers act. */
void mrt_engine_tick(struct mrt_engine *engine, mrt_time now);

/* Ends all waiters with MORTISE_ECLOSED and all holds, gives the tickets back and
   stops the session. mrt_engine_closed tells when the store has confirmed. */
void mrt_engine_close(struct mrt_engine *engine, mrt_time now);
bool mrt_engine_closed(const struct mrt_engine *engine);
/* Of a closed engine: whether other clients may wait for tickets that it has still to remove. If
   not, the store has at most a session without tickets, which its lease ends. */
bool mrt_engine_owes(const struct mrt_engine *engine);

/* Fetch an effect; NULL: none is left. `now` dates a proof of life, so fetch a command only when it
 * is about to be submitted. */
struct mrt_command *mrt_engine_next_command(struct mrt_engine *engine, mrt_time now);
/* Whether next_command would return a command. */
bool mrt_engine_has_command(const struct mrt_engine *engine);
/* A command that the store did not accept: next_command returns it again, or drops it if no waiter
 * needs it any longer. */
void mrt_engine_unsubmit(struct mrt_engine *engine, struct mrt_command *command, mrt_time now);
/* Whether there is no session, or its store has been silent for so long that the session is in
   doubt. */
bool mrt_engine_is_unreachable(const struct mrt_engine *engine);
/* Whether next_told, next_asked or next_placed would return something. */
bool mrt_engine_has_told(const struct mrt_engine *engine);
mrt_time mrt_engine_next_time(const struct mrt_engine *engine);

/* The session, for a host that uses it beside the engine. */
struct mrt_engine_life {
    struct mrt_id session;
    mrt_time lease; /* 0: needs no proof of life */
    mrt_time proof; /* with a lease: when the newest proven sign of life was sent */
    mrt_time heard; /* and the newest acknowledged one */
};
/* Whether there is a session that is alive at `now`. */
bool mrt_engine_lives(const struct mrt_engine *engine, mrt_time now, struct mrt_engine_life *life);
/* Begins to open a session, if there is none and the engine is not closing. */
void mrt_engine_need_session(struct mrt_engine *engine);

struct mrt_engine_counters {
    uint64_t acquisitions, nested, handovers, commands, losses;
};
const struct mrt_engine_counters *mrt_engine_counters(const struct mrt_engine *engine);

#endif
