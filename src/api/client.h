/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures behind the public handles. A client is a driver with names around it; a lock
 * is a handle on a local tier (core/queue.c) with an owner; a hold is a slot of the engine
 * and its generation.
 */
#ifndef MRT_API_CLIENT_H
#define MRT_API_CLIENT_H

#include "base/name.h"
#include "io/driver.h"

/* A part of a client that ends with it: `end` ends its work, `free` its memory. */
struct mrt_participant {
    void (*end)(struct mrt_participant *participant);  /* the client still works; mutex held */
    void (*free)(struct mrt_participant *participant); /* the client is closed */
    TAILQ_ENTRY(mrt_participant) link;
};

struct mortise_client {
    struct mrt_driver driver;
    mrt_time timeout;
    char prefix[MRT_NAMESPACE_MAX + 2]; /* namespace and "/", or empty */
    size_t prefix_length;
    TAILQ_HEAD(, mortise_lock) locks;
    TAILQ_HEAD(, mrt_participant) participants;
};

struct mortise_lock {
    mortise_client *client;
    struct mrt_queue *queue;
    uint64_t owner;  /* MORTISE_OWNER_THREAD, or an id */
    uint64_t weight; /* of an acquire */
    bool unowned;    /* its holds have no owner */
    mrt_time hold_max;
    mortise_queued_callback queued;
    void *queued_argument;
    struct mrt_call_list waits;
    _Atomic unsigned uses; /* calls under way that use the handle again, beside `waits` */
    _Atomic unsigned
        contended_calls_left; /* for so many acquire_all calls: hold it before requesting more */
    TAILQ_ENTRY(mortise_lock) link;
};

/* The calling thread as an owner. Numbers are never used again in a process. */
uint64_t mrt_thread_owner(void);

/* The owner for which an acquire through this handle is made now; 0: no owner. */
uint64_t mrt_lock_owner(const mortise_lock *lock);
/* Fills in the options that the handle gives to each of its acquires. */
void mrt_lock_fill_wait(const mortise_lock *lock, struct mrt_call *wait);
/* Begins an acquire whose thread will wait, and adds it to the lock's calls. The mutex is held. */
void mrt_lock_begin(mortise_lock *lock, struct mrt_call *wait, uint64_t owner, bool try_only,
                    bool expect_free);
/* Waits until the deadline for a call that mrt_lock_begin began, and removes it from the lock's
   calls. The mutex is held. */
int mrt_lock_wait(mortise_lock *lock, struct mrt_call *wait, mrt_time deadline, mortise_hold *hold);

/* Around a call that uses the handle again: neither mortise_lock_free nor mortise_close frees it
 * meanwhile. */
void mrt_lock_pin(mortise_lock *lock);
void mrt_lock_unpin(mortise_lock *lock);

/* detach.c: a token for this hold, and detaching under it. */
int mrt_token_new(mortise_hold hold, char token[MORTISE_TOKEN_SIZE]);
int mrt_hold_detach(mortise_hold hold, const char *token);
/* hold.c: `error`, with particulars if it is ENOTOWNER. The mutex is held. */
int mrt_hold_error(const struct mrt_hold *slot, int error);
/* hold.c: the fence of a hold that is held now, 0 on a store without fences. 0; MORTISE_ELOST,
   MORTISE_ENOTHELD or MORTISE_EFORKED. */
int mrt_hold_fence(mortise_hold hold, uint64_t *fence);
/* hold.c: makes it lighter, as mortise_downgrade. */
int mrt_hold_lighten(mortise_hold hold, uint64_t weight);

/* Options as the caller's header has them, of `size` bytes here: fields that an older header lacks
   are 0, and all are 0 if `given` is NULL. `what` is the structure's name. 0 or MORTISE_EINVALID.
 */
int mrt_take_options(const void *given, void *taken, size_t size, const char *what);

/* How long a session lives without a sign of life; 0: the store needs none. */
mrt_time mrt_client_lease(const mortise_client *client);

/* As mrt_driver_check, and MORTISE_EINVALID for NULL. */
int mrt_client_check(const mortise_client *client, bool blocking);
/* Whether a call on this hold may be made now: the same, and MORTISE_ENOTHELD for an empty hold and
   for one of a client that was closed. */
int mrt_client_check_hold(mortise_hold hold);
/* With the namespace before it. 0 or MORTISE_ENAME. */
int mrt_client_full_name(const mortise_client *client, const char *name,
                         char full[MRT_FULL_NAME_SIZE]);

/* Sends a command without a ticket (mrt_engine_request), and waits for its answer at most until
 * then. */
int mrt_client_ask(mortise_client *client, const struct mrt_command *wanted, mrt_time deadline,
                   struct mrt_answer *answer);

/* A queue of this client with this recipe; give it back with mrt_queue_put. The
   mutex is held. 0, MORTISE_ENOMEM, or MORTISE_EMISMATCH with its particulars. */
int mrt_client_queue(mortise_client *client, const char *full, const struct mrt_recipe *recipe,
                     struct mrt_queue **queue);

#endif
