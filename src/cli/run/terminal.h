/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal's foreground, which mortise and the command pass to each other.
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_TERMINAL_H
#define MRT_CLI_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct mrt_terminal {
    int fd;     /* -1: not opened yet, or there is none */
    bool eager; /* the command has the foreground whenever we have it to give */
    pid_t own_group;
};

/* Decides whether the command gets the terminal from the start. */
void mrt_terminal_init(struct mrt_terminal *terminal);
/* Whether this process has a terminal. */
bool mrt_terminal_exists(struct mrt_terminal *terminal);
/* Gives it to `group` if we have it, takes it back if `group` has it; whether it did. */
bool mrt_terminal_give(struct mrt_terminal *terminal, pid_t group);
bool mrt_terminal_take(struct mrt_terminal *terminal, pid_t group);
/* Stops this process (its own id) or its group (0: a shell then sees the whole job
   stopped) as the suspend key would; returns when it is continued. */
void mrt_terminal_stop(pid_t whom);

#endif
