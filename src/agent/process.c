/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of processes (BIND PROCESS): they end with the process that took them, and not with its
 * connection. Each connection of the process may give them back, by name and fence.
 *
 * A process that has such locks is a peer whose descriptor is the process's pidfd: it is readable
 * once the process has ended, and then the peer is closed like a connection. It has no input and
 * no output.
 *
 * A client session that asks for it ends with the process that connected: a killed client believes
 * nothing, but its forked child may have the connection open. A child cannot hold by the session:
 * the library refuses it. Beside a process that is not seen here, the stream alone is believed.
 *
 * A number of a process is used again. The kernel's SO_PEERPIDFD names the process that connected
 * itself; where there is none, the process of that number must have begun before the connection was
 * accepted. A connection belongs to a process if it has its number and its user, and was made while
 * it lives.
 */
#include "agent/process.h"

#include "agent/lock.h"
#include "base/epoll.h"
#include "base/parameter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* When the process began; -1: not known. */
static mrt_time begun_at(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *at = strrchr(text, ')'); /* behind its name, which may have blanks */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    int64_t ticks =
        at ? mrt_parse_number(at + 1, strcspn(at + 1, " "), INT64_MAX / MRT_SECOND) : -1;
    long a_second = sysconf(_SC_CLK_TCK);
    return ticks < 0 || a_second <= 0 ? -1 : ticks * (MRT_SECOND / a_second);
}

static bool has_ended(int pidfd)
{
    struct pollfd poll_for = {pidfd, POLLIN, 0};
    return poll(&poll_for, 1, 0) != 0;
}

/* A descriptor of the process that made this connection; -1: it has ended, or is not seen here.
 *is_gone: it has ended, for sure. */
static int open_pidfd(const struct mrt_peer *peer, bool *is_gone)
{
    int fd = -1;
    socklen_t size = sizeof fd;
    *is_gone = false;
    if (peer->pid <= 0)
        return -1;
    if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
        return fd;
    *is_gone = errno == ESRCH || errno == EINVAL;
    if (errno != ENOPROTOOPT)
        return -1;
    fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
    *is_gone = fd < 0 && errno == ESRCH;
    mrt_time begun = fd < 0 ? -1 : begun_at(peer->pid);
    if (fd >= 0 && begun >= 0 && begun <= peer->since)
        return fd;
    *is_gone |= begun > peer->since;
    if (fd >= 0)
        close(fd);
    return -1;
}

struct mrt_peer *mrt_process_find(const struct mrt_peer *peer)
{
    struct mrt_peer *process;
    HASH_FIND(by_pid, peer->agent->processes, &peer->pid, sizeof peer->pid, process);
    if (process && has_ended(process->fd)) {
        mrt_process_forget(process); /* the event that closes it will come */
        return NULL;
    }
    bool is_his = process && process->user == peer->user && process->since <= peer->since;
    return is_his && process->state == MRT_PEER_OPEN ? process : NULL;
}

struct mrt_peer *mrt_process_open(struct mrt_peer *peer)
{
    struct mrt_agent *agent = peer->agent;
    struct mrt_peer *process = mrt_process_find(peer);
    if (process)
        return process;
    bool is_gone;
    int fd = mrt_peers_have_room(agent, peer->user) ? open_pidfd(peer, &is_gone) : -1;
    process = fd < 0 || has_ended(fd) ? NULL : mrt_peer_new(agent, fd, EPOLLIN);
    if (process) {
        process->is_process = true;
        process->pid = peer->pid;
        process->user = peer->user;
        process->rules = peer->rules;
        memcpy(process->space, peer->space, sizeof process->space);
        process->since = begun_at(peer->pid);
        HASH_ADD(by_pid, agent->processes, pid, sizeof process->pid, process);
        if (process->by_pid.tbl) {
            mrt_peer_join(process);
            return process;
        }
    }
    free(process);
    if (fd >= 0)
        close(fd); /* and its place in the epoll goes with it */
    return NULL;
}

void mrt_process_forget(struct mrt_peer *process)
{
    if (process->by_pid.tbl)
        HASH_DELETE(by_pid, process->agent->processes, process);
    process->by_pid.tbl = NULL;
}

bool mrt_process_watch(struct mrt_peer *peer)
{
    bool is_gone;
    if (peer->process_fd >= 0)
        return true;
    if (!mrt_peers_have_room(peer->agent, peer->user))
        return false;
    int fd = open_pidfd(peer, &is_gone);
    if (fd >= 0 && !mrt_epoll_watch(peer->agent->epoll, fd, EPOLLIN, mrt_process_tag(peer))) {
        close(fd);
        return false;
    }
    peer->process_fd = fd;
    peer->agent->watch_count += fd >= 0;
    peer->quits |= is_gone;
    return true;
}

void mrt_process_unwatch(struct mrt_peer *peer)
{
    if (peer->process_fd < 0)
        return;
    close(peer->process_fd); /* which takes it out of the epoll, too */
    peer->process_fd = -1;
    peer->agent->watch_count--;
}
