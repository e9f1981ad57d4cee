/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instances that are searched, and the seeded defects that measure the search. TAP.
 *
 *   explore                 small instances; explore --full: the large ones too
 *   explore WORD            only instances whose name contains WORD, of any size
 *   explore --compare       goes through all states as they are as well: whether the search, which
 *                           takes those that are alike for one, misses anything; of some small
 *                           instances, and with a WORD of any
 *   explore_defects         each seeded defect: which instance catches it, and how
 *   explore_defects -v      the same with the way there
 *   explore_defects --all   the same by searches that take no states for one
 *   explore_defects OPTION DEFECT
 *
 * Each search is a process of its own, so that a failed assertion is a result as well.
 */
#include "explore.h"

#ifdef MRT_DEFECTS
#include "mutants.h"
#endif

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NO_FAULT .faults = 0
#define ANY_FAULT .faults = 1, .losses = 1, .kills = 1, .cancels = 1, .crashes = 1
#define EACH_FAULT .faults = 4, .losses = 1, .kills = 1, .cancels = 1, .crashes = 1
/* Of `lock`: clients, threads of the first one, turns of each thread. */
#define OF(lock, client_count, thread_count, turn_count) \
    .recipe = &(lock), .clients = (client_count), .threads = (thread_count), .turns = (turn_count)
#define LEASES(count) .at_once = true, .instants = (count)

static struct mrt_recipe semaphore; /* of two permits */

static const struct instance instances[] = {
    {"mutex, tries, two turns", OF(mrt_mutex, 2, 1, 2), .tries = true, .nests = true, NO_FAULT},
    {"mutex, any fault", OF(mrt_mutex, 2, 1, 1), ANY_FAULT, .compared = true},
    {"mutex, one client of two threads", OF(mrt_mutex, 2, 2, 1), NO_FAULT, .compared = true},
    {"mutex, leases", OF(mrt_mutex, 2, 1, 1), LEASES(2), NO_FAULT, .compared = true},
    {"semaphore mutex, any fault", OF(mrt_semaphore_mutex, 2, 1, 1), .nests = true, ANY_FAULT},
    {"semaphore, any fault", OF(semaphore, 2, 1, 1), ANY_FAULT, .compared = true},
    {"election of candidates, any fault", OF(mrt_election, 2, 1, 1), ANY_FAULT},
    {"read/write", OF(mrt_read_write, 2, 1, 1), .nests = true, NO_FAULT, .compared = true},
    {"exclusive as a claim, any fault", OF(mrt_exclusive, 2, 1, 1), .claims = true, ANY_FAULT,
     .compared = true},
    {"mutex, left to nobody, any fault", OF(mrt_mutex, 2, 1, 1), .adoptions = 2, ANY_FAULT},
    {"mutex, lingering", OF(mrt_mutex, 2, 1, 2), .lingers = true, NO_FAULT},
    {"mutex, lingering, any fault", OF(mrt_mutex, 2, 1, 1), .lingers = true, ANY_FAULT,
     .compared = true},
    {"mutex, delay, any fault", OF(mrt_mutex, 2, 1, 1), .delays = true, ANY_FAULT,
     .compared = true},
    {"mutex, delay for one of two threads, a loss", OF(mrt_mutex, 2, 2, 1), .delays = true,
     .at_once = true, .faults = 1, .kills = 1},
    {"mutex, delay, leases, a loss", OF(mrt_mutex, 2, 1, 1), .delays = true, LEASES(1), .faults = 1,
     .kills = 1},
    {"read/write, left to nobody", OF(mrt_read_write, 2, 1, 1), .adoptions = 1, NO_FAULT,
     .compared = true},

    {"full: mutex, each fault", OF(mrt_mutex, 2, 1, 1), .nests = true, EACH_FAULT, .full = true},
    {"full: mutex, two turns, any fault", OF(mrt_mutex, 2, 1, 2), ANY_FAULT, .full = true},
    {"full: mutex, one client of two threads, any fault", OF(mrt_mutex, 2, 2, 1), ANY_FAULT,
     .full = true},
    {"full: mutex, left to nobody, each fault", OF(mrt_mutex, 2, 1, 1), .adoptions = 2, EACH_FAULT,
     .full = true},
    {"full: read/write, left to nobody, any fault", OF(mrt_read_write, 2, 1, 1), .adoptions = 2,
     ANY_FAULT, .full = true},
    {"full: mutex, lingering, each fault", OF(mrt_mutex, 2, 1, 1), .lingers = true, EACH_FAULT,
     .full = true},
    {"full: mutex, delay, each fault", OF(mrt_mutex, 2, 1, 1), .delays = true, EACH_FAULT,
     .full = true},
    {"full: read/write, delay, any fault", OF(mrt_read_write, 2, 1, 1), .delays = true, ANY_FAULT,
     .full = true},
    {"full: mutex, delay, leases, a loss or a crash", OF(mrt_mutex, 2, 1, 1), .delays = true,
     LEASES(2), .faults = 1, .kills = 1, .crashes = 1, .full = true},
    {"full: mutex, leases", OF(mrt_mutex, 2, 1, 1), LEASES(3), NO_FAULT, .full = true},
    {"full: semaphore mutex, each fault", OF(mrt_semaphore_mutex, 2, 1, 1), .nests = true,
     EACH_FAULT, .full = true},
    {"full: election of candidates, each fault", OF(mrt_election, 2, 1, 1), EACH_FAULT,
     .full = true},
    {"full: semaphore, each fault", OF(semaphore, 2, 1, 1), .tries = true, EACH_FAULT,
     .full = true},
    {"full: read/write, each fault", OF(mrt_read_write, 2, 1, 1), .nests = true, EACH_FAULT,
     .full = true},
    {"full: exclusive as a claim, each fault", OF(mrt_exclusive, 2, 1, 1), .claims = true,
     EACH_FAULT, .full = true},
    {"full: mutex, 3 clients, any fault", OF(mrt_mutex, 3, 1, 1), ANY_FAULT, .full = true},
    {"full: mutex, 3 clients, each fault", OF(mrt_mutex, 3, 1, 1), EACH_FAULT, .full = true},
    {"full: read/write, 3 clients, each fault", OF(mrt_read_write, 3, 1, 1), EACH_FAULT,
     .full = true},
};
#define INSTANCES ((int)(sizeof instances / sizeof instances[0]))

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Searches in a process of its own. */
static struct result search_apart(const struct instance *instance, enum search_how how, FILE *trace)
{
    struct result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        search(instance, how, shared, trace);
        fflush(NULL);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child)
        abort();
    if (!shared->failed && (!shared->ended || status != 0)) {
        shared->failed = true;
        snprintf(shared->failure, sizeof shared->failure, "it ends with status %#x", status);
    }
    struct result result = *shared;
    munmap(shared, sizeof *shared);
    return result;
}

