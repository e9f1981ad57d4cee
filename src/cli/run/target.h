/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a lock is held for: a group, or one process, and descendants that have left
 * the group.
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_TARGET_H
#define MRT_CLI_RUN_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The command's descendants, wherever they have gone. */
struct mrt_strays {
    pid_t root;           /* mortise; 0: they do not count */
    pid_t guard, on_lost; /* children of mortise that do not either; 0: none */
    uint64_t since;       /* when the command began, in clock ticks since boot */
};

/* A process group, or a process alone; and strays. */
struct mrt_target {
    pid_t group; /* 0: it is the process alone */
    int pidfd;   /* of the process, or of the group's leader if it is no child; 0: none */
    struct mrt_strays strays;
};

bool mrt_target_is_set(const struct mrt_target *target);
/* Whether the process has ended, or the group's leader; false without a pidfd. */
bool mrt_target_has_ended(const struct mrt_target *target);
/* Whether anybody of it lives that is more than a zombie. */
bool mrt_target_is_alive(const struct mrt_target *target);
/* False and errno. */
bool mrt_target_signal(const struct mrt_target *target, int signal);
/* Kills it; returns when nobody of it runs any more. */
void mrt_target_kill(const struct mrt_target *target);
/* Called in the child before exec: from now on its descendants count as the command's. */
void mrt_strays_begin(struct mrt_strays *strays, pid_t root, pid_t guard);
/* Whether any lives that is more than a zombie. */
bool mrt_strays_are_alive(const struct mrt_strays *strays);
/* Whether a process of `group` lives that is more than a zombie. */
bool mrt_group_is_alive(pid_t group);

#endif
