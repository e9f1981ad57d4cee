/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: runs one engine on one store for many threads.
 *
 * One mutex guards the engine. A thread that has changed the engine fetches its effects before
 * it unlocks the mutex: it wakes the threads whose waiters settled, and carries the commands to
 * the store. Carrying is done without the mutex, by one thread at a time (`driving`). Others
 * leave their commands in the outbox, and the driving thread takes them along. So an
 * uncontended acquire on a store that answers immediately costs no switch of thread.
 *
 * No thread carries for longer than its patience: it leaves the rest to the loop. So a slow
 * store delays only the threads that need it.
 *
 * The loop is a thread of the client (or the caller, MORTISE_FOREIGN_LOOP). It waits for the
 * store's descriptor, for timers and for kicks. It runs the callbacks of the user, without the
 * mutex, unless the teller does (tell.c). A caller that is the only one to wait reads the store's
 * descriptor in the loop's place (reader.c): an answer then costs one switch of thread instead
 * of two. Both do the same with what they read.
 */
#ifndef MRT_IO_DRIVER_H
#define MRT_IO_DRIVER_H

#include "core/engine.h"
#include "io/park.h"
#include "io/reader.h"
#include "io/tell.h"

#include <pthread.h>
#include <stdatomic.h>

/* Owners: threads have this bit, ids of the program's own do not. */
#define MRT_OWNER_IS_THREAD (UINT64_C(1) << 63)

/* A function of the api that the loop runs, once however often it was posted. `run` is
   called with the mutex held, and lets it go around the user's callbacks. */
struct mrt_upcall {
    void (*run)(struct mrt_upcall *upcall);
    bool posted;
    TAILQ_ENTRY(mrt_upcall) link;
};
TAILQ_HEAD(mrt_upcall_list, mrt_upcall);

struct mrt_driver;

enum mrt_call_kind { MRT_CALL_BLOCKING, MRT_CALL_ASYNC, MRT_CALL_UPCALL };

/* An acquire or verify as the driver sees it; `waiter` is first. One that is ASYNC is on the heap,
   and freed after its callback. */
struct mrt_call {
    struct mrt_waiter waiter;
    enum mrt_call_kind kind;
    struct mrt_upcall *upcall;      /* posted when it settles; NULL: none */
    struct mrt_park park;           /* BLOCKING */
    mortise_queued_callback queued; /* NULL: not called */
    void *queued_argument;
    mortise_acquire_callback callback; /* ASYNC */
    void *argument;
    mortise_hold hold;            /* ASYNC: the hold that was granted */
    const char *detail;           /* ASYNC: particulars of its error, while the callback runs */
    struct mrt_call_list *handle; /* ASYNC: the list that has it until its callback begins */
    TAILQ_ENTRY(mrt_call) link;   /* link of the completed calls */
    TAILQ_ENTRY(mrt_call) handle_link; /* the api's */
    TAILQ_ENTRY(mrt_call) blocked_link;
};
TAILQ_HEAD(mrt_call_list, mrt_call);

/* The fields that io and api keep beside a hold (core/hold.h, `host`). */
struct mrt_hold_host {
    struct mrt_upcall *upcall; /* posted when its state changes; NULL: none */
    mortise_state_callback callback;
    void *argument;
    mortise_revoke_callback revoke_callback;
    void *revoke_argument;
    bool has_lost_fd;
    int lost_fd;
};

/* The program's callback for a silent store, and for its return; set when the driver is opened. */
struct mrt_listener {
    struct mrt_upcall upcall;
    mortise_contact_callback callback; /* NULL: nobody */
    void *argument;
    char why[256]; /* the newest reason that no server was reached; "": none is known */
};

/* Sees an event of the store before the engine: true: it is not the engine's. The mutex is held,
   and no call of the store may be made. */
typedef bool mrt_driver_tap(struct mrt_driver *driver, const struct mrt_event *event);

