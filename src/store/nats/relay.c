/* SPDX-License-Identifier: Apache-2.0 */
/* See relay.h. No call here waits. */
#include "store/nats/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DRAINED_MAX 1024 /* reads of what the server has sent last */

bool mrt_nats_relay_open(struct mrt_nats_relay *relay, int library)
{
    int pair[2] = {-1, -1};
    relay->in = malloc(MRT_NATS_UNIT_MAX);
    relay->out = malloc(MRT_NATS_UNIT_MAX);
    relay->outer = fcntl(library, F_DUPFD_CLOEXEC, 0);
    if (!relay->in || !relay->out || relay->outer < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return false;
    relay->inner = pair[0];
    bool taken = dup3(pair[1], library, O_CLOEXEC) >= 0;
    close(pair[1]);
    return taken;
}

/* ----------------------------------------------------------------- receiving */

/* The whole units at the begin; -1: what follows is none. */
static ptrdiff_t measure(const struct mrt_nats_relay *relay)
{
    size_t whole = 0;
    ptrdiff_t unit = 1;
    while (unit > 0 && whole < relay->in_size) {
        unit = mrt_nats_unit(relay->in + whole, relay->in_size - whole);
        whole += unit > 0 ? (size_t)unit : 0;
    }
    return whole > 0 ? (ptrdiff_t)whole : unit < 0 ? -1 : 0;
}

const char *mrt_nats_relay_receive(struct mrt_nats_relay *relay, void (*read)(void *argument),
                                   void *argument)
{
    ptrdiff_t whole;
    ssize_t got = recv(relay->outer, relay->in + relay->in_size, MRT_NATS_UNIT_MAX - relay->in_size,
                       MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        return "the connection broke before the answer";
    relay->in_size += got > 0 ? (size_t)got : 0;
    while ((whole = measure(relay)) > 0) {
        if (send(relay->inner, relay->in, (size_t)whole, MSG_DONTWAIT | MSG_NOSIGNAL) != whole)
            return "the system has no room for a message";
        relay->in_size -= (size_t)whole;
        memmove(relay->in, relay->in + whole, relay->in_size);
        read(argument);
    }
    return whole < 0 ? "the server sends what is no message of NATS, or too long a one" : NULL;
}

/* ------------------------------------------------------------------- sending */

bool mrt_nats_relay_send(struct mrt_nats_relay *relay)
{
    for (;;) {
        if (relay->out_size == 0) {
            ssize_t got = recv(relay->inner, relay->out, MRT_NATS_UNIT_MAX, MSG_DONTWAIT);
            relay->out_size = got > 0 ? (size_t)got : 0;
        }
        if (relay->out_size == 0)
            return false;
        ssize_t sent = send(relay->outer, relay->out, relay->out_size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN ||
                   errno == EINTR; /* a broken connection shows when it is read */
        relay->out_size -= (size_t)sent;
        memmove(relay->out, relay->out + sent, relay->out_size);
    }
}

void mrt_nats_relay_shut(struct mrt_nats_relay *relay)
{
    shutdown(relay->inner, SHUT_RDWR);
}

/* All that has been sent goes out still, so nothing may be left to read. */
void mrt_nats_relay_close(struct mrt_nats_relay *relay)
{
    if (relay->outer >= 0) {
        shutdown(relay->outer, SHUT_RDWR);
        for (int i = 0; i < DRAINED_MAX; i++)
            if (recv(relay->outer, relay->in, MRT_NATS_UNIT_MAX, MSG_DONTWAIT) <= 0)
                break;
        close(relay->outer);
    }
    if (relay->inner >= 0)
        close(relay->inner);
    free(relay->in);
    free(relay->out);
    *relay = (struct mrt_nats_relay){.outer = -1, .inner = -1};
}
