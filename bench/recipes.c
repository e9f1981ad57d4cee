/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recipes, as fast as CLIENTS processes can go, one client and one thread each:
 *
 *   bench_recipes URI NAME RECIPE CLIENTS SECONDS
 *
 *   read-write         a write for each ten reads
 *   semaphore          one of five permits
 *   semaphore-mutex    the mutex that does not nest
 *   multi              three mutexes at once, of each client's own
 *   cell               a number that all add 1 to, by comparing (K3): what fails is tried again
 *
 * They connect and run for HEAD_START uncounted. Prints one JSON object.
 */
#include "mortise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 256
#define HEAD_START 1.5
#define WAIT_MS 60000
#define PERMITS 5
#define READS 10
#define MEMBERS 3

struct counts {
    long done, refused;
};

struct user {
    mortise_client *client;
    const char *name;
    int number;
    mortise_lock *locks[MEMBERS];
    long turns, refused;
};

static void check(int error)
{
    if (error == MORTISE_OK)
        return;
    fprintf(stderr, "%s: %s\n", mortise_error_text(error), mortise_error_detail());
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void take_turn(mortise_lock *lock)
{
    mortise_hold hold;
    check(mortise_acquire_for(lock, WAIT_MS, &hold));
    check(mortise_release(hold));
}

/* ------------------------------------------------------------------ recipes */

static void read_write_new(struct user *user)
{
    check(mortise_read_write_new(user->client, user->name, NULL, &user->locks[0], &user->locks[1]));
}

static void read_write(struct user *user)
{
    take_turn(user->locks[(user->turns + user->number) % (READS + 1) == 0]);
}

static void semaphore_new(struct user *user)
{
    check(mortise_semaphore_new(user->client, user->name, PERMITS, NULL, &user->locks[0]));
}

static void semaphore_mutex_new(struct user *user)
{
    check(mortise_semaphore_mutex_new(user->client, user->name, NULL, &user->locks[0]));
}

static void one(struct user *user)
{
    take_turn(user->locks[0]);
}

static void multi_new(struct user *user)
{
    char name[256];
    for (int i = 0; i < MEMBERS; i++) {
        snprintf(name, sizeof name, "%s-%d-%d", user->name, user->number, i);
        check(mortise_mutex_new(user->client, name, NULL, &user->locks[i]));
    }
}

static void multi(struct user *user)
{
    mortise_hold holds[MEMBERS];
    check(mortise_acquire_all(user->locks, MEMBERS, WAIT_MS, holds));
    check(mortise_release_all(holds, MEMBERS));
}

static void cell_new(struct user *user)
{
    (void)user;
}

static void cell(struct user *user)
{
    for (;;) {
        mortise_cell seen;
        long value = 0;
        check(mortise_cell_get(user->client, user->name, &seen));
        if (seen.size == sizeof value)
            memcpy(&value, seen.value, sizeof value);
        value++;
        int error =
            mortise_cell_cas(user->client, user->name, seen.version, &value, sizeof value, 0, NULL);
        if (error != MORTISE_ECONFLICT) {
            check(error);
            return;
        }
        user->refused++;
    }
}

static const struct recipe {
    const char *name;
    void (*make)(struct user *user);
    void (*turn)(struct user *user);
} recipes[] = {{"read-write", read_write_new, read_write},
               {"semaphore", semaphore_new, one},
               {"semaphore-mutex", semaphore_mutex_new, one},
               {"multi", multi_new, multi},
               {"cell", cell_new, cell}};

/* ------------------------------------------------------------------ processes */

static void run(const char *uri, struct user *user, const struct recipe *recipe, double begin,
                double end, struct counts *counts)
{
    check(mortise_open(uri, NULL, &user->client));
    recipe->make(user);
    for (; now() < end; user->turns++) {
        long refused = user->refused;
        recipe->turn(user);
        double moment = now();
        counts->done += moment >= begin && moment < end;
        counts->refused += moment >= begin && moment < end ? user->refused - refused : 0;
    }
    check(mortise_close(user->client));
}

int main(int argc, char **argv)
{
    const struct recipe *recipe = NULL;
    for (size_t i = 0; argc == 6 && i < sizeof recipes / sizeof *recipes; i++)
        if (strcmp(recipes[i].name, argv[3]) == 0)
            recipe = &recipes[i];
    int clients = recipe ? (int)strtol(argv[4], NULL, 10) : 0;
    if (clients < 1 || clients > CLIENTS_MAX)
        return fprintf(stderr, "usage: bench_recipes URI NAME RECIPE CLIENTS SECONDS\n") > 0;
    double seconds = strtod(argv[5], NULL), begin = now() + HEAD_START;
    struct counts all = {0},
                  *counts = mmap(NULL, sizeof *counts * CLIENTS_MAX, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return 1;
    for (int i = 0; i < clients; i++) {
        struct user user = {.name = argv[2], .number = i};
        pid_t pid = fork();
        if (pid == 0) {
            run(argv[1], &user, recipe, begin, begin + seconds, &counts[i]);
            exit(0);
        }
        if (pid < 0)
            return 1;
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    for (int i = 0; i < clients; i++) {
        all.done += counts[i].done;
        all.refused += counts[i].refused;
    }
    printf("{\"acquisitions_per_s\": %.1f, \"succeeds\": %.4f}\n", (double)all.done / seconds,
           all.done ? (double)all.done / (double)(all.done + all.refused) : 0);
    return failed != 0;
}
