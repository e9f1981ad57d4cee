/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that has died: its tickets are removed, or stay behind for a while (delay.c), and then
 * its files are removed. A process that finds a session dead removes all its tickets at once and
 * then its files, so the next process finds nothing to do. A sweep finds dead sessions behind whose
 * tickets nobody waits.
 */
#include "store/sqlite/death.h"

#include "store/sqlite/delay.h"
#include "store/sqlite/leave.h"
#include "store/sqlite/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SWEEP_MARK "swept"
#define SWEEP_SECONDS 60
#define SWEEP_MAX 256

enum mrt_outcome mrt_sqlite_delete_session(struct mrt_sqlite_store *store, struct mrt_id session,
                                           size_t *count)
{
    char queue[MRT_SQLITE_QUEUE_MAX] = "";
    uint64_t number = 0, weight = 0;
    struct mrt_id id = {0, 0};
    enum mrt_outcome outcome = mrt_sqlite_leave_behind(store, session, count);
    while (outcome == MRT_DONE) {
        outcome = mrt_sqlite_next_of_session(store, session, 0, queue, &number, &id, &weight);
        if (outcome != MRT_DONE || number == 0)
            return outcome;
        outcome = mrt_sqlite_delete_row(store, queue, number, id, weight);
        ++*count;
    }
    return outcome;
}

/* Whether the session has any ticket; a look without the writer's lock. */
static enum mrt_outcome has_tickets(struct mrt_sqlite_store *store, struct mrt_id session,
                                    bool *any)
{
    char queue[MRT_SQLITE_QUEUE_MAX] = "";
    uint64_t number = 0, weight;
    struct mrt_id id;
    enum mrt_outcome outcome =
        mrt_sqlite_next_of_session(store, session, 0, queue, &number, &id, &weight);
    *any = number != 0;
    return outcome;
}

enum mrt_outcome mrt_sqlite_bury(struct mrt_sqlite_store *store, struct mrt_id session,
                                 mrt_time patience)
{
    size_t before = store->wakes.count, count;
    bool any = false;
    store->db.patience = patience;
    enum mrt_outcome outcome = has_tickets(store, session, &any);
    if (outcome == MRT_DONE && any) {
        outcome = mrt_sqlite_begin(&store->db, patience);
        if (outcome == MRT_DONE) {
            outcome = mrt_sqlite_delete_session(store, session, &count);
            outcome = mrt_sqlite_end(store, outcome, before);
        }
    }
    if (outcome == MRT_DONE)
        mrt_sqlite_session_unlink(store, session);
    if (outcome == MRT_BROKEN)
        store->fault = true;
    return outcome;
}

/* ------------------------------------------------------------------- sweep */

/* Old by the wall clock, for housekeeping only. A young file may be about to be locked. */
static bool older_than(int directory, const char *name, time_t seconds)
{
    struct stat status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (status.st_mtime + seconds < now.tv_sec || status.st_mtime > now.tv_sec + seconds);
}

/* True: it is this process's turn to sweep. */
static bool take_turn(int directory)
{
    struct stat status;
    if (fstatat(directory, SWEEP_MARK, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            mknodat(directory, SWEEP_MARK, S_IFREG | 0600, 0);
        return false;
    }
    return older_than(directory, SWEEP_MARK, SWEEP_SECONDS) &&
           utimensat(directory, SWEEP_MARK, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The session that a file belongs to; the socket's name has a suffix. */
static bool parse_name(const char *name, struct mrt_id *id)
{
    char digits[MRT_ID_TEXT_SIZE];
    size_t length = strlen(name);
    if (length < sizeof digits - 1 || (name[sizeof digits - 1] && name[sizeof digits - 1] != '.'))
        return false;
    memcpy(digits, name, sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    return mrt_id_parse(digits, id);
}

void mrt_sqlite_sweep(struct mrt_sqlite_store *store, mrt_time patience)
{
    struct mrt_id dead[SWEEP_MAX];
    size_t count = 0;
    int directory = store->file.sessions_fd;
    if (!take_turn(directory))
        return;
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const struct dirent *entry;
    while (count < SWEEP_MAX && (entry = readdir(stream)))
        if (parse_name(entry->d_name, &dead[count]) &&
            older_than(directory, entry->d_name, SWEEP_SECONDS) &&
            mrt_sqlite_session_dead(store, dead[count]))
            count++;
    closedir(stream);
    for (size_t i = 0; i < count; i++)
        if (mrt_sqlite_bury(store, dead[i], patience) != MRT_DONE)
            break;
}
