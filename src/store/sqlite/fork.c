/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes what a forked child must not keep.
 *
 * A session lives as long as some process has the file description open that locks its file.
 * fork gives the child a copy, and a child that outlives its parent would keep the
 * dead parent's locks. So a child closes its copies immediately. Closing one of
 * several copies drops no open-file-description lock. For exec, close-on-exec does the same.
 *
 * _Fork runs no such handlers. A child that must carry on the parent's session
 * until it exits is made with _Fork: so a guard process can keep a lock for
 * a command that outlives its killed parent.
 *
 * SQLite's own tables of locks are copied into a child as well, and name locks there
 * that only the parent has. A second connection to the same file would believe
 * them. So a child may not open a database that its parent had open (its own
 * children after exec may). The child remembers for ever which databases it inherited.
 *
 * Threads: any; one mutex, which fork waits for.
 */
#include "store/sqlite/fork.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct mrt_sqlite_fork_database {
    TAILQ_ENTRY(mrt_sqlite_fork_database) link;
    dev_t device;
    ino_t inode;
    bool inherited;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool installed;
static TAILQ_HEAD(, mrt_sqlite_fork_fd) guards = TAILQ_HEAD_INITIALIZER(guards);
static TAILQ_HEAD(, mrt_sqlite_fork_database) databases = TAILQ_HEAD_INITIALIZER(databases);

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    struct mrt_sqlite_fork_fd *guard;
    while ((guard = TAILQ_FIRST(&guards))) {
        TAILQ_REMOVE(&guards, guard, link);
        close(guard->fd);
        guard->fd = -1;
    }
    struct mrt_sqlite_fork_database *database;
    TAILQ_FOREACH (database, &databases, link)
        database->inherited = true;
    pthread_mutex_unlock(&mutex);
}

static void install(void)
{
    installed = pthread_atfork(before_fork, in_parent, in_child) == 0;
}

void mrt_sqlite_fork_guard_fd(struct mrt_sqlite_fork_fd *guard, int fd)
{
    pthread_mutex_lock(&mutex);
    guard->fd = fd;
    TAILQ_INSERT_TAIL(&guards, guard, link);
    pthread_mutex_unlock(&mutex);
}

void mrt_sqlite_fork_close_fd(struct mrt_sqlite_fork_fd *guard)
{
    pthread_mutex_lock(&mutex);
    if (guard->fd >= 0) {
        TAILQ_REMOVE(&guards, guard, link);
        close(guard->fd);
        guard->fd = -1;
    }
    pthread_mutex_unlock(&mutex);
}

struct mrt_sqlite_fork_database *mrt_sqlite_fork_note_database(dev_t device, ino_t inode)
{
    pthread_once(&once, install);
    struct mrt_sqlite_fork_database *database = installed ? calloc(1, sizeof *database) : NULL;
    if (!database)
        return NULL;
    database->device = device;
    database->inode = inode;
    pthread_mutex_lock(&mutex);
    TAILQ_INSERT_TAIL(&databases, database, link);
    pthread_mutex_unlock(&mutex);
    return database;
}

void mrt_sqlite_fork_forget_database(struct mrt_sqlite_fork_database *database)
{
    if (!database)
        return;
    pthread_mutex_lock(&mutex);
    TAILQ_REMOVE(&databases, database, link);
    pthread_mutex_unlock(&mutex);
    free(database);
}

bool mrt_sqlite_fork_inherited(dev_t device, ino_t inode)
{
    bool inherited = false;
    struct mrt_sqlite_fork_database *database;
    pthread_mutex_lock(&mutex);
    TAILQ_FOREACH (database, &databases, link)
        if (database->inherited && database->device == device && database->inode == inode)
            inherited = true;
    pthread_mutex_unlock(&mutex);
    return inherited;
}
