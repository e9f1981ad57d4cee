/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a handle of the client library.
 *
 * The library's close sends the session's end, which frees its nodes at once. It waits for room in
 * the socket, and takes its time over many watches: seconds, if the server falls silent just then.
 * So it runs on a thread that ends with it. The store's loop hears of that by an event, and no call
 * waits; how long the end may take is for mortise_close to say. A handle without a connection has
 * nothing to send, and is closed at once.
 *
 * The library closes its socket as soon as the session's end is sent. If answers are on their way
 * then, the system resets the connection, and the server loses what it has not read yet: the
 * session's end and the removals before it, so that the nodes stay until the session is over. So
 * the thread keeps the connection open by a second descriptor until the server has closed it, which
 * it does once the session has ended.
 *
 * Invariant: what both need is freed by the last of the two, the thread and the store.
 */
#include "store/zookeeper/close.h"

#include "base/assert.h"
#include "base/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a server that still has the connection may take to end the session. */
#define END_PATIENCE MRT_SECOND

struct mrt_zk_closing *mrt_zk_close_prepare(void)
{
    struct mrt_zk_closing *closing = calloc(1, sizeof *closing);
    if (closing)
        *closing = (struct mrt_zk_closing){.done = -1, .users = 1};
    return closing;
}

void mrt_zk_close_let_go(struct mrt_zk_closing *closing)
{
    int users = atomic_fetch_sub(&closing->users, 1);
    MRT_ASSERT(users > 0);
    if (users > 1)
        return;
    if (closing->done >= 0)
        close(closing->done);
    free(closing);
}

static void end(struct mrt_zk_closing *closing)
{
    atomic_store(&closing->ended, true);
    if (closing->done >= 0)
        eventfd_write(closing->done, 1);
    mrt_zk_close_let_go(closing);
}

/* Whether the server closes the connection in time. Its answers until then are not needed. */
static bool await_end(int connection)
{
    char answers[4096];
    mrt_time until = mrt_time_add(mrt_time_now(), END_PATIENCE);
    struct pollfd poller = {.fd = connection, .events = POLLIN};
    ssize_t size = 1;
    for (mrt_time left; size > 0 && (left = until - mrt_time_now()) > 0;)
        if (poll(&poller, 1, (int)(left / MRT_MILLISECOND) + 1) > 0)
            size = recv(connection, answers, sizeof answers, 0);
    return size == 0;
}

static void *close_apart(void *argument)
{
    struct mrt_zk_closing *closing = argument;
    int connection = fcntl(closing->socket, F_DUPFD_CLOEXEC, 0);
    closing->code = zookeeper_close(closing->handle);
    if (connection >= 0) {
        if (closing->code == ZOK && !await_end(connection))
            closing->code = ZOPERATIONTIMEOUT;
        close(connection);
    }
    end(closing);
    return NULL;
}

static bool has_thread(struct mrt_zk_closing *closing)
{
    if (zoo_state(closing->handle) != ZOO_CONNECTED_STATE)
        return false;
    closing->done = eventfd(0, EFD_CLOEXEC);
    return closing->done >= 0 && mrt_thread_begin(close_apart, closing);
}

struct mrt_zk_closing *mrt_zk_close_begin(struct mrt_zk_session *session)
{
    struct mrt_zk_closing *closing = session->closing;
    int epoll = session->store->epoll;
    if (session->socket >= 0)
        epoll_ctl(epoll, EPOLL_CTL_DEL, session->socket, NULL);
    session->closing = NULL;
    closing->handle = session->handle;
    closing->socket = session->socket;
    closing->users = 2;
    if (!has_thread(closing)) {
        closing->code = zookeeper_close(closing->handle);
        end(closing);
    }
    return closing;
}

bool mrt_zk_close_has_ended(const struct mrt_zk_closing *closing)
{
    return atomic_load(&closing->ended);
}

void mrt_zk_close_watch(const struct mrt_zk_closing *closing, int epoll)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = closing->done};
    epoll_ctl(epoll, EPOLL_CTL_ADD, closing->done, &event);
}

void mrt_zk_close_wait(const struct mrt_zk_closing *closing, mrt_time patience)
{
    struct pollfd poller = {.fd = closing->done, .events = POLLIN};
    if (!mrt_zk_close_has_ended(closing))
        poll(&poller, 1, (int)(patience / MRT_MILLISECOND));
}
