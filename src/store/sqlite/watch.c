/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches on session files: the kernel closes such a file when its process dies, and tells.
 *
 * The watch is armed first and the lock tried then, so that no death falls in between.
 * A watch is kept when the wait is over, since the same neighbours come again; it goes
 * with the session that it watches.
 *
 * Only 128 inotify instances are allowed to a user. Where one is refused, or the socket,
 * waiting tickets look again every tenth of a second, and each look tries the lock of the
 * session ahead.
 */
#include "store/sqlite/watch.h"

#include "base/epoll.h"
#include "store/sqlite/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define RECHECK MRT_SECOND
#define RECHECK_DEAF (100 * MRT_MILLISECOND)

mrt_time mrt_sqlite_recheck(const struct mrt_sqlite_store *store)
{
    return store->no_events || store->no_socket ? RECHECK_DEAF : RECHECK;
}

int mrt_sqlite_watch_file(struct mrt_sqlite_store *store, const char *name, uint32_t events)
{
    char path[PATH_MAX];
    if (store->inotify_fd < 0) {
        store->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (store->inotify_fd < 0)
            return -1;
        if (!mrt_epoll_watch(store->epoll_fd, store->inotify_fd, EPOLLIN, NULL)) {
            close(store->inotify_fd);
            store->inotify_fd = -1;
            return -1;
        }
    }
    if (snprintf(path, sizeof path, "%s/%s", store->file.sessions, name) >= (int)sizeof path)
        return -1;
    return inotify_add_watch(store->inotify_fd, path, events | IN_DONT_FOLLOW);
}

static bool arm(struct mrt_sqlite_store *store, struct mrt_sqlite_watch *watch)
{
    char name[MRT_ID_TEXT_SIZE];
    mrt_id_format(watch->session, name);
    errno = 0;
    watch->wd = mrt_sqlite_watch_file(store, name, IN_CLOSE_WRITE | IN_DELETE_SELF);
    return watch->wd >= 0 || errno == ENOENT; /* the look that follows will find it dead */
}

void mrt_sqlite_unwatch(struct mrt_sqlite_store *store, struct mrt_sqlite_watch *watch)
{
    if (watch->wd >= 0)
        inotify_rm_watch(store->inotify_fd, watch->wd);
    TAILQ_REMOVE(&store->watches, watch, link);
    free(watch);
}

bool mrt_sqlite_watch(struct mrt_sqlite_store *store, struct mrt_id session)
{
    struct mrt_sqlite_watch *watch;
    if (mrt_id_none(session) || mrt_sqlite_session_find(store, session))
        return false; /* nobody's does not end; of our own it is no news */
    TAILQ_FOREACH (watch, &store->watches, link)
        if (mrt_id_equal(watch->session, session))
            return false;
    watch = calloc(1, sizeof *watch);
    if (!watch) {
        store->no_events = true;
        return true;
    }
    *watch = (struct mrt_sqlite_watch){.session = session, .wd = -1, .look_at = MRT_TIME_NEVER};
    TAILQ_INSERT_TAIL(&store->watches, watch, link);
    store->no_events = !arm(store, watch);
    if (watch->wd < 0)
        mrt_sqlite_unwatch(store, watch);
    return true;
}

void mrt_sqlite_unwatch_all(struct mrt_sqlite_store *store)
{
    struct mrt_sqlite_watch *watch;
    while ((watch = TAILQ_FIRST(&store->watches)))
        mrt_sqlite_unwatch(store, watch);
    if (store->observed_wd >= 0)
        inotify_rm_watch(store->inotify_fd, store->observed_wd);
    store->observed_wd = -1;
}
