/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --flock FILE: beside the locks in the store the flock(2) of a file, so that a script which still
 * says "flock FILE" and one which says "mortise run" exclude each other. With -s it is shared.
 *
 * Order: it is taken after the locks in the store and given back before them.
 * A flock(2) that waits cannot be ended at a deadline. So it is asked for again and again, and a
 * waiter of flock(1) may come first. The guard has the descriptor too, so the file stays locked
 * until the command's group has ended, also when mortise is killed.
 */

#include "cli/run/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

int mrt_run_open_file(struct mrt_run *run)
{
    if (!run->file)
        return 0;
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    run->file_fd = open(run->file, flags | O_CREAT, 0666);
    if (run->file_fd < 0 && errno == EISDIR)
        run->file_fd = open(run->file, flags);
    if (run->file_fd >= 0)
        return 0;
    bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;
    return mrt_cli_fail(is_denied ? MRT_EXIT_DENIED : MRT_EXIT_CONFIG, "--flock %s: %s", run->file,
                        strerror(errno));
}

int mrt_run_lock_file(const struct mrt_run *run)
{
    int how = run->mode == MRT_RUN_SHARED ? LOCK_SH : LOCK_EX;
    if (!run->file || flock(run->file_fd, how | LOCK_NB) == 0)
        return MORTISE_OK;
    return errno == EWOULDBLOCK || errno == EINTR ? MORTISE_EBUSY : MORTISE_EINVALID;
}

void mrt_run_unlock_file(const struct mrt_run *run)
{
    if (run->file)
        flock(run->file_fd, LOCK_UN);
}

void mrt_run_warn_of_files(const struct mrt_run *run)
{
    struct stat status;
    for (size_t i = 0; i < run->count && !run->file; i++) {
        const char *name = run->locks[i].name;
        if (stat(name, &status) == 0 && (strchr(name, '/') || S_ISREG(status.st_mode)))
            mrt_cli_say("warning: %s is a file, whose flock is another lock than mortise's of that "
                        "name; --flock %s takes both",
                        name, name);
    }
}
