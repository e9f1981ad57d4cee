/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the agent that send any bytes: three connections to an agent on the store in memory.
 * The input is chunks: a byte says which connection, whether it is closed, and how many bytes of
 * the rest it sends; a turn of the agent follows each. The last connection is that of a user of a
 * policy.
 *
 * Invariant: no connection is told that it has a mutex while another one has it.
 */
#include "fuzz.h"

#include "agent/agent.h"
#include "agent/peer.h"
#include "base/uri.h"
#include "store/stores.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECTIONS 3
#define GUEST 4242

static struct mrt_agent agent;
static int ends[CONNECTIONS];

static struct mrt_access *read_policy(void)
{
    static const char text[] = "allow user 4242 acquire list cells on a\n"
                               "allow user 4242 shared adopt revoke break on b\n"
                               "limit user 4242 tickets 5 names 3 waiters 2 bytes 20000 hold 1ms\n"
                               "namespace %u\n";
    struct mrt_access *access = NULL;
    char path[32];
    int fd = memfd_create("policy", MFD_CLOEXEC);
    require(fd >= 0 && fchmod(fd, 0600) == 0);
    require(write(fd, text, sizeof text - 1) == sizeof text - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(mrt_access_read(path, &access) == MORTISE_OK);
    close(fd);
    return access;
}

static void open_agent(void)
{
    static struct mrt_uri uri;
    const struct mrt_store_ops *ops;
    struct mrt_engine_config config = {
        .seed = {1, 2}, .strict = true, .budget = MRT_SECOND, .budget_count = 100};
    const struct mrt_store_options options = {.label = "", .find = mrt_store_find};
    mrt_agent_init(&agent);
    agent.lease = MRT_MILLISECOND;
    agent.epoll = epoll_create1(EPOLL_CLOEXEC);
    require(mrt_uri_parse("memory:agent", &uri) == MORTISE_OK);
    require(mrt_store_find(&uri, &ops) == MORTISE_OK);
    require(mrt_driver_open(&agent.driver, &config, ops, &uri, &options, true, NULL, NULL) ==
            MORTISE_OK);
    agent.driver.tap = mrt_desk_tap;
    agent.access = read_policy();
    require(mrt_worker_open(&agent.worker, "memory:agent", ops) == MORTISE_OK);
}

/* The newest connection becomes one of a user who has limits. */
static void make_guest(void)
{
    struct mrt_peer *peer = TAILQ_LAST(&agent.peers, mrt_peer_list);
    peer->user->connections--;
    peer->user = mrt_user_find(&agent, GUEST, true);
    require(peer->user && mrt_access_find(agent.access, GUEST, NULL, 0, &peer->rules));
    peer->user->connections++;
    snprintf(peer->space, sizeof peer->space, "%d/", GUEST);
}

static void connect_one(int i)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    ends[i] = pair[0];
    mrt_peer_accept(&agent, pair[1]);
    if (i == CONNECTIONS - 1)
        make_guest();
}

/* One turn, as the agent's loop has it. */
static void turn(void)
{
    struct epoll_event events[16];
    int count = epoll_wait(agent.epoll, events, 16, 0);
    mrt_driver_enter(&agent.driver);
    for (int i = 0; i < count; i++)
        mrt_peer_event(events[i].data.ptr, events[i].events);
    mrt_agent_finish_turn(&agent);
    mrt_driver_leave_quietly(&agent.driver);
}

/* Whether the lock's time is not over: a hold that was lost stays with its connection. */
static bool is_held(const struct mrt_lock *lock)
{
    return lock && lock->hold && mrt_hold_live(lock->hold, lock->generation) &&
           mrt_hold_state(lock->hold, mrt_time_now()) == MORTISE_HELD;
}

/* No two locks of one queue are held, if it is a mutex's. */
static void check_holders(void)
{
    const struct mrt_peer *a, *b;
    const struct mrt_lock *lock, *next, *other;
    TAILQ_FOREACH (a, &agent.peers, link)
        HASH_ITER (hh, a->locks, lock, next) {
            const char *name = mrt_queue_name(lock->queue);
            if (!is_held(lock) || strcmp(mrt_queue_recipe(lock->queue)->kind, "mutex") != 0)
                continue;
            TAILQ_FOREACH (b, &agent.peers, link) {
                HASH_FIND(hh, b->locks, name, strlen(name), other);
                require(b == a || !is_held(other));
            }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char replies[4096];
    open_agent();
    for (int i = 0; i < CONNECTIONS; i++)
        connect_one(i);
    for (size_t at = 0; at < size;) {
        int i = data[at] % CONNECTIONS;
        bool closes = data[at] >= 0xf0;
        size_t length = (size_t)data[at] / CONNECTIONS;
        at++;
        if (length > size - at)
            length = size - at;
        if (closes) {
            close(ends[i]);
            connect_one(i);
        } else if (length > 0) {
            ssize_t sent = send(ends[i], data + at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)sent; /* the agent may have ended it */
        }
        at += closes ? 0 : length;
        turn();
        check_holders();
        while (recv(ends[i], replies, sizeof replies, MSG_DONTWAIT) > 0)
            continue;
    }
    for (int i = 0; i < CONNECTIONS; i++)
        close(ends[i]);
    struct mrt_peer *peer, *next;
    TAILQ_FOREACH_SAFE (peer, &agent.peers, link, next)
        if (peer->is_process)
            mrt_peer_close(peer); /* this process has not ended */
    while (!TAILQ_EMPTY(&agent.peers) || !TAILQ_EMPTY(&agent.ended))
        turn();
    mrt_worker_close(&agent.worker);
    mrt_driver_close(&agent.driver, mrt_time_now() + MRT_SECOND);
    mrt_desk_free(&agent.desk);
    close(agent.epoll);
    const struct mrt_user *guest = mrt_user_find(&agent, GUEST, true);
    require(guest && guest->tickets == 0 && !guest->names && guest->bytes == 0);
    mrt_users_free(&agent);
    mrt_access_free(agent.access);
    return 0;
}
