/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: runs one engine on one store for many threads.
 *
 * One mutex guards the engine. Who has changed the engine fetches its effects
 * before letting go: it wakes the threads whose waiters settled and carries the
 * commands to the store. Carrying is done without the mutex, by one thread at
 * a time (`driving`); others leave their commands in the outbox, and the one
 * who drives takes them along. So an uncontended acquire on a store that answers
 * at once costs no switch of thread, and a store that is slow holds up nobody who
 * does not need it: after a short patience the loop takes over.
 *
 * Nobody carries for longer than his patience: what is left then is the loop's.
 *
 * The loop is a thread of the client (or the caller, MORTISE_FOREIGN_LOOP): it
 * waits for the store's descriptor, for timers and for kicks, and runs the
 * callbacks of the user, without the mutex, unless a thread of their own does
 * (tell.c). A caller that waits, and is the only one,
 * reads the store's descriptor in its place (reader.c): an answer then costs one switch
 * of thread, not two. Which one it is makes no difference to what is done.
 */
#ifndef MRT_IO_DRIVER_H
#define MRT_IO_DRIVER_H

#include "core/engine.h"
#include "io/park.h"

#include <pthread.h>
#include <stdatomic.h>

/* Something of the api's that the loop is to run, once however often it was posted. `run` is
   called with the mutex held, and lets it go around the user's callbacks. */
struct mrt_upcall {
    void (*run)(struct mrt_upcall *upcall);
    bool posted;
    TAILQ_ENTRY(mrt_upcall) link;
};
TAILQ_HEAD(mrt_upcall_list, mrt_upcall);

enum mrt_call_kind { MRT_CALL_BLOCKING, MRT_CALL_ASYNC, MRT_CALL_UPCALL };

/* An acquire or verify as the driver sees it; `waiter` is first. One that is ASYNC is on the heap,
   and freed after its callback. */
struct mrt_call {
    struct mrt_waiter waiter;
    enum mrt_call_kind kind;
    struct mrt_upcall *upcall;      /* posted when it settles; NULL: none */
    struct mrt_park park;           /* BLOCKING */
    mortise_queued_callback queued; /* NULL: it does not care */
    void *queued_argument;
    mortise_acquire_callback callback; /* ASYNC */
    void *argument;
    mortise_hold hold;                 /* ASYNC: as it was granted */
    struct mrt_call_list *handle;      /* ASYNC: where it is until its callback begins */
    TAILQ_ENTRY(mrt_call) link;        /* of the completed ones */
    TAILQ_ENTRY(mrt_call) handle_link; /* the api's */
    TAILQ_ENTRY(mrt_call) blocked_link;
};
TAILQ_HEAD(mrt_call_list, mrt_call);

/* Which of the threads that wait reads the store's answers itself: reader.c. */
struct mrt_reader {
    struct mrt_call *call;      /* that of the thread which reads; NULL: none does */
    mrt_time since;             /* when it began */
    mrt_time next_reader_until; /* until then the loop leaves the store to the next reader */
    mrt_time loop_away_until; /* until then the loop sleeps, and not for the store; 0: for it too */
    mrt_time no_reader_until; /* nobody begins to read until then, and the loop is there */
    bool frequent;            /* a reader came within GRACE of the one before */
    int blocked;              /* threads in mrt_driver_wait */
    bool disabled;            /* mrt_reader_disable */
    bool may_wait;            /* answers_may_wait, when the store was last called */
    bool sleeps;              /* the reader does */
    bool looks_away;          /* as the loop's */
    int fd;                   /* wakes the reader; -1: none has read */
};

/* The thread that calls back in the loop's place: tell.c. */
struct mrt_teller {
    pthread_t thread;
    struct mrt_park park;
    mrt_time armed; /* what it sleeps until */
    bool begun, stop;
};

/* Whom to tell that the store is silent, or answers again; set when the driver is opened. */
struct mrt_listener {
    struct mrt_upcall upcall;
    mortise_contact_callback callback; /* NULL: nobody */
    void *argument;
    char why[256]; /* the newest reason that no server was reached; "": none is known */
};

struct mrt_driver {
    pthread_mutex_t mutex;
    pthread_cond_t idle; /* driving has become false, or a blocking call has left */
    struct mrt_engine *engine;
    const struct mrt_store_ops *ops;
    struct mrt_store *store;
    struct mrt_sink sink;
    bool foreign;
    bool driving;      /* a thread is calling the store */
    bool want_process; /* process is due; whoever drives next makes the call */
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
    int epoll_fd;                 /* of mortise_fd; -1 until asked for */
    int interrupt[2];             /* a pipe; -1 until asked for */
    bool interrupted;             /* and something was written into it */
    struct mrt_call_list blocked; /* what threads wait for; no callbacks */
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
};

