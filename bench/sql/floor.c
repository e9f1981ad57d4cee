/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of locks on an SQL server: what its client library alone costs, for statements that
 * a program without mortise would send.
 *
 *   bench_postgres_floor|bench_mariadb_floor MODE PROCESSES SECONDS URL
 *
 * Modes: "rows", a row put in and taken out, each durable; "call", the server's own lock by
 * name. Prints one JSON object. A word of a shared mapping, written between the two statements,
 * counts the changes of owner.
 */
#include "floor.h"

#include "../clock.h"
#include "../shares.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 64
#define TIMES_MAX 1000000

struct shared {
    atomic_int ready;
    _Atomic int64_t start;
    atomic_int last; /* owner */
    int64_t counts[PROCESSES_MAX], changes[PROCESSES_MAX];
    double cycle_us; /* of the first */
};

static void contend(struct shared *shared, int me, int64_t duration)
{
    int64_t *times = calloc(TIMES_MAX, sizeof *times);
    int64_t count = 0, changes = 0;
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->start) == 0)
        usleep(1000);
    int64_t done = now_ns(), end = atomic_load(&shared->start) + duration;
    while (times && done < end && count < TIMES_MAX) {
        int64_t from = done;
        floor_step(0);
        changes += atomic_exchange_explicit(&shared->last, me, memory_order_relaxed) != me;
        floor_step(1);
        done = now_ns();
        times[count++] = done - from;
    }
    shared->counts[me - 1] = count;
    shared->changes[me - 1] = changes;
    if (me == 1 && count > 0)
        shared->cycle_us = median_us(times, (size_t)count);
    free(times);
}

static void print(const struct shared *shared, int processes, double seconds)
{
    printf("{\"cycle_us\": %.1f, ", shared->cycle_us);
    print_shares(shared->counts, shared->changes, processes, seconds);
    printf("}\n");
}

int main(int argc, char **argv)
{
    const struct floor_mode *mode = floor_modes;
    while (argc == 5 && mode->name && strcmp(mode->name, argv[1]) != 0)
        mode++;
    int processes = argc == 5 ? (int)strtol(argv[2], NULL, 10) : 0;
    double seconds = argc == 5 ? strtod(argv[3], NULL) : 0;
    if (argc != 5 || !mode->name || processes < 1 || processes > PROCESSES_MAX || seconds <= 0)
        return 64;
    struct shared *shared = shared_memory(sizeof *shared);
    for (int i = 0; i < processes; i++)
        if (fork() == 0) {
            floor_open(argv[4], mode);
            contend(shared, i + 1, (int64_t)(seconds * 1e9));
            _exit(0);
        }
    bool failed = false;
    int status;
    while (atomic_load(&shared->ready) < processes && waitpid(-1, &status, WNOHANG) == 0)
        usleep(1000);
    failed = atomic_load(&shared->ready) < processes;
    atomic_store(&shared->start, now_ns());
    while (wait(&status) > 0)
        failed |= status != 0;
    print(shared, processes, seconds);
    return failed;
}
