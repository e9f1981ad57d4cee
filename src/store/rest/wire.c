/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h: libcurl's sockets and timer. */
#include "store/rest/call.h"

#include "base/epoll.h"
#include "base/error.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_MAX 16

/* ---------------------------------------------------------- libcurl's calls */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *unused)
{
    (void)easy, (void)unused;
    const struct mrt_rest_wire *wire = context;
    if (wire->abandoned)
        return 0;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(wire->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(wire->epoll, EPOLL_CTL_MOD, fd, &event) < 0)
        epoll_ctl(wire->epoll, EPOLL_CTL_ADD, fd, &event);
    return 0;
}

static int on_timer(CURLM *multi, long milliseconds, void *context)
{
    (void)multi;
    struct mrt_rest_wire *wire = context;
    wire->timer = milliseconds < 0 ? MRT_TIME_NEVER
                                   : mrt_time_add(mrt_time_now(), mrt_time_from_ms(milliseconds));
    return 0;
}

/* ------------------------------------------------------------------ the wire */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void set_up_library(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void mrt_rest_wire_init(struct mrt_rest_wire *wire)
{
    *wire = (struct mrt_rest_wire){.epoll = -1, .timer = MRT_TIME_NEVER};
    TAILQ_INIT(&wire->calls);
    TAILQ_INIT(&wire->held);
}

int mrt_rest_wire_open(struct mrt_rest_wire *wire, const struct mrt_rest_server *server,
                       void *owner)
{
    mrt_rest_wire_init(wire);
    wire->server = *server;
    wire->owner = owner;
    pthread_once(&once, set_up_library);
    wire->multi = curl_multi_init();
    wire->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!wire->multi)
        return MORTISE_ENOMEM;
    if (wire->epoll < 0)
        return mrt_error(MORTISE_ENOMEM, "no descriptor left for %s", server->family->name);
    curl_multi_setopt(wire->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(wire->multi, CURLMOPT_SOCKETDATA, wire);
    curl_multi_setopt(wire->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(wire->multi, CURLMOPT_TIMERDATA, wire);
    return MORTISE_OK;
}

/* All that libcurl writes from now on goes nowhere. */
void mrt_rest_wire_abandon(struct mrt_rest_wire *wire)
{
    wire->abandoned = true;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nowhere >= 0 && fd < MRT_REST_SOCKETS_MAX; fd++)
        if (wire->sockets[fd / 8] & 1u << fd % 8)
            dup3(nowhere, fd, O_CLOEXEC);
    if (nowhere >= 0)
        close(nowhere);
}

static void drop(struct mrt_rest_calls *calls)
{
    struct mrt_rest_call *call;
    while ((call = TAILQ_FIRST(calls)))
        mrt_rest_cancel(call);
}

void mrt_rest_wire_close(struct mrt_rest_wire *wire)
{
    drop(&wire->held);
    drop(&wire->calls);
    if (wire->multi)
        curl_multi_cleanup(wire->multi);
    if (wire->epoll >= 0)
        close(wire->epoll);
    wire->multi = NULL;
    wire->epoll = -1;
}

/* Whether a call has ended, which may have begun others. */
static bool collect(struct mrt_rest_wire *wire)
{
    int left;
    bool any = false;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(wire->multi, &left))) {
        struct mrt_rest_call *call = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        mrt_rest_call_ended(call, code);
        mrt_rest_release(wire);
        any = true;
    }
    return any;
}

bool mrt_rest_wire_kick(struct mrt_rest_wire *wire)
{
    int running;
    bool any = false;
    for (int turn = 0; turn < EVENTS_MAX; turn++) {
        if (wire->timer <= mrt_time_now()) {
            wire->timer = MRT_TIME_NEVER;
            curl_multi_socket_action(wire->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        } else if (collect(wire)) {
            any = true;
        } else {
            break;
        }
    }
    return any;
}

void mrt_rest_wire_process(struct mrt_rest_wire *wire, mrt_time now)
{
    (void)now;
    int running;
    struct epoll_event ready[EVENTS_MAX];
    int count = epoll_wait(wire->epoll, ready, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        int what = (ready[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (ready[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (ready[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(wire->multi, ready[i].data.fd, what, &running);
    }
    collect(wire);
    mrt_rest_wire_kick(wire);
}

mrt_time mrt_rest_wire_next(const struct mrt_rest_wire *wire)
{
    return wire->timer;
}

bool mrt_rest_wire_is_sent(const struct mrt_rest_wire *wire)
{
    const struct mrt_rest_call *call;
    if (!TAILQ_EMPTY(&wire->held))
        return false;
    TAILQ_FOREACH (call, &wire->calls, link) {
        long sent = 0;
        curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
        if (sent == 0)
            return false;
    }
    return true;
}