#ifdef MRT_DEFECTS

/* "model" alone, or with a word of the instances that can show the mutant. */
static const struct mutant_row {
    int mutant;
    const char *name, *suite, *text;
} mutants[] = {
#define MUTANT_ROW(name, suite, test, text) {MRT_MUTANT_##name, #name, suite, text},
    MRT_MUTANT_MAP(MUTANT_ROW)
#undef MUTANT_ROW
};

/* NULL: it is none of the model's. */
static const char *where_wanted(const struct mutant_row *row)
{
    size_t own = strlen("model");
    bool wanted = strncmp(row->suite, "model", own) == 0;
    return wanted ? row->suite + own + (row->suite[own] == ' ') : NULL;
}

/* The first small instance that catches a defect. */
static bool catch_defect(const struct mutant_row *row, int test, enum search_how how, bool verbose)
{
    const char *where = where_wanted(row);
    mrt_mutant_on = row->mutant;
    for (int i = 0; i < INSTANCES; i++) {
        if (instances[i].full || (where && !strstr(instances[i].name, where)))
            continue;
        double begin = seconds_now();
        struct result result = search_apart(&instances[i], how, verbose ? stdout : NULL);
        if (!result.failed)
            continue;
        printf("ok %d - %s: %s: %s in \"%s\", %llu states, %.2f s\n", test, row->name, row->text,
               result.failure, instances[i].name, (unsigned long long)result.states,
               seconds_now() - begin);
        return true;
    }
    printf("not ok %d - %s: %s: not caught\n", test, row->name, row->text);
    return false;
}

int main(int count, char **arguments)
{
    bool verbose = count > 1 && strcmp(arguments[1], "-v") == 0;
    bool all = count > 1 && strcmp(arguments[1], "--all") == 0;
    const char *word = count > 1 + (verbose || all) ? arguments[1 + (verbose || all)] : NULL;
    int tests = 0, missed = 0;
    semaphore = mrt_semaphore(2);
    if (!freopen("/dev/null", "w", stderr)) /* assertions that fail speak there */
        abort();
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++)
        if (where_wanted(&mutants[i]) && (!word || strcmp(word, mutants[i].name) == 0))
            missed +=
                !catch_defect(&mutants[i], ++tests, all ? SEARCH_STATES : SEARCH_ALIKE, verbose);
    printf("1..%d\n# %d of %d seeded defects caught\n", tests, tests - missed, tests);
    return missed > 0 || tests == 0;
}

#else

static struct result explore(const struct instance *instance, int test)
{
    double begin = seconds_now();
    struct result result = search_apart(instance, SEARCH_ALIKE, stdout);
    printf("%s %d - %s: %llu states, %llu visits, %llu steps, runs of up to %llu, %.1f s%s%s\n",
           result.failed ? "not ok" : "ok", test, instance->name, (unsigned long long)result.states,
           (unsigned long long)result.visits, (unsigned long long)result.steps,
           (unsigned long long)result.depth, seconds_now() - begin, result.failed ? ": " : "",
           result.failure);
    return result;
}

/* Whether the search has been to all that there is. */
static bool compare(const struct instance *instance, int test)
{
    double begin = seconds_now();
    struct result found = search_apart(instance, SEARCH_ALIKE, stdout);
    struct result all = search_apart(instance, SEARCH_COMPARING, stdout);
    bool same = !found.failed && !all.failed && found.states == all.states;
    printf(
        "%s %d - %s: %llu states that are not alike found, %llu there are, of %llu, %.1f s%s%s\n",
        same ? "ok" : "not ok", test, instance->name, (unsigned long long)found.states,
        (unsigned long long)all.states, (unsigned long long)all.visits, seconds_now() - begin,
        all.failed ? ": " : "", all.failure);
    return same;
}

int main(int count, char **arguments)
{
    bool full = count > 1 && strcmp(arguments[1], "--full") == 0;
    bool compares = count > 1 && strcmp(arguments[1], "--compare") == 0;
    const char *word = count > 1 + (full || compares) ? arguments[1 + (full || compares)] : NULL;
    int tests = 0, failures = 0;
    semaphore = mrt_semaphore(2);
    for (int i = 0; i < INSTANCES; i++) {
        const struct instance *instance = &instances[i];
        bool chosen = compares ? instance->compared : full || !instance->full;
        if (word ? !strstr(instance->name, word) : !chosen)
            continue;
        tests++;
        failures += compares ? !compare(instance, tests) : explore(instance, tests).failed;
        fflush(stdout);
    }
    printf("1..%d\n", tests);
    return failures > 0 || tests == 0;
}

#endif