/* Opens the store and starts the loop; `contact` is called as config->notice has it. 0 or an error
   with its particulars. */
int mrt_driver_open(struct mrt_driver *driver, const struct mrt_engine_config *config,
                    const struct mrt_store_ops *ops, const struct mrt_uri *uri,
                    const struct mrt_store_options *options, bool foreign,
                    mortise_contact_callback contact, void *argument);
/* 0 or MORTISE_EUNKNOWN if the store had not confirmed by `until`. */
int mrt_driver_close(struct mrt_driver *driver, mrt_time until);
/* Frees memory, and closes the child's copies of descriptors; for a forked child. */
void mrt_driver_abandon(struct mrt_driver *driver);

/* 0, MORTISE_EFORKED; `blocking`: also MORTISE_EDEADLOCK inside a callback. */
int mrt_driver_check(const struct mrt_driver *driver, bool blocking);

/* Returns `error`, with the store's particulars for this thread if it came from there; the mutex
   is held. */
int mrt_driver_error(const struct mrt_driver *driver, int error);

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
/* Between enter and leave: the end of a pipe into which a byte ends all that threads wait for; or a
   negative error. */
int mrt_loop_interrupt_fd(struct mrt_driver *driver);
/* Between enter and leave: has the loop run it. */
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

/* reader.c. Between enter and leave: waits for `wait` as the loop would, if its caller may be the
   reader; false: it may not. It may return early. */
bool mrt_reader_wait(struct mrt_driver *driver, struct mrt_call *wait, mrt_time deadline);
/* The mutex is held in all of these. No thread reads for a while,
   and the loop is back at once. */
void mrt_reader_recall(struct mrt_driver *driver);
/* From now on the loop reads all that the store tells: somebody may wait for it who does not
   block here. */
void mrt_reader_disable(struct mrt_driver *driver);
/* Until when the loop leaves the store's descriptor to others; 0: it does not. */
mrt_time mrt_reader_until(const struct mrt_driver *driver, mrt_time now);
/* Wakes the reader, if it sleeps. */
void mrt_reader_wake(struct mrt_driver *driver);
/* The store has been called. */
void mrt_reader_called(struct mrt_driver *driver);

/* loop.c: the loop's side. */
int mrt_loop_start(struct mrt_driver *driver);
void mrt_loop_stop(struct mrt_driver *driver);
/* Wakes the loop; the mutex is held. */
void mrt_loop_kick(struct mrt_driver *driver);
/* One turn without sleeping: timers, the store, callbacks. The mutex is held. */
void mrt_loop_turn(struct mrt_driver *driver, mrt_time patience);
/* Waits at most `left` for `kick`, and for the store's descriptor if `store`: true if that has
   something. The mutex is held, and let go meanwhile. */
bool mrt_loop_poll(struct mrt_driver *driver, int kick, bool store, mrt_time left);
/* Sleeps until something is to do, or `until`. The mutex is held, and let go meanwhile. */
void mrt_loop_sleep(struct mrt_driver *driver, mrt_time until);
/* Notes what the descriptors have, without sleeping. The mutex is held. */
void mrt_loop_look(struct mrt_driver *driver);
/* How long the loop may sleep from now; MRT_TIME_NEVER: until a descriptor is ready. */
mrt_time mrt_loop_left(const struct mrt_driver *driver);
mrt_time mrt_loop_next(const struct mrt_driver *driver);
int mrt_loop_fd(struct mrt_driver *driver);
/* A thread with all signals blocked; false: there is none. */
bool mrt_loop_thread(pthread_t *thread, void *(*run)(void *argument), struct mrt_driver *driver);

/* driver.c, for these: fetches all effects; only those that are for threads of this client. The
   mutex is held. */
void mrt_driver_flush(struct mrt_driver *driver, mrt_time patience);
void mrt_driver_settle(struct mrt_driver *driver);

/* tell.c. The mutex is held in all of these but the first and the last. */
/* Whether this thread is in a callback. */
bool mrt_tell_in_callback(void);
/* Whether callbacks wait for somebody to run them. */
bool mrt_tell_waits(const struct mrt_driver *driver);
/* Runs them, if no other thread does. */
void mrt_tell(struct mrt_driver *driver);
/* Wakes who runs them. */
void mrt_tell_kick(struct mrt_driver *driver);
/* The engine's timers may have changed. */
void mrt_tell_timers(struct mrt_driver *driver);
/* From now on no call of the store holds up what is to be told. 0 or MORTISE_ENOMEM. */
int mrt_tell_in_time(struct mrt_driver *driver);
/* After the loop's end: tells the rest. */
void mrt_tell_stop(struct mrt_driver *driver);
/* An upcall: tells the listener. */
void mrt_tell_contact(struct mrt_upcall *upcall);

#endif
