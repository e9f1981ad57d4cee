/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side of the tests with an older mortise: the same program, compiled and linked once with
 * each build. It is given a URI, and then commands on standard input, one a line, each of them
 * answered by one line:
 *
 *   use KIND NAME WITNESS   what the following commands work on            "using"
 *   acquire MS              within so many milliseconds, 0: a try          "held FENCE", "busy"
 *   release                                                                "released"
 *   alive                   whether it holds, by the store's own word      "alive" or "lost ERROR"
 *   turns N                 acquire, count in the witness, release         "done N OVERLAPS"
 *   value                   the cell's, or the leader's                    "value TEXT"
 *
 * KIND: mutex, exclusive, semaphore (3 permits), read, write, election, cell. A call that fails
 * is answered by "failed ERROR DETAIL".
 *
 * WITNESS is a file that all sides map. `inside` is how much of the capacity is taken by those who
 * hold, and `count` is raised without any atomic operation by those who hold all of it: where two
 * of them are inside at a time it falls behind the number of turns. A turn of a cell adds one to
 * its value, by comparing versions and nothing else.
 */
#include "mortise.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE 512
#define WAIT_MS 60000
#define PERMITS 3
#define READERS 1000 /* more than there can be */

struct witness {
    _Atomic int inside;
    _Atomic int overlaps;
    volatile uint64_t count;
};

struct side {
    mortise_client *client;
    char name[LINE_SIZE];
    bool cell;
    int weight, capacity;
    mortise_lock *lock, *other; /* other: the read/write lock's other side */
    mortise_election *election;
    mortise_hold hold;
    struct witness *witness;
};

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static void fail(int error)
{
    printf("failed %s %s\n", mortise_error_name(error), mortise_error_detail());
    fflush(stdout);
}

