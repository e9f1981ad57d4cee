/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of a host agent: N processes that take turns through a broker with nothing in it but
 * the sockets. A client sends one message, which gives its turn back and queues it again; the
 * broker sends one message to the client that has waited longest. So a grant costs two messages
 * and two switches of process, and no agent can do more grants.
 *
 * A word of a shared mapping, written by the client that has the turn, counts changes of owner.
 *
 *   bench_agent_floor PROCESSES SECONDS
 */
#include "../clock.h"
#include "../shares.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 512

struct shared {
    atomic_int last; /* owner; written by the client that has the turn */
    int64_t counts[PROCESSES_MAX], changes[PROCESSES_MAX];
};

/* The clients that wait, in their order. */
struct waiting {
    int sockets[PROCESSES_MAX];
    int first, count;
};

static int take_turns(struct shared *shared, int me, int socket)
{
    char byte = 0;
    while (send(socket, &byte, 1, MSG_NOSIGNAL) == 1 && recv(socket, &byte, 1, 0) == 1) {
        shared->changes[me] += atomic_load_explicit(&shared->last, memory_order_relaxed) != me;
        atomic_store_explicit(&shared->last, me, memory_order_relaxed);
        shared->counts[me]++;
    }
    return 0;
}

static void grant_first(struct waiting *waiting)
{
    char byte = 0;
    if (waiting->count == 0)
        return;
    int socket = waiting->sockets[waiting->first];
    waiting->first = (waiting->first + 1) % PROCESSES_MAX;
    waiting->count--;
    send(socket, &byte, 1, MSG_NOSIGNAL);
}

/* Takes one message of a client. The turn is free if this client had it, or nobody has. */
static void receive(struct waiting *waiting, int socket, int *holder)
{
    char byte;
    if (recv(socket, &byte, 1, 0) != 1)
        return;
    waiting->sockets[(waiting->first + waiting->count++) % PROCESSES_MAX] = socket;
    if (*holder != -1 && *holder != socket)
        return;
    *holder = waiting->sockets[waiting->first];
    grant_first(waiting);
}

static int serve(const int *sockets, int processes, int64_t duration)
{
    struct waiting waiting = {.count = 0};
    struct epoll_event events[PROCESSES_MAX];
    int holder = -1, epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < processes; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = sockets[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event) != 0)
            return 1;
    }
    for (int64_t end = now_ns() + duration; now_ns() < end;) {
        int count = epoll_wait(epoll, events, PROCESSES_MAX, 10);
        for (int i = 0; i < count; i++)
            receive(&waiting, events[i].data.fd, &holder);
    }
    close(epoll);
    return 0;
}

int main(int argc, char **argv)
{
    int sockets[PROCESSES_MAX], pair[2];
    int processes = argc == 3 ? (int)strtol(argv[1], NULL, 10) : 0;
    double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
    if (processes < 1 || processes > PROCESSES_MAX || seconds <= 0)
        return 64;
    struct shared *shared = shared_memory(sizeof *shared);
    for (int i = 0; i < processes; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
            return 1;
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            close(pair[0]);
            for (int other = 0; other < i; other++)
                close(sockets[other]);
            _exit(take_turns(shared, i, pair[1]));
        }
        close(pair[1]);
        sockets[i] = pair[0];
    }
    int failed = serve(sockets, processes, (int64_t)(seconds * 1e9));
    for (int i = 0; i < processes; i++)
        close(sockets[i]); /* ends the client */
    while (wait(NULL) > 0)
        continue;
    printf("{");
    print_shares(shared->counts, shared->changes, processes, seconds);
    printf("}\n");
    return failed;
}
