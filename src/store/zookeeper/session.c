/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a session, which any of its parts may note; and packets, which are sent together.
 *
 * Invariant: a session that is over is not connected, and stays over.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/session.h"

#include "base/assert.h"
#include "store/zookeeper/names.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

_Thread_local struct mrt_zk_session *mrt_zk_entered;

void mrt_zk_session_over(struct mrt_zk_session *session, int code)
{
    if (session->over)
        return;
    MRT_ASSERT(code != ZOK);
    session->over = true;
    session->connected = false;
    session->over_error = mrt_zk_code(code)->error;
}

/*
 * The library writes each request in two pieces and at once, so that an acquire would be
 * four packets, each of which wakes the server. All that one entry sends goes together.
 */
void mrt_zk_session_gather(struct mrt_zk_session *session)
{
    static const int on = 1;
    if (!session->gathering && session->connected && session->socket >= 0)
        session->gathering =
            setsockopt(session->socket, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0;
}

void mrt_zk_session_send_gathered(struct mrt_zk_session *session, int socket)
{
    static const int off = 0;
    if (session->gathering && socket == session->socket)
        setsockopt(socket, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
    session->gathering = false;
}