struct mrt_driver {
    pthread_mutex_t mutex;
    pthread_cond_t idle; /* signalled when driving becomes false or a blocking call leaves */
    struct mrt_engine *engine;
    mrt_driver_tap *tap; /* NULL: all events are the engine's */
    const struct mrt_store_ops *ops;
    struct mrt_store *store;
    struct mrt_sink sink;
    bool foreign;
    bool driving;      /* a thread is calling the store */
    bool want_process; /* process is due; the next thread that drives makes the call */
    bool looks_away;   /* the loop leaves the store's descriptor out until process was called */
    bool stalled;      /* there is something for the loop to carry, soon */
    bool kicked;
    bool stop;
    bool draining;  /* mrt_driver_close waits for calls to leave */
    int inside;     /* calls under way */
    int borrowers;  /* threads that wait for `driving` to end */
    mrt_time armed; /* what the loop sleeps until */
    mrt_time store_next;
    int store_fd;
    int kick_fd;
    int epoll_fd;                 /* the descriptor of mortise_fd; -1 until that is called */
    int interrupt[2];             /* the pipe of mortise_interrupt_fd; -1 until that is called */
    bool interrupted;             /* a byte was written into the pipe */
    struct mrt_call_list blocked; /* blocking calls under way, without callbacks */
    _Atomic bool notified;
    struct mrt_reader reader;
    struct mrt_teller teller;
    bool calling; /* a thread is calling back */
    struct mrt_listener listener;
    uint64_t fork_generation;
    struct mrt_call_list completed;
    struct mrt_upcall_list upcalls;
    pthread_t thread;
    bool has_thread;
    char store_detail[256]; /* particulars of the newest failure */
    size_t prefix_length;   /* length of the namespace's prefix of each name */
};

/* Opens the store and starts the loop; `contact` is called as config->notice has it. 0 or an error
   with its particulars. */
int mrt_driver_open(struct mrt_driver *driver, const struct mrt_engine_config *config,
                    const struct mrt_store_ops *ops, const struct mrt_uri *uri,
                    const struct mrt_store_options *options, bool foreign,
                    mortise_contact_callback contact, void *argument);
/* 0 or MORTISE_EUNKNOWN if the store had not confirmed by `until`. */
int mrt_driver_close(struct mrt_driver *driver, mrt_time until);
/* For a forked child: closes its copies of descriptors, and ends its holds. The memory of the
   engine and of the store stays. */
void mrt_driver_abandon(struct mrt_driver *driver);

/* 0, MORTISE_EFORKED; `blocking`: also MORTISE_EDEADLOCK inside a callback. */
int mrt_driver_check(const struct mrt_driver *driver, bool blocking);

/* detail.c. Returns `error`, with the store's particulars for this thread if it came from there;
   the mutex is held. */
int mrt_driver_error(const struct mrt_driver *driver, int error);

/* The same for a waiter that is DONE: which lock, how long it has waited, and the holder
   that was seen. */
int mrt_driver_outcome(const struct mrt_driver *driver, const struct mrt_waiter *waiter);

/* Every use of the engine stands between enter and leave. leave does not keep the
   thread past `deadline` for the store's sake. */
void mrt_driver_enter(struct mrt_driver *driver);
void mrt_driver_leave(struct mrt_driver *driver, mrt_time deadline);
/* After a call that changed nothing. */
void mrt_driver_leave_quietly(struct mrt_driver *driver);
/* Around a call that enters and leaves several times: mrt_driver_close waits for its end. */
void mrt_driver_pin(struct mrt_driver *driver);
void mrt_driver_unpin(struct mrt_driver *driver);
/* How long a call that need not wait for the store tries before it leaves it to the loop. */
mrt_time mrt_driver_patience(mrt_time deadline);

/* Between enter and leave: waits until `wait` is DONE; at `deadline` it is cancelled
   with `error`. On return the mutex is held. */
void mrt_driver_wait(struct mrt_driver *driver, struct mrt_call *wait, mrt_time deadline,
                     int error);
/* Between enter and leave: the loop will run the upcall. */
void mrt_driver_post(struct mrt_driver *driver, struct mrt_upcall *upcall);
/* Takes it back. */
void mrt_driver_unpost(struct mrt_driver *driver, struct mrt_upcall *upcall);
/* Between enter and leave: waits while upcalls run, until `done`. */
void mrt_driver_wait_upcalls(struct mrt_driver *driver, bool (*done)(const void *subject),
                             const void *subject);
/* Lets time pass; the mutex is not held. A foreign loop goes on meanwhile. */
void mrt_driver_sleep_until(struct mrt_driver *driver, mrt_time until);
/* Between enter and leave: has the store to itself until mrt_driver_give_back. */
void mrt_driver_borrow_store(struct mrt_driver *driver);
void mrt_driver_give_back_store(struct mrt_driver *driver);

/* For the other files of io. The first fetches all effects, the second only those for threads of
 * this client. The mutex is held. */
void mrt_driver_flush(struct mrt_driver *driver, mrt_time patience);
void mrt_driver_settle(struct mrt_driver *driver);

#endif
