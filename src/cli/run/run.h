/*
 * The parts of `mortise run` and what they share.
 *   run.c           the order of things, what is said
 *   options.c   options, locks and command
 *   wait.c      getting the locks while signals are watched
 *   kind.c      what kind the locks are, and names that are in use as another
 *   flock.c     --flock: the flock(2) of a file beside the locks
 *   label.c     what lists show where no --label is given
 *   every.c     whether it is due
 *   lease.c     --lease
 *   status.c    events for who started us
 *   held.c      the command's environment, and locks that an outer run holds
 *   above.c     a wait for what who waits for us holds
 *   spawn.c     starting the command
 *   ending.c    the command's end when a lock is lost
 *   child.c     looking after it until its process group is empty
 *   terminal.c  the terminal's foreground
 *   place.c     -F: the command in place of mortise, under a keeper (keeper/keeper.h)
 *   target.c    whom the lock is held for
 *   guard.c     the process that outlives this one
 * and what `mortise elect` does without a command: elect.c.
 * One thread; the client has none of its own.
 */
#ifndef MRT_CLI_RUN_RUN_H
#define MRT_CLI_RUN_RUN_H

#include "cli/frame/cli.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define MRT_RUN_LOCKS_MAX 32
/* The group is to be dead so long before a lease ends. */
#define MRT_RUN_LEASE_MARGIN (200 * MRT_MILLISECOND)

/* The command's descendants, wherever they have gone. */
struct mrt_strays {
    pid_t root;           /* mortise; 0: they do not count */
    pid_t guard, on_lost; /* children of mortise that do not either; 0: none */
    uint64_t since;       /* when the command began, in clock ticks since boot */
};

/* Whom the lock is held for: target.c. A process group, or a process alone; and strays. */
struct mrt_target {
    pid_t group; /* 0: it is the process alone */
    int pidfd;   /* of the process, or of the group's leader if it is no child; 0: none */
    struct mrt_strays strays;
};

/* The guard: guard.c. */
struct mrt_guard {
    pid_t pid;        /* 0: none */
    int fd;           /* the end of its pipe that is written */
    mrt_time kill_at; /* as it was told last */
};

/* The terminal: terminal.c. */
struct mrt_terminal {
    int fd;     /* -1: not opened yet, or there is none */
    bool eager; /* the command has the foreground whenever we have it to give */
    pid_t own_group;
};

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
    bool observe, once; /* an election is looked at: as long as it goes on, or once */
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
    bool every_success;          /* and what failed does not count */
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
    bool lost;      /* so the library told of one of them */

    sigset_t inherited_mask; /* what the command gets */
    int signal_fd;
    int cancel_fd;  /* when it becomes readable, that is as if TERM came; 0: none */
    bool cancelled; /* so it did */

    struct mrt_guard guard;
    struct mrt_terminal terminal;
    int lost_pipe[2]; /* MORTISE_LOCK_FD is the first */
};

/* ------------------------------------------------------- options.c */

/* Reads the command line; false and the exit code in *code (0 after --help). */
bool mrt_run_take_arguments(struct mrt_run *run, int argc, char **argv, int *code);

/* Options that other subcommands have too, rows of those that say what kind of lock it is, and
   what takes them. */
enum {
    MRT_RUN_OPTION_PERMITS = MRT_OPTION_OWN,
    MRT_RUN_OPTION_WEIGHT,
    MRT_RUN_OPTION_LABEL,
    MRT_RUN_OPTION_ON_LOST,
    MRT_RUN_OPTION_LEASE,
    MRT_RUN_OPTION_GRACE,
    MRT_RUN_OPTION_MAX_HOLD,
    MRT_RUN_OPTION_LOCK_DELAY,
    MRT_RUN_OPTION_FLOCK,
    MRT_RUN_OPTION_OWN
};
#define MRT_RUN_MODE_FLAGS                                                                  \
    {'s',  "shared",                                                                        \
     NULL, "hold it together with others that say -s:\nthe read side of a read/write lock", \
     NULL, 0},                                                                              \
        {'x',  "exclusive",                                                                 \
         NULL, "hold it alone, also among those that\nsay -s: its write side",              \
         NULL, 0},                                                                          \
        {MRT_RUN_OPTION_PERMITS, "permits", "N", "a semaphore of N permits", NULL, 0},      \
    {                                                                                       \
        MRT_RUN_OPTION_WEIGHT, "weight", "W", "take W permits of them", "1", 0              \
    }