static void rest(long microseconds)
{
    const struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

static struct witness *map(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct witness)) != 0)
        return NULL;
    void *at = mmap(NULL, sizeof(struct witness), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

/* The caller of a call that failed knows of which side it was. */
static int make(struct side *side, const char *kind)
{
    char id[32];
    side->weight = side->capacity = 1;
    if (strcmp(kind, "mutex") == 0)
        return mortise_mutex_new(side->client, side->name, NULL, &side->lock);
    if (strcmp(kind, "exclusive") == 0)
        return mortise_exclusive_new(side->client, side->name, NULL, &side->lock);
    if (strcmp(kind, "semaphore") == 0) {
        side->capacity = PERMITS;
        return mortise_semaphore_new(side->client, side->name, PERMITS, NULL, &side->lock);
    }
    if (strcmp(kind, "election") == 0) {
        snprintf(id, sizeof id, "%ld", (long)getpid());
        const mortise_election_options options = {
            .size = sizeof options, .value = id, .value_size = strlen(id)};
        return mortise_election_new(side->client, side->name, &options, &side->election);
    }
    bool reads = strcmp(kind, "read") == 0;
    side->capacity = READERS;
    side->weight = reads ? 1 : READERS;
    return mortise_read_write_new(side->client, side->name, NULL,
                                  reads ? &side->lock : &side->other,
                                  reads ? &side->other : &side->lock);
}

static void use(struct side *side, char *words)
{
    const char *kind = strsep(&words, " "), *name = strsep(&words, " "), *path = words;
    mortise_lock_free(side->lock);
    mortise_lock_free(side->other);
    mortise_election_free(side->election);
    side->lock = side->other = NULL;
    side->election = NULL;
    snprintf(side->name, sizeof side->name, "%s", name ? name : "");
    side->witness = path ? map(path) : NULL;
    if (!side->witness) {
        say("no witness");
        exit(1);
    }
    side->cell = strcmp(kind, "cell") == 0;
    int error = side->cell ? 0 : make(side, kind);
    if (error)
        fail(error);
    else
        say("using");
}

static int take(struct side *side, int64_t wait_ms)
{
    return side->election ? mortise_election_campaign(side->election, wait_ms)
                          : mortise_acquire_for(side->lock, wait_ms, &side->hold);
}

static int give(struct side *side)
{
    return side->election ? mortise_election_resign(side->election) : mortise_release(side->hold);
}

static void acquire(struct side *side, int64_t wait_ms)
{
    int error = take(side, wait_ms);
    if (error == MORTISE_EBUSY || error == MORTISE_ETIMEOUT) {
        say("busy");
    } else if (error) {
        fail(error);
    } else {
        uint64_t fence = side->election ? mortise_election_fence(side->election)
                                        : mortise_hold_fence(side->hold);
        printf("held %" PRIu64 "\n", fence);
        fflush(stdout);
    }
}

static void release(struct side *side)
{
    int error = give(side);
    if (error)
        fail(error);
    else
        say("released");
}

static void verify(const struct side *side)
{
    int error = side->election ? !mortise_election_is_leader(side->election)
                               : mortise_verify(side->hold, WAIT_MS);
    printf("%s%s\n", error ? "lost " : "alive", error ? mortise_error_name(error) : "");
    fflush(stdout);
}

/* ------------------------------------------------------------------- turns */

static void count_inside(struct side *side)
{
    struct witness *witness = side->witness;
    if (atomic_fetch_add(&witness->inside, side->weight) + side->weight > side->capacity)
        atomic_fetch_add(&witness->overlaps, 1);
    uint64_t count = witness->count;
    rest(300);
    if (side->weight == side->capacity)
        witness->count = count + 1;
    atomic_fetch_sub(&witness->inside, side->weight);
}

static int take_turn(struct side *side)
{
    int error = take(side, WAIT_MS);
    if (error)
        return error;
    count_inside(side);
    return give(side);
}

/* A write that another was quicker than is made again; one of unknown outcome is not counted as
   a turn, and nothing here makes one. */
static int add_one(struct side *side)
{
    mortise_cell cell = {.size = 0};
    char text[32] = "0";
    int error;
    do {
        uint64_t version = 0;
        error = mortise_cell_get(side->client, side->name, &cell);
        if (error)
            return error;
        if (cell.version > 0 && cell.size < sizeof text) {
            memcpy(text, cell.value, cell.size);
            text[cell.size] = '\0';
            version = cell.version;
        }
        snprintf(text, sizeof text, "%lu", strtoul(text, NULL, 10) + 1);
        error = mortise_cell_cas(side->client, side->name, version, text, strlen(text), 0, NULL);
    } while (error == MORTISE_ECONFLICT);
    return error;
}

static void take_turns(struct side *side, long turns)
{
    for (long i = 0; i < turns && side->witness; i++) {
        int error = side->cell ? add_one(side) : take_turn(side);
        if (error) {
            fail(error);
            return;
        }
    }
    printf("done %ld %d\n", turns, side->witness ? atomic_load(&side->witness->overlaps) : 0);
    fflush(stdout);
}

static void show(struct side *side)
{
    mortise_leader leader = {.size = 0};
    mortise_cell cell = {.size = 0};
    int error = side->cell ? mortise_cell_get(side->client, side->name, &cell)
                           : mortise_election_leader(side->election, &leader);
    if (error)
        fail(error);
    else if (side->cell)
        printf("value %.*s\n", (int)cell.size, (const char *)cell.value);
    else
        printf("value %.*s\n", (int)leader.size, (const char *)leader.value);
    fflush(stdout);
}

static void obey(struct side *side, char *line)
{
    char *rest_of = line;
    const char *word = strsep(&rest_of, " ");
    if (strcmp(word, "use") == 0 && rest_of)
        use(side, rest_of);
    else if (strcmp(word, "acquire") == 0 && rest_of)
        acquire(side, strtol(rest_of, NULL, 10));
    else if (strcmp(word, "release") == 0)
        release(side);
    else if (strcmp(word, "alive") == 0)
        verify(side);
    else if (strcmp(word, "turns") == 0 && rest_of)
        take_turns(side, strtol(rest_of, NULL, 10));
    else if (strcmp(word, "value") == 0)
        show(side);
    else
        say("no such command");
}

int main(int count, char **arguments)
{
    /* Every turn is the store's: none is handed on inside the process. */
    mortise_client_options options = {.size = sizeof options, .budget_ms = -1};
    struct side side = {.client = NULL};
    char line[LINE_SIZE];
    if (count != 2)
        return 64;
    int error = mortise_open(arguments[1], &options, &side.client);
    if (error) {
        fail(error);
        return 1;
    }
    say("open");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        obey(&side, line);
    }
    return mortise_close(side.client) != 0;
}
