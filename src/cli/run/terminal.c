/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal's foreground, as a shell without job control of its own would
 * leave it to the command.
 *
 * Eager: standard input and output are both the terminal and our group has the
 * foreground. Then the command's group gets it at once, so that keys and the
 * terminal's signals go to the command. Else, in a pipeline say, a neighbour may
 * need the terminal more: the command gets it only when it stops because it
 * asked for it. SIGTTOU is blocked throughout, so that this process may change
 * the foreground from the background.
 */

#include "cli/run/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void mrt_terminal_init(struct mrt_terminal *terminal)
{
    terminal->own_group = getpgrp();
    terminal->eager = tcgetpgrp(STDIN_FILENO) == terminal->own_group && isatty(STDOUT_FILENO);
    terminal->fd = terminal->eager ? STDIN_FILENO : -1;
}

bool mrt_terminal_exists(struct mrt_terminal *terminal)
{
    if (terminal->fd < 0)
        terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    return terminal->fd >= 0;
}

bool mrt_terminal_give(struct mrt_terminal *terminal, pid_t group)
{
    return mrt_terminal_exists(terminal) && tcgetpgrp(terminal->fd) == terminal->own_group &&
           tcsetpgrp(terminal->fd, group) == 0;
}

bool mrt_terminal_take(struct mrt_terminal *terminal, pid_t group)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == group &&
           tcsetpgrp(terminal->fd, terminal->own_group) == 0;
}

void mrt_terminal_stop(pid_t whom)
{
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    /* In a group without a shell above it the system discards the signal, as it should. */
    kill(whom, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}