#define MRT_RUN_FLOCK_FLAG                                                            \
    {                                                                                 \
        MRT_RUN_OPTION_FLOCK, "flock", "FILE",                                        \
            "also hold the file's flock, for scripts\nthat still use flock(1)", NULL, \
            MRT_FLAG_ONCE                                                             \
    }
int mrt_run_take_mode(struct mrt_run *run, int option);
/* Takes any option of run. 0 or an exit code. */
int mrt_run_take_option(struct mrt_run *run, int option);
/* Adds a lock to run->locks. 0 or an exit code. */
int mrt_run_add_name(struct mrt_run *run, const char *name);
/* Checks what only all options together tell, and puts the locks in order. 0 or an exit code. */
int mrt_run_check_together(struct mrt_run *run);

/* -------------------------------------------------------- status.c */

/* Writes an event of a lock (NULL: of none) as a line of JSON, if anybody wants events.
   `more`: members to add, as ", \"pid\": 12"; printf's format. */
__attribute__((format(printf, 4, 5))) void mrt_run_event(const struct mrt_run *run,
                                                         const char *event,
                                                         const struct mrt_run_lock *lock,
                                                         const char *more, ...);

/* --------------------------------------------------------------- run.c */

/* What counts where nobody says anything. */
void mrt_run_set_standards(struct mrt_run *run);
/* What run and elect have in common, from the arguments on: the exit code. */
int mrt_run_whole(struct mrt_run *run, int argc, char **argv);
/* The longest grace that fits into the store's lease. */
mrt_time mrt_run_longest_grace(const mortise_capabilities *can);
/* Makes the grace fit into the store's lease; 0 or an exit code. */
int mrt_run_fit_grace(struct mrt_run *run);
/* Makes the handle, of the run's mode: an error of the library. */
int mrt_run_make_lock(struct mrt_run *run, struct mrt_run_lock *lock);
/* Opens the client; from now on a wait says when the store does not answer. 0 or an exit code. */
int mrt_run_open(struct mrt_run *run);

/* --------------------------------------------------------- every.c */

/* What --every needs of the arguments: 0 or an exit code. */
int mrt_run_check_every(const struct mrt_run *run);
/* Whether this period has had no run; then it has had this one, unless only a success counts.
   False: *code, 0 if it had. */
bool mrt_run_is_due(struct mrt_run *run, int *code);
/* The command has ended well, and the locks are held yet: notes it, if that is what counts. */
void mrt_run_count_success(const struct mrt_run *run);

/* --------------------------------------------------------- lease.c */

/* Puts --lease into the store's address: 0 or an exit code. */
int mrt_run_set_lease(struct mrt_run *run);

/* -------------------------------------------------------------- kind.c */

/* What can be done about a refusal. */
enum mrt_join {
    MRT_JOIN_TURNED,  /* ask again: the lock is made anew, as the kind that the name is in use as */
    MRT_JOIN_WAITS,   /* a mutex is in the way of a reader: ask again, later */
    MRT_JOIN_UNCLEAR, /* nothing is in the way by now */
    MRT_JOIN_FOREIGN, /* a mutex of a program that would not see a reader */
    MRT_JOIN_REFUSED  /* nothing */
};
/* Makes the handle of one who is to be alone: an error of the library. */
int mrt_run_make_exclusive(struct mrt_run_lock *lock, const mortise_lock_options *options);
/* After an acquire that the store has refused by this error. */
enum mrt_join mrt_run_join(struct mrt_run_lock *lock, int error);

/* ------------------------------------------------------------- label.c */

/* If no label was given: the value of a candidate, or the command's name. */
void mrt_run_set_label(struct mrt_run *run);
/* The same of a process that a keeper keeps the locks for. */
void mrt_run_set_label_of(struct mrt_run *run, const char *name, pid_t pid);

/* ------------------------------------------------------------- flock.c */

/* Opens the file of --flock; 0 or an exit code. */
int mrt_run_open_file(struct mrt_run *run);
/* Locks it if that needs no wait, or there is none; else EBUSY, or EINVALID and errno. */
int mrt_run_lock_file(const struct mrt_run *run);
void mrt_run_unlock_file(const struct mrt_run *run);
/* Says so of names that are paths of files. */
void mrt_run_warn_of_files(const struct mrt_run *run);

