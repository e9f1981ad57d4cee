/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N processes that take turns at one lock of a host agent, by its text protocol: each sends UNLOCK
 * and the next LOCK in one write, and reads both replies. The floor of it is agent/floor.c.
 *
 *   bench_agent_grants PROCESSES SECONDS SOCKET
 */
#include "../shares.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 512

struct shared {
    atomic_int ready, stop;
    atomic_int last; /* owner; written by the client that has the lock */
    int64_t counts[PROCESSES_MAX], changes[PROCESSES_MAX];
};

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    return fd;
}

/* Reads until a reply that is a fence has come; false: the reply is an error. */
static bool read_fence(int fd, int64_t *fence)
{
    static char bytes[1024];
    size_t size = 0;
    for (;;) {
        ssize_t got = recv(fd, bytes + size, sizeof bytes - 1 - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        bytes[size] = '\0';
        const char *colon = strchr(bytes, ':');
        if (strchr(bytes, '-'))
            return false;
        if (colon && strchr(colon, '\n')) {
            *fence = strtoll(colon + 1, NULL, 10);
            return true;
        }
    }
}

static int take_turns(struct shared *shared, int me, const char *path)
{
    char text[128];
    int64_t fence;
    int fd = connect_to(path);
    int length = snprintf(text, sizeof text, "LOCK hot -1\r\n");
    atomic_fetch_add(&shared->ready, 1);
    while (fd >= 0 && !atomic_load(&shared->stop)) {
        if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length || !read_fence(fd, &fence))
            return 1;
        shared->changes[me] += atomic_load_explicit(&shared->last, memory_order_relaxed) != me;
        atomic_store_explicit(&shared->last, me, memory_order_relaxed);
        shared->counts[me]++;
        length = snprintf(text, sizeof text, "UNLOCK hot %" PRId64 "\r\nLOCK hot -1\r\n", fence);
    }
    return fd < 0;
}

int main(int argc, char **argv)
{
    int processes = argc == 4 ? (int)strtol(argv[1], NULL, 10) : 0;
    double seconds = argc == 4 ? strtod(argv[2], NULL) : 0;
    if (processes < 1 || processes > PROCESSES_MAX || seconds <= 0)
        return 64;
    struct shared *shared = shared_memory(sizeof *shared);
    for (int i = 0; i < processes; i++)
        if (fork() == 0)
            _exit(take_turns(shared, i, argv[3]));
    while (atomic_load(&shared->ready) < processes)
        usleep(1000);
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&shared->stop, 1);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("{");
    print_shares(shared->counts, shared->changes, processes, seconds);
    printf("}\n");
    return failed;
}
