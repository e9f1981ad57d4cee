/* SPDX-License-Identifier: Apache-2.0 */
/* Running seeds in worker processes, and making a failing one smaller. */
#include "runner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANG_SECONDS 20
#define SHRINK_RUNS 600

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct board *boards_new(int count)
{
    void *shared = mmap(NULL, (size_t)count * sizeof(struct board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    return shared;
}

void request_profile(const struct request *request, uint64_t seed, struct profile *profile)
{
    profile_draw(profile, seed, request->model, request->kind);
    for (int i = 0; i < request->set_count; i++)
        if (!profile_set(profile, request->sets[i])) {
            fprintf(stderr, "sim: no such field: %s\n", request->sets[i]);
            exit(64);
        }
}

static const char *const store_names[MODEL_COUNT] = {
    [MODEL_LEASE] = "lease",
    [MODEL_KERNEL] = "memory",
    [MODEL_SQLITE] = "sqlite",
    [MODEL_AGENT] = "agent",
#ifdef MORTISE_ZOOKEEPER
    [MODEL_ZOOKEEPER] = "zookeeper-port",
    [MODEL_ZK_LIBRARY] = "zookeeper",
#endif
#ifdef SIM_REDIS
    [MODEL_REDIS] = "redis",
    [MODEL_REDLOCK] = "redlock",
    [MODEL_QUORUM] = "quorum",
#endif
#ifdef SIM_ETCD
    [MODEL_ETCD] = "etcd",
#endif
#ifdef SIM_POSTGRES
    [MODEL_POSTGRES] = "postgres",
#endif
};

static const char *const kind_options[] = {
    [WORLD_FAULTY] = "", [WORLD_MIXED] = " --mixed", [WORLD_LONE] = " --lone"};

const char *store_name(int model)
{
    return model == MODEL_ANY ? "" : store_names[model];
}

bool store_by_name(const char *name, int *model)
{
    for (*model = 0; *model < MODEL_COUNT; ++*model)
        if (store_names[*model] && strcmp(store_names[*model], name) == 0)
            return true;
    *model = MODEL_ANY;
    return strcmp(name, "any") == 0;
}

/* ------------------------------------------------------------- workers */

/* Time limits count the worker's own processor time: the machine may be busy. */
static double processor_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void limit_processor_time(void)
{
    const struct itimerval limit = {.it_value = {.tv_sec = HANG_SECONDS}};
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static bool one_failed(const struct board *all, int count)
{
    for (int i = 0; i < count; i++)
        if (all[i].failed || all[i].stop)
            return true;
    return false;
}

static void work(const struct lane *lane, struct board *board, const struct board *all, int count)
{
    double end = processor_seconds() + lane->seconds;
    for (uint64_t seed = lane->start; seed < lane->end; seed += lane->stride) {
        struct profile profile;
        struct outcome outcome;
        if ((board->runs & 63) == 0)
            limit_processor_time();
        board->seed = seed;
        request_profile(lane->request, seed, &profile);
        world_run(seed, &profile, NULL, false, &outcome);
        board->runs++;
        board->operations += outcome.operations;
        board->steps += outcome.steps;
        if (outcome.failure[0]) {
            memcpy(board->failure, outcome.failure, sizeof board->failure);
            board->failed = true;
            return;
        }
        if (one_failed(all, count) || (lane->seconds > 0 && processor_seconds() > end))
            return;
    }
}

int lane_spawn(const struct lane *lane, struct board *board, const struct board *all, int count)
{
    fflush(NULL);
    pid_t process = fork();
    if (process < 0)
        abort();
    if (process == 0) {
        work(lane, board, all, count);
        _exit(0);
    }
    return process;
}

void lane_wait(int process, struct board *board)
{
    int status;
    if (waitpid(process, &status, 0) != process)
        abort();
    if (status != 0 && !board->failed) { /* a sanitizer's complaint is an exit, not a signal */
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        snprintf(board->failure, sizeof board->failure, "%s",
                 number == SIGVTALRM ? "an endless loop"
                 : number == SIGABRT ? "an assertion of the engine failed"
                                     : "a crash");
        board->failed = true;
    }
}

bool run_fails(uint64_t seed, const struct profile *profile, struct board *board)
{
    memset(board, 0, sizeof *board);
    fflush(NULL);
    pid_t process = fork();
    if (process < 0)
        abort();
    if (process == 0) {
        struct outcome outcome;
        if (!freopen("/dev/null", "w", stderr))
            abort();
        limit_processor_time();
        world_run(seed, profile, NULL, false, &outcome);
        memcpy(board->failure, outcome.failure, sizeof board->failure);
        board->failed = outcome.failure[0] != '\0';
        _exit(0);
    }
    lane_wait(process, board);
    return board->failed;
}

/* ------------------------------------------------------------- one seed */

int run_single(const struct request *request)
{
    struct profile profile;
    struct outcome outcome;
    request_profile(request, request->start, &profile);
    if (!request->hash) {
        printf("seed %llu\n", (unsigned long long)request->start);
        profile_print(&profile, stdout);
    }
    fflush(stdout);
    world_run(request->start, &profile, request->hash ? NULL : stdout, request->trace, &outcome);
    printf("%llu %016llx %s\n", (unsigned long long)request->start,
           (unsigned long long)outcome.hash, outcome.failure[0] ? outcome.failure : "ok");
    return outcome.failure[0] ? 1 : 0;
}

int run_hashes(const struct request *request)
{
    bool failed = false;
    for (uint64_t seed = request->start; seed < request->start + request->seeds; seed++) {
        struct profile profile;
        struct outcome outcome;
        request_profile(request, seed, &profile);
        world_run(seed, &profile, NULL, false, &outcome);
        printf("%llu %016llx %s\n", (unsigned long long)seed, (unsigned long long)outcome.hash,
               outcome.failure);
        failed |= outcome.failure[0] != '\0';
    }
    return failed;
}

/* ------------------------------------------------------------- making it smaller */

/* The same complaint, but for its numbers. */
static bool same_failure(const char *a, const char *b)
{
    while (*a && *b) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (*a) {
            a++;
            b++;
        }
    }
    return *a == *b;
}

static bool still_fails(uint64_t seed, struct profile *smaller, struct profile *profile,
                        struct board *board, int *runs)
{
    static char first[sizeof board->failure];
    if (++*runs > SHRINK_RUNS || !run_fails(seed, smaller, board))
        return false;
    if (*runs == 1)
        memcpy(first, board->failure, sizeof first);
    if (!same_failure(first, board->failure))
        return false;
    *profile = *smaller;
    return true;
}

/* Tries a field at 0 or 1, then halves it; whether anything became smaller. */
static bool shrink_field(uint64_t seed, struct profile *profile, int field, struct board *board,
                         int *runs)
{
    int64_t least = profile_fields[field].kind == SIZE ? 1 : 0;
    struct profile smaller = *profile;
    bool any = false;
    if (*profile_value(profile, field) <= least)
        return false;
    *profile_value(&smaller, field) = least;
    if (still_fails(seed, &smaller, profile, board, runs))
        return true;
    while (*profile_value(profile, field) > least + 1) {
        smaller = *profile;
        *profile_value(&smaller, field) -=
            profile_fields[field].kind == SIZE ? 1 : *profile_value(profile, field) / 2;
        if (!still_fails(seed, &smaller, profile, board, runs))
            break;
        any = true;
    }
    return any;
}

static void shrink(uint64_t seed, struct profile *profile, struct board *board)
{
    struct profile whole = *profile;
    int runs = 0;
    bool any = true;
    if (!still_fails(seed, &whole, profile, board, &runs))
        return;
    while (any && runs < SHRINK_RUNS) {
        any = false;
        for (int field = 0; field < profile_field_count; field++)
            if (profile_fields[field].kind != FIXED)
                any |= shrink_field(seed, profile, field, board, &runs);
    }
}

static void print_failure(const struct request *request, uint64_t seed, const char *failure)
{
    struct profile drawn, profile;
    struct board *board = boards_new(1);
    struct outcome outcome;
    profile_draw(&drawn, seed, request->model, request->kind);
    request_profile(request, seed, &profile);
    printf("seed %llu fails: %s\n", (unsigned long long)seed, failure);
    shrink(seed, &profile, board);
    printf("made smaller:\n");
    profile_print(&profile, stdout);
    printf("again: sim%s%s%s%s%s --seed %llu", request->defect ? "_defects --defect " : "",
           request->defect ? request->defect : "", request->model == MODEL_ANY ? "" : " --store ",
           store_name(request->model), kind_options[request->kind], (unsigned long long)seed);
    for (int field = 0; field < profile_field_count; field++)
        if (*profile_value(&profile, field) != *profile_value(&drawn, field))
            printf(" --set %s=%lld", profile_fields[field].name,
                   (long long)*profile_value(&profile, field));
    printf("\n");
    fflush(stdout);
    world_run(seed, &profile, stdout, false, &outcome); /* the last thing: it may crash */
}

int run_seeds(const struct request *request)
{
    int jobs = request->jobs, processes[JOBS_MAX];
    struct board *boards = boards_new(jobs);
    double begin = seconds_now();
    for (int i = 0; i < jobs; i++) {
        const struct lane lane = {.start = request->start + (uint64_t)i,
                                  .stride = (uint64_t)jobs,
                                  .end = request->start + request->seeds,
                                  .request = request};
        processes[i] = lane_spawn(&lane, &boards[i], boards, jobs);
    }
    uint64_t runs = 0, operations = 0, steps = 0;
    int failed = -1;
    for (int i = 0; i < jobs; i++) {
        lane_wait(processes[i], &boards[i]);
        runs += boards[i].runs;
        operations += boards[i].operations;
        steps += boards[i].steps;
        if (boards[i].failed && (failed < 0 || boards[i].seed < boards[failed].seed))
            failed = i;
    }
    double seconds = seconds_now() - begin;
    printf("%llu seeds in %.1f s: %llu operations, %.0f a second and core; %llu steps\n",
           (unsigned long long)runs, seconds, (unsigned long long)operations,
           (double)operations / seconds / jobs, (unsigned long long)steps);
    if (request->expect) {
        const char *how = failed < 0 ? "nothing fails" : boards[failed].failure;
        printf("seed %llu: %s\n", failed < 0 ? 0 : (unsigned long long)boards[failed].seed, how);
        return strstr(how, request->expect) ? 0 : 1;
    }
    if (failed < 0 && runs == request->seeds)
        return 0;
    if (failed < 0) {
        printf("%llu seeds were not run\n", (unsigned long long)(request->seeds - runs));
        return 1;
    }
    print_failure(request, boards[failed].seed, boards[failed].failure);
    return 1;
}