/* ------------------------------------------------------------- elect.c */

/* Tells who leads: the exit code. */
int mrt_elect_observe(struct mrt_run *run);
/* Leads until a signal or the end of the term: the exit code. */
int mrt_elect_lead(struct mrt_run *run);

/* ---------------------------------------------------------- wait.c */

/* Blocks the signals that are waited for and opens run->signal_fd. 0 or an exit code. */
int mrt_run_block_signals(struct mrt_run *run);
/* The next signal that has come; 0: none. */
int mrt_run_next_signal(struct mrt_run *run);
bool mrt_run_is_terminating(int signal);
/* Sleeps until the client, a signal or `until` calls, and runs the client. */
void mrt_run_poll(struct mrt_run *run, mrt_time until);
/* The same for more descriptors; the first two of `fds` are filled in here. */
void mrt_run_poll_all(struct mrt_run *run, mrt_time until, struct pollfd *fds, nfds_t count);
/* Acquires all that no outer run holds: true; or false and the exit code, with nothing
   held or queued. */
bool mrt_run_wait(struct mrt_run *run, int *code);
/* Gives all back; what the library says of the first that could not be. */
int mrt_run_release(struct mrt_run *run);
/* Sleeps until `until`, a signal that ends, or the loss of a lock. */
void mrt_run_linger(struct mrt_run *run, mrt_time until);

/* ---------------------------------------------------------- held.c */

#define MRT_RUN_HELD_SIZE 1536 /* a line of MORTISE_HELD, with its 0 */

enum mrt_cover {
    MRT_COVER_NONE,    /* it is not held, or nothing to us */
    MRT_COVER_WHOLE,   /* it is held as the run asks for it */
    MRT_COVER_CIRCULAR /* it is held in a way that the run would wait for */
};
/* What the lines of a list like MORTISE_HELD that the store confirms are for the lock, whose fence
   is noted then. */
enum mrt_cover mrt_run_find_cover(struct mrt_run *run, struct mrt_run_lock *lock, const char *list);
/* Writes the line of a lock that is held; snprintf's result. */
int mrt_run_write_held(const struct mrt_run_lock *lock, char *text, size_t size);
/* Marks the locks that outer runs hold now. 0; or an exit code, with the error said: an outer
   run holds one in a way that this one would wait for, for ever. */
int mrt_run_find_outer(struct mrt_run *run);
/* Notes the store's address, if it is not known yet, and takes what was shown to the server out of
   our environment; false: no memory. */
bool mrt_run_wipe_secrets(struct mrt_run *run);
/* The fence of the lock that was named first. */
uint64_t mrt_run_fence(const struct mrt_run *run);
/* Sets MORTISE_NAME, MORTISE_FENCE, MORTISE_LOCK_FD, MORTISE_HELD; false: no memory. */
bool mrt_run_set_environment(const struct mrt_run *run);
/* Whether outer runs hold all locks. */
bool mrt_run_are_all_outer(const struct mrt_run *run);
/* Becomes the command, under locks that outer runs hold. Returns only an exit code. */
int mrt_run_replace(const struct mrt_run *run);

/* --------------------------------------------------------- above.c */

/* Whether a run or a script that we are part of holds the lock, so that our wait may have no end.
 */
bool mrt_run_is_held_above(struct mrt_run *run, struct mrt_run_lock *lock);

/* --------------------------------------------------------- spawn.c */

/* Starts the command in a process group of its own: its id, or -1 and errno; ETIME: the lock
   may be lost by now. */
pid_t mrt_run_spawn(struct mrt_run *run);
/* Warns of a command that the system would not let mortise stop. */
void mrt_run_warn_of_immune(const struct mrt_run *run);
/* Says why a command could not be run: 126 or 127. */
int mrt_run_fail_exec(const struct mrt_run *run, int error);
/* Starts the command of --on-lost for the target, of whose strays it is none; false: it cannot
   be. */
bool mrt_run_spawn_on_lost(const struct mrt_run *run, struct mrt_target *target);
/* Marks all descriptors above 2, but `kept` (-1: none), to be closed by exec. */
void mrt_run_shed_descriptors(int kept);

/* ------------------------------------------------------- ending.c */

