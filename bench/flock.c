/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N processes that lock and unlock one file with flock(2), nothing in between:
 * what the operating system's own lock does where mortise is measured. A word of
 * a shared mapping, written under the lock, counts the changes of owner.
 *
 *   bench_flock PROCESSES SECONDS FILE
 */
#include "clock.h"
#include "shares.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 256

struct shared {
    atomic_int ready;
    _Atomic int64_t start;
    atomic_int last; /* owner; written under the lock */
    int64_t counts[PROCESSES_MAX], changes[PROCESSES_MAX];
};

static int contend(struct shared *shared, int me, const char *path, int64_t duration)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return 1;
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->start) == 0)
        usleep(1000);
    int64_t end = atomic_load(&shared->start) + duration;
    int64_t count = 0, changes = 0;
    while (now_ns() < end) {
        if (flock(fd, LOCK_EX) != 0)
            return 1;
        changes += atomic_load_explicit(&shared->last, memory_order_relaxed) != me;
        atomic_store_explicit(&shared->last, me, memory_order_relaxed);
        if (flock(fd, LOCK_UN) != 0)
            return 1;
        count++;
    }
    shared->counts[me - 1] = count;
    shared->changes[me - 1] = changes;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 64;
    int processes = (int)strtol(argv[1], NULL, 10);
    double seconds = strtod(argv[2], NULL);
    if (processes < 1 || processes > PROCESSES_MAX || seconds <= 0)
        return 64;
    struct shared *shared = shared_memory(sizeof *shared);
    for (int i = 0; i < processes; i++)
        if (fork() == 0)
            _exit(contend(shared, i + 1, argv[3], (int64_t)(seconds * 1e9)));
    int status, failed;
    while (atomic_load(&shared->ready) < processes && waitpid(-1, &status, WNOHANG) == 0)
        usleep(1000);
    failed = atomic_load(&shared->ready) < processes; /* one ended, or there is none */
    atomic_store(&shared->start, now_ns());
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("{");
    print_shares(shared->counts, shared->changes, processes, seconds);
    printf("}\n");
    return failed;
}
