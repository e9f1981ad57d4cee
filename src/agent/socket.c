/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One agent a path. An agent has PATH.lock locked for its life, so a second one is refused, and no
 * path is taken from an agent that is alive: two agents on one path would be two lock spaces. The
 * socket is made under another name and renamed, so the path never leads to a socket that does not
 * listen, and what a dead agent has left there is replaced.
 *
 * A missing directory is made, with rights only for this user unless others may connect. It must
 * belong to this user or to root, and no other user may write there: a process that can rename the
 * socket can take the agent's place.
 */
#include "agent/socket.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CALLS_WAITING 4096 /* what the system allows as a rule */

/* Checks the directory of the path, and makes it if there is none. */
static int check_directory(const char *path, bool for_all)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    struct stat status;
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", (int)(slash > path ? slash - path : 1), path);
    if (mkdir(directory, for_all ? 0755 : 0700) != 0 && errno != EEXIST)
        return mrt_error(MORTISE_EINVALID, "the directory %s cannot be made: %s", directory,
                         strerror(errno));
    if (stat(directory, &status) != 0 || !S_ISDIR(status.st_mode))
        return mrt_error(MORTISE_EINVALID, "%s is no directory", directory);
    bool is_ours = status.st_uid == geteuid() || status.st_uid == 0;
    if (!is_ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return mrt_error(MORTISE_EUNSAFE,
                         "%s: other users may write there, and could take the socket's place",
                         directory);
    return MORTISE_OK;
}

/* Locks PATH.lock for the life of this process. */
static int lock_path(const char *path, int *lock)
{
    char name[sizeof((struct sockaddr_un *)0)->sun_path + 8];
    snprintf(name, sizeof name, "%s.lock", path);
    *lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*lock < 0)
        return mrt_error(MORTISE_EINVALID, "%s: %s", name, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return MORTISE_OK;
    int why = errno;
    close(*lock);
    if (why == EWOULDBLOCK)
        return mrt_error(MORTISE_EBUSY, "another agent serves %s", path);
    return mrt_error(MORTISE_EINVALID, "%s: %s", name, strerror(why));
}

/* Binds under another name, listens, and renames. */
static int bind_path(const char *path, bool for_all, int *listener)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s.new", path);
    unlink(address.sun_path);
    *listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*listener >= 0 && bind(*listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(address.sun_path, for_all ? 0666 : 0600) == 0 &&
        listen(*listener, CALLS_WAITING) == 0 && rename(address.sun_path, path) == 0)
        return MORTISE_OK;
    int why = errno;
    if (*listener >= 0)
        close(*listener);
    unlink(address.sun_path);
    return mrt_error(MORTISE_EINVALID, "the socket %s: %s", path, strerror(why));
}

int mrt_agent_listen(const char *path, bool for_all, int *listener, int *lock)
{
    if (path[0] != '/' || strlen(path) + sizeof ".new" > sizeof((struct sockaddr_un *)0)->sun_path)
        return mrt_error(MORTISE_EINVALID,
                         "the socket %.64s is no absolute path of at most %zu bytes", path,
                         sizeof((struct sockaddr_un *)0)->sun_path - sizeof ".new");
    int error = check_directory(path, for_all);
    if (error == MORTISE_OK)
        error = lock_path(path, lock);
    if (error != MORTISE_OK)
        return error;
    error = bind_path(path, for_all, listener);
    if (error != MORTISE_OK)
        close(*lock);
    return error;
}

int mrt_agent_adopt(const char *path, int listener, int *lock)
{
    int kind = 0, listens = 0;
    socklen_t size = sizeof kind, size_of_listens = sizeof listens;
    if (getsockopt(listener, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM ||
        getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size_of_listens) != 0 ||
        !listens || fcntl(listener, F_SETFL, O_NONBLOCK) != 0)
        return mrt_error(MORTISE_EINVALID, "the socket %s is no stream socket that listens", path);
    int error = check_directory(path, false);
    return error == MORTISE_OK ? lock_path(path, lock) : error;
}

void mrt_agent_unlisten(const char *path, int listener)
{
    unlink(path); /* PATH.lock is still locked, so it is ours */
    close(listener);
}