struct mrt_ending {
    struct mrt_run *run;
    struct mrt_target target;
    bool stopping;  /* TERM was sent by us */
    bool lock_gone; /* it is lost, or about to be, and what --on-lost says is under way */
    bool killed;    /* KILL was sent */
    bool immune;    /* the system refused a signal: a process runs as another user */
    mrt_time kill_at;
    mrt_time attend_at; /* MRT_TIME_NEVER: done */
};

/* The target runs under the locks from now on. */
void mrt_ending_begin(struct mrt_ending *ending, struct mrt_run *run, struct mrt_target target);
/* When to call mrt_ending_step next, if the client has nothing to say. */
mrt_time mrt_ending_next_time(const struct mrt_ending *ending);
/* Looks at the locks, and does what is due. */
void mrt_ending_step(struct mrt_ending *ending, mrt_time now);
/* Only that which must not wait: whether they are lost. */
void mrt_ending_check_lock(struct mrt_ending *ending, mrt_time now);
/* As if they were lost, with the whole grace. */
void mrt_ending_give_up(struct mrt_ending *ending);
/* TERM, once, and KILL at `kill_at`. */
void mrt_ending_term(struct mrt_ending *ending, mrt_time kill_at);
/* When the command has to be told to end if the store is never heard of again. */
mrt_time mrt_run_term_time(const struct mrt_run *run);
/* Tells the guard when the locks end if nothing more is heard of the store. */
void mrt_run_tell_guard(struct mrt_run *run);

/* -------------------------------------------------------- child.c */

/* Looks after the group of `child` until it is empty: the exit code. */
int mrt_run_supervise(struct mrt_run *run, pid_t child);

/* --------------------------------------------------------- place.c */

/* Becomes the command, under locks that a keeper holds. Returns only an exit code. */
int mrt_run_in_place(struct mrt_run *run);

/* ------------------------------------------------------ terminal.c */

/* Looks whether the command is to have the terminal from the start. */
void mrt_terminal_init(struct mrt_terminal *terminal);
/* Whether this process has a terminal. */
bool mrt_terminal_exists(struct mrt_terminal *terminal);
/* Gives it to `group` if we have it, takes it back if `group` has it; whether it did. */
bool mrt_terminal_give(struct mrt_terminal *terminal, pid_t group);
bool mrt_terminal_take(struct mrt_terminal *terminal, pid_t group);
/* Stops this process (its own id) or its group (0, for a shell to see the whole job
   stopped) as the suspend key would; returns when it is continued. */
void mrt_terminal_stop(pid_t whom);

/* --------------------------------------------------------- guard.c */

/* Starts the guard; the lock is held already. `timed`: a lease may end. False and errno. */
bool mrt_guard_start(struct mrt_guard *guard, bool timed);
/* When it is to send TERM and KILL if it hears nothing more. MRT_TIME_NEVER: not at all. */
void mrt_guard_set_times(struct mrt_guard *guard, mrt_time term_at, mrt_time kill_at);
/* From now on the guard minds the target; also in the command's process. False and errno. */
bool mrt_guard_mind(const struct mrt_guard *guard, const struct mrt_target *target);
/* The group is empty: the guard may go. */
void mrt_guard_dismiss(struct mrt_guard *guard);
/* Waits for its end. */
void mrt_guard_reap(struct mrt_guard *guard);

/* -------------------------------------------------------- target.c */

bool mrt_target_is_set(const struct mrt_target *target);
/* Whether the process has ended, or the group's leader; false without a pidfd. */
bool mrt_target_has_ended(const struct mrt_target *target);
/* Whether anybody of it lives that is more than a zombie. */
bool mrt_target_is_alive(const struct mrt_target *target);
/* False and errno. */
bool mrt_target_signal(const struct mrt_target *target, int signal);
/* Kills it; returns when nobody of it runs any more. */
void mrt_target_kill(const struct mrt_target *target);
/* In the command's process, before it is that: what descends from it counts from now on. */
void mrt_strays_begin(struct mrt_strays *strays, pid_t root, pid_t guard);
/* Whether any lives that is more than a zombie. */
bool mrt_strays_are_alive(const struct mrt_strays *strays);
/* Whether a process of `group` lives that is more than a zombie. */
bool mrt_group_is_alive(pid_t group);

#endif
