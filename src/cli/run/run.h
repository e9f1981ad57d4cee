/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: its options, and its state. The parts of `mortise run` work on it:
 *   run.c        the order of the steps, and the messages
 *   options.h    options, locks and command
 *   locks.h      making, acquiring and releasing the locks
 *   held.h       the command's environment, and locks that an outer run holds
 *   command.h    starting the command, looking after it, its end
 *   guard.h      the process that outlives this one
 *   target.h     the processes that the lock is held for
 *   terminal.h   the terminal's foreground
 *   every.c      whether the run is due
 *   lease.c      --lease
 *   label.c      what lists show if no --label is given
 *   status.c     events for the program that started mortise
 *   place.c      -F: the command in place of mortise, under a keeper (keeper/keeper.h)
 *   elect.c      what `mortise elect` does without a command
 * One thread; the client has none of its own.
 */
#ifndef MRT_CLI_RUN_RUN_H
#define MRT_CLI_RUN_RUN_H

#include "cli/frame/cli.h"
#include "cli/run/guard.h"
#include "cli/run/target.h"
#include "cli/run/terminal.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define MRT_RUN_LOCKS_MAX 32
/* How long before the end of a lease the group must be dead. */
#define MRT_RUN_LEASE_MARGIN (200 * MRT_MILLISECOND)

enum mrt_run_mode {
    MRT_RUN_MUTEX,
    MRT_RUN_SHARED,    /* the read side of a read/write lock */
    MRT_RUN_EXCLUSIVE, /* its write side */
    MRT_RUN_PERMITS,   /* of a semaphore */
    MRT_RUN_LEADER     /* of an election */
};

enum mrt_stragglers { MRT_STRAGGLERS_LEAVE, MRT_STRAGGLERS_WAIT, MRT_STRAGGLERS_END };

enum mrt_on_lost { MRT_ON_LOST_TERM, MRT_ON_LOST_KILL, MRT_ON_LOST_IGNORE, MRT_ON_LOST_EXEC };

struct mrt_run;

struct mrt_run_lock {
    struct mrt_run *run;
    const char *name;
    mortise_lock *lock;
    mortise_election *election; /* instead of it */
    mortise_hold hold;
    uint64_t fence;
    bool is_outer;  /* an outer run holds it; we have none */
    bool is_turned; /* the name was in use as another kind, and the lock is made as that */
};

struct mrt_run { // NOLINT(clang-analyzer-optin.performance.Padding): there is one
    struct mrt_cli *cli;

    const char *name;                             /* the first that was given */
    struct mrt_run_lock locks[MRT_RUN_LOCKS_MAX]; /* in the order they are acquired */
    size_t count;
    enum mrt_run_mode mode; /* of all of them */
    bool mode_given;        /* on the command line */
    uint32_t permits, weight;
    const char *file; /* of --flock; NULL: none */
    int file_fd;
    const char *string;                /* of -c; NULL: none */
    char label[MORTISE_LABEL_MAX + 1]; /* where none was given */
    char *const *command;              /* ended by NULL; of an election it may be empty */
    const char *value;                 /* of an election: what the leader says of itself */
    bool observe, once;                /* an election is observed: until the end, or once */
    bool verbose;
    bool keep_descriptors;
    bool no_fork; /* -F */
    bool no_wait;
    pid_t asker;       /* the process that was started with the arguments */
    mrt_time deadline; /* of the wait */
    mrt_time grace;    /* from TERM to KILL */
    mrt_time spare;    /* what two renewals leave beyond the grace; 0: no lease, or nothing */
    bool grace_given;
    mrt_time every;              /* once in each; 0: always */
    bool every_success;          /* and runs that failed do not count */
    int64_t period;              /* that this run is of */
    mrt_time lease;              /* 0: as the address says */
    char *leased_url;            /* the address with it; NULL: none */
    mrt_time lock_delay;         /* after we have died */
    mrt_time min_hold, max_hold; /* from when the lock was acquired */
    int conflict_code;
    bool conflict_code_given, quiet_conflict;
    enum mrt_on_lost on_lost;
    const char *on_lost_command;
    enum mrt_stragglers stragglers;
    struct mrt_strays strays; /* of the command, since it was started */
    int status_fd;            /* -1: nobody wants events */

    mortise_client *client;
    const struct mrt_run_lock *waits_for; /* the lock that is being acquired; NULL: none */
    bool is_queued;                       /* the store has said that others are before us */
    bool is_away;                         /* the store does not answer, and that was said */
    char *address;                        /* the store's, for MORTISE_HELD */
    mrt_time acquired_at;
    bool is_leased; /* the holds end by themselves */
    bool lost;      /* the library has reported it for one of them */

    sigset_t inherited_mask; /* what the command gets */
    int signal_fd;
    int cancel_fd;  /* when it becomes readable, that is as if TERM came; 0: none */
    bool cancelled; /* so it did */

    struct mrt_guard guard;
    struct mrt_terminal terminal;
    int lost_pipe[2]; /* MORTISE_LOCK_FD is the first */
};

/* ----------------------------------------------------------- run.c */

/* Sets the defaults. */
void mrt_run_set_standards(struct mrt_run *run);
/* The whole of run or elect, from the arguments on: the exit code. */
int mrt_run_whole(struct mrt_run *run, int argc, char **argv);

/* --------------------------------------------------------- every.c */

/* Whether the arguments suit --every: 0 or an exit code. */
int mrt_run_check_every(const struct mrt_run *run);
/* Whether this period has had no run yet. If so it is noted to have had this one, unless only a
   success counts. False: *code, 0 if the period had a run. */
bool mrt_run_is_due(struct mrt_run *run, int *code);
/* The command has ended well, and the locks are still held: notes the run, if a success counts. */
void mrt_run_count_success(const struct mrt_run *run);

/* --------------------------------------------------------- lease.c */

/* Puts --lease into the store's address: 0 or an exit code. */
int mrt_run_set_lease(struct mrt_run *run);

/* --------------------------------------------------------- label.c */

/* If no label was given: the value of a candidate, or the command's name. */
void mrt_run_set_label(struct mrt_run *run);
/* The same of a process that a keeper keeps the locks for. */
void mrt_run_set_label_of(struct mrt_run *run, const char *name, pid_t pid);

/* -------------------------------------------------------- status.c */

/* Writes an event of a lock (NULL: of none) as a line of JSON, if anybody wants events.
   `more`: members to add, as ", \"pid\": 12"; printf's format. */
__attribute__((format(printf, 4, 5))) void mrt_run_event(const struct mrt_run *run,
                                                         const char *event,
                                                         const struct mrt_run_lock *lock,
                                                         const char *more, ...);

/* --------------------------------------------------------- elect.c */

/* Tells who leads: the exit code. */
int mrt_elect_observe(struct mrt_run *run);
/* Leads until a signal or the end of the term: the exit code. */
int mrt_elect_lead(struct mrt_run *run);

/* --------------------------------------------------------- place.c */

/* Becomes the command, under locks that a keeper holds. Returns only an exit code. */
int mrt_run_in_place(struct mrt_run *run);

#endif
