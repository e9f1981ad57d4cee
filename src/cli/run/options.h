/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of run, and the parts of them that elect, try, acquire and release share.
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_OPTIONS_H
#define MRT_CLI_RUN_OPTIONS_H

#include "cli/run/run.h"

/* Reads the command line; false and the exit code in *code (0 after --help). */
bool mrt_run_take_arguments(struct mrt_run *run, int argc, char **argv, int *code);

/* Options that other subcommands share: the rows that choose the kind of lock, and the function
 * that reads them. */
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
#define MRT_RUN_MODE_FLAGS                                                                          \
    {'s',  "shared",                                                                                \
     NULL, "share the lock with others that use -s:\nthe read side of a read/write lock",           \
     NULL, 0},                                                                                      \
        {'x', "exclusive", NULL, "hold the lock alone: the write side of a\nread/write lock", NULL, \
         0},                                                                                        \
        {MRT_RUN_OPTION_PERMITS, "permits", "N", "a semaphore: N permits in all", NULL, 0},         \
    {                                                                                               \
        MRT_RUN_OPTION_WEIGHT, "weight", "W", "hold W of the N permits", "1", 0                     \
    }
#define MRT_RUN_FLOCK_FLAG                                                             \
    {                                                                                  \
        MRT_RUN_OPTION_FLOCK, "flock", "FILE",                                         \
            "also hold the flock of FILE, for scripts\nthat still use flock(1)", NULL, \
            MRT_FLAG_ONCE                                                              \
    }
/* The rows of run and elect: the first are of run alone, the last of elect. */
enum { MRT_RUN_FLAG_COUNT = 31, MRT_RUN_FLAGS_OF_RUN = 10, MRT_RUN_FLAGS_OF_ELECT = 3 };
extern const struct mrt_flag mrt_run_flags[];
int mrt_run_take_mode(struct mrt_run *run, int option);
/* Takes any option of run. 0 or an exit code. */
int mrt_run_take_option(struct mrt_run *run, int option);
/* Adds a lock to run->locks. 0 or an exit code. */
int mrt_run_add_name(struct mrt_run *run, const char *name);
/* Checks conditions between options, and sorts the locks. 0 or an exit code. */
int mrt_run_check_together(struct mrt_run *run);

#endif
