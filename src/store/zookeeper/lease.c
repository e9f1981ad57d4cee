/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease: the proofs that a session lives, from when, and how long a server may be silent.
 *
 * The lease is the session's time-out as negotiated. The leader decides when a session ends, and
 * hears of it in three ways:
 *
 *   a connection that makes or attaches the session    the leader itself says yes: proven by the
 *                                                      beginning of the attempt to connect
 *   a sync                                             proves that the server reaches the leader
 *   anything else                                      proves nothing: a server that is cut off
 *                                                      from the leader answers reads and pings
 *
 * A follower hands the signs of life that it has seen to the leader each half tick. So a sync
 * proves the signs that were answered that long before: the lag. The protocol does not say how
 * long a tick is. By default a session lasts two ticks at least, and then half a tick is at most a
 * quarter of it; but minSessionTimeout may be set to less. So the lag is
 *
 *   half of the tick         that the URI says
 *   half of the session      below two of ZooKeeper's default ticks: right for one tick and more
 *   a quarter of the session from there on: right for sessions of two ticks, and for any of six
 *                            seconds and more where a tick is no longer than the default
 *
 * A server that stands still answers nothing, and the library leaves it after two thirds of the
 * session only, when less than that is left of the lease. So a sync that is not answered for a
 * sixth of the session ends the connection, and so does an attempt to attach the session again that
 * takes as long: the library goes on to the next server. An attempt to make a session may take a
 * third: what is left of it then is enough to prove it by the next syncs. If no server answers a
 * sync, all of them may just be slow: once each of them has been tried, the library's time counts.
 * Only the sync before a polite end never waits for longer.
 *
 * An attempt to attach that has reached the only server is never given up for a second one: a
 * follower that has two attempts of one session in hand answers one of them, and the other hears
 * nothing at all, not even the end of its connection.
 */
#include "store/zookeeper/lease.h"

#include <string.h>

#define DEFAULT_TICK (3 * MRT_SECOND) /* where a server's configuration says nothing */

mrt_time mrt_zk_proof_lag(mrt_time lease, mrt_time tick)
{
    if (tick > 0)
        return tick / 2;
    return lease < 2 * DEFAULT_TICK ? lease / 2 : lease / 4;
}

/* Says why a session would prove nothing; false: it does. */
static bool is_too_short(const struct mrt_zk_session *session, char *why, size_t size)
{
    int64_t tick_ms = session->store->address.tick / MRT_MILLISECOND;
    if (session->timeout_ms >= tick_ms)
        return false;
    snprintf(why, size,
             "the server granted a session of %d ms, less than tick=%lldms, which could not be "
             "proven in time: ask for a longer session=, or raise maxSessionTimeout there",
             session->timeout_ms, (long long)tick_ms);
    return true;
}

bool mrt_zk_lease_begin(struct mrt_zk_session *session, struct mrt_event *event, char *why,
                        size_t size)
{
    if (is_too_short(session, why, size))
        return false;
    event->lease = mrt_time_from_ms(session->timeout_ms);
    event->proof_lag = mrt_zk_proof_lag(event->lease, session->store->address.tick);
    event->proven = session->attached;
    return true;
}

unsigned mrt_zk_count_servers(const char *servers)
{
    unsigned count = 1;
    for (const char *at = servers; (at = strchr(at, ',')); at++)
        count++;
    return count;
}

static unsigned count_servers(const struct mrt_store *store)
{
    return mrt_zk_count_servers(store->servers);
}

bool mrt_zk_has_tried_all(const struct mrt_zk_session *session)
{
    return session->attempts >= count_servers(session->store);
}

static bool is_at_only_server(const struct mrt_zk_session *session)
{
    return session->server_id != 0 && zoo_state(session->handle) == ZOO_ASSOCIATING_STATE &&
           count_servers(session->store) == 1;
}

mrt_time mrt_zk_given_up_at(const struct mrt_zk_session *session)
{
    bool ends = session->stop && !session->close_now;
    bool hasty = session->attempts <= count_servers(session->store) && !is_at_only_server(session);
    mrt_time lease = mrt_time_from_ms(zoo_recv_timeout(session->handle));
    if (session->over || session->socket < 0)
        return MRT_TIME_NEVER;
    if (!session->connected && hasty)
        return session->began + lease / (session->server_id == 0 ? 3 : 6);
    if (session->connected && (ends || (session->renew && hasty)))
        return (session->asked > session->since ? session->asked : session->since) + lease / 6;
    return MRT_TIME_NEVER;
}
