/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise bench: how fast, and how fairly, one mutex is taken and given back.
 *
 * N processes with N threads each do nothing but acquire and release. Each
 * process opens one client, after the fork; results go into a shared mapping,
 * where each thread writes only its own slot. The start is an instant that all
 * sleep until, the end one that each sees on the clock that it reads anyway
 * (twice an acquisition: that is the measurement's whole cost).
 *
 * Requests are counted by the library: those of the whole run, and once before it those of an
 * acquire and of a release on their own (bench_requests.c).
 *
 * One word of the mapping for each lock, written only under it, is its own
 * check: it says who is inside, and it counts the changes of owner.
 *
 * Threads: the parent has one and opens no client while it has children.
 */
#include "cli/tools/bench.h"
#include "cli/frame/cli.h"
#include "cli/frame/json.h"
#include "cli/tools/histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT 256 /* of threads, and of locks */
#define PROCESSES_MAX 1024
#define HEAD_START (50 * MRT_MILLISECOND)
/* How long after the end a thread waits for acquires that it began before. */
#define LAST_WAIT (5 * MRT_SECOND)

enum { THREADS = MRT_OPTION_OWN, PROCESSES, LOCKS, SECONDS, PAUSE, STRICT, JSON };

static const struct mrt_flag flags[] = {
    {THREADS, "threads", "N", "threads in each process, 1 to 256", "1", 0},
    {PROCESSES, "processes", "N", "processes, 1 to 1024", "1", 0},
    {SECONDS, "seconds", "S", "the time to measure, at least 1ms", "3", 0},
    {LOCKS, "locks", "N", "use N mutexes, NAME-1 to NAME-N; the\nthreads are spread over them",
     NULL, 0},
    {PAUSE, "pause", "D", "wait between a release and the next\nacquire", "0s", 0},
    {STRICT, "strict", NULL, "serve the threads of a process strictly in\norder", NULL, 0},
    {JSON, "json", NULL, "print JSON", NULL, 0},
};

const struct mrt_subcommand mrt_bench_subcommand = {
    .name = "bench",
    .summary = "measure how fast a lock is acquired and released",
    .operands = "NAME",
    .about =
        "Measures how fast the mutex NAME is acquired and released, with nothing in between.\n",
    .notes =
        "The share of a thread is its number of acquisitions, divided by the average over all\n"
        "threads: 1 is fair, 0 is none.\n"
        "Requests and round trips of one acquisition: \"alone\" is measured on the free lock\n"
        "before the run; \"here\" is the whole run, waiting and renewing included. Requests that\n"
        "leave together share a round trip. On SQLite they are statements and transactions.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_bench,
};

struct request {
    const char *name;
    int64_t threads, processes, locks;
    mrt_time duration, pause;
    bool strict, json;
    char url[512];
    struct mrt_bench_cost alone;
};

/* The results of one thread, which only that thread writes. */
struct slot {
    struct mrt_histogram acquire, release, cycle;
    uint64_t handovers; /* the thread before was another one */
    uint64_t overlaps;  /* someone else was inside */
    int error;
    uint64_t requests, round_trips; /* of the process's client, in the slot of its first thread */
};

struct shared {
    atomic_int ready;
    _Atomic mrt_time start;   /* 0: not yet known */
    atomic_int inside[LIMIT]; /* for each lock the thread that is inside; negative: was last */
    struct slot slots[];
};

struct worker {
    const struct request *request;
    struct shared *shared;
    mortise_client *client;
    int number; /* from 1, over all processes */
    pthread_t thread;
};

static void sleep_until(mrt_time instant)
{
    struct timespec at = {.tv_sec = instant / MRT_SECOND, .tv_nsec = instant % MRT_SECOND};
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static void enter(atomic_int *inside, struct slot *slot, int me)
{
    int last = atomic_load_explicit(inside, memory_order_relaxed);
    slot->overlaps += last > 0;
    slot->handovers += last != -me;
    atomic_store_explicit(inside, me, memory_order_relaxed);
}

static void leave(atomic_int *inside, struct slot *slot, int me)
{
    slot->overlaps += atomic_load_explicit(inside, memory_order_relaxed) != me;
    atomic_store_explicit(inside, -me, memory_order_relaxed);
}

static int lock_index(const struct worker *worker)
{
    return (worker->number - 1) % (int)worker->request->locks;
}

/* Acquires and releases until `end`; 0 or the first error. */
static int loop(const struct worker *worker, mortise_lock *lock, struct slot *slot, mrt_time end)
{
    atomic_int *inside = &worker->shared->inside[lock_index(worker)];
    mrt_time now = mortise_now_ns();
    while (now < end) {
        mortise_hold hold;
        mrt_time asked = now;
        int error = mortise_acquire_until(lock, end + LAST_WAIT, &hold);
        if (error)
            return error;
        mrt_time got = mortise_now_ns();
        enter(inside, slot, worker->number);
        leave(inside, slot, worker->number);
        error = mortise_release(hold);
        if (error)
            return error;
        now = mortise_now_ns();
        mrt_histogram_add(&slot->acquire, (uint64_t)(got - asked));
        mrt_histogram_add(&slot->release, (uint64_t)(now - got));
        mrt_histogram_add(&slot->cycle, (uint64_t)(now - asked));
        if (worker->request->pause > 0) {
            sleep_until(now + worker->request->pause);
            now = mortise_now_ns();
        }
    }
    return MORTISE_OK;
}

static int new_lock(const struct worker *worker, mortise_lock **lock)
{
    const struct request *request = worker->request;
    char name[MORTISE_NAME_MAX + 1];
    if (request->locks == 1)
        return mortise_mutex_new(worker->client, request->name, NULL, lock);
    int length = snprintf(name, sizeof name, "%s-%d", request->name, lock_index(worker) + 1);
    if (length >= (int)sizeof name)
        return MORTISE_ENAME;
    return mortise_mutex_new(worker->client, name, NULL, lock);
}

static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct shared *shared = worker->shared;
    struct slot *slot = &shared->slots[worker->number - 1];
    mortise_lock *lock = NULL;
    slot->error = new_lock(worker, &lock);
    atomic_fetch_add(&shared->ready, 1);
    mrt_time start;
    while ((start = atomic_load(&shared->start)) == 0)
        sleep_until(mrt_time_now() + MRT_MILLISECOND);
    sleep_until(start);
    if (!slot->error)
        slot->error = loop(worker, lock, slot, start + worker->request->duration);
    mortise_lock_free(lock);
    return NULL;
}

/* The client's counters by now. */
static mortise_stats read_stats(mortise_client *client)
{
    mortise_stats stats = {.size = sizeof stats};
    mortise_get_stats(client, &stats);
    return stats;
}

static int open_client(const struct mrt_cli *cli, const struct request *request, bool drives,
                       mortise_client **client)
{
    mortise_client_options options = {
        .size = sizeof options,
        .flags = (request->strict ? MORTISE_STRICT : 0u) | (drives ? MORTISE_FOREIGN_LOOP : 0u),
        .label = "mortise bench",
    };
    return mortise_open(cli->url, &options, client);
}

/* A child's whole life; its exit code. */
static int be_process(const struct mrt_cli *cli, const struct request *request,
                      struct shared *shared, int number)
{
    static struct worker workers[LIMIT];
    mortise_client *client;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int error = open_client(cli, request, request->threads == 1 && request->processes > 1, &client);
    if (error)
        return mrt_cli_fail_error(request->name, error);
    for (int i = 0; i < request->threads; i++) {
        workers[i] = (struct worker){request, shared, client,
                                     number * (int)request->threads + i + 1, pthread_self()};
        if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start %d threads", i + 1);
    }
    work(&workers[0]);
    for (int i = 1; i < request->threads; i++)
        pthread_join(workers[i].thread, NULL);
    mortise_stats stats = read_stats(client);
    shared->slots[number * (int)request->threads].requests = stats.requests;
    shared->slots[number * (int)request->threads].round_trips = stats.round_trips;
    mortise_close(client);
    return MRT_EXIT_OK;
}

/* Waits for one child to end, or for all threads to be ready; 0 or an exit code. */
static int await_ready(const struct request *request, struct shared *shared)
{
    while (atomic_load(&shared->ready) < request->processes * request->threads) {
        int status;
        if (waitpid(-1, &status, WNOHANG) > 0)
            return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status)
                                                            : MRT_EXIT_INTERNAL;
        sleep_until(mrt_time_now() + MRT_MILLISECOND);
    }
    return MRT_EXIT_OK;
}

static int await_end(int64_t processes)
{
    int worst = MRT_EXIT_OK;
    for (int status; processes > 0; processes--) {
        pid_t pid;
        do
            pid = waitpid(-1, &status, 0);
        while (pid < 0 && errno == EINTR);
        if (pid < 0 || !WIFEXITED(status))
            worst = MRT_EXIT_INTERNAL;
        else if (WEXITSTATUS(status) != MRT_EXIT_OK)
            worst = WEXITSTATUS(status);
    }
    return worst;
}

static int measure(const struct mrt_cli *cli, const struct request *request, struct shared *shared)
{
    pid_t children[PROCESSES_MAX];
    int count = 0, exit_code = MRT_EXIT_OK;
    for (; count < request->processes && exit_code == MRT_EXIT_OK; count++) {
        children[count] = fork();
        if (children[count] == 0)
            _exit(be_process(cli, request, shared, count));
        if (children[count] < 0) {
            exit_code = mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start %d processes", count + 1);
            break;
        }
    }
    if (exit_code == MRT_EXIT_OK)
        exit_code = await_ready(request, shared);
    if (exit_code == MRT_EXIT_OK) {
        atomic_store(&shared->start, mrt_time_now() + HEAD_START);
        return await_end(count);
    }
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return exit_code;
}

struct summary {
    struct slot all;
    double per_second, handovers_per_second, share_min, share_max;
    double requests, round_trips; /* an acquisition */
};

static void summarise(const struct request *request, const struct shared *shared,
                      struct summary *summary)
{
    int64_t threads = request->threads * request->processes;
    double seconds = (double)request->duration / (double)MRT_SECOND;
    uint64_t least = UINT64_MAX, most = 0;
    for (int64_t i = 0; i < threads; i++) {
        const struct slot *slot = &shared->slots[i];
        mrt_histogram_merge(&summary->all.acquire, &slot->acquire);
        mrt_histogram_merge(&summary->all.release, &slot->release);
        mrt_histogram_merge(&summary->all.cycle, &slot->cycle);
        summary->all.handovers += slot->handovers;
        summary->all.overlaps += slot->overlaps;
        summary->all.requests += slot->requests;
        summary->all.round_trips += slot->round_trips;
        if (!summary->all.error)
            summary->all.error = slot->error;
        least = slot->acquire.total < least ? slot->acquire.total : least;
        most = slot->acquire.total > most ? slot->acquire.total : most;
    }
    double total = (double)summary->all.acquire.total;
    summary->per_second = total / seconds;
    summary->handovers_per_second = (double)summary->all.handovers / seconds;
    summary->requests = total > 0 ? (double)summary->all.requests / total : 0;
    summary->round_trips = total > 0 ? (double)summary->all.round_trips / total : 0;
    summary->share_min = total > 0 ? (double)least * (double)threads / total : 0;
    summary->share_max = total > 0 ? (double)most * (double)threads / total : 0;
}

static double quantile_us(const struct mrt_histogram *histogram, double quantile)
{
    return mrt_histogram_quantile(histogram, quantile) / 1000;
}

static void print_json_text(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    mrt_json_string(stdout, text);
    printf(", ");
}

static void print_json(const struct request *request, const struct summary *summary)
{
    const struct slot *all = &summary->all;
    printf("{");
    print_json_text("name", request->name);
    print_json_text("url", request->url);
    printf("\"threads\": %d, \"processes\": %d, \"locks\": %d, \"seconds\": %.3f, "
           "\"strict\": %s, ",
           (int)request->threads, (int)request->processes, (int)request->locks,
           (double)request->duration / (double)MRT_SECOND, request->strict ? "true" : "false");
    printf("\"acquisitions_per_s\": %.0f, \"handovers_per_s\": %.0f, ", summary->per_second,
           summary->handovers_per_second);
    printf("\"acquire_us\": {\"p50\": %.3f, \"p99\": %.3f}, ", quantile_us(&all->acquire, 0.5),
           quantile_us(&all->acquire, 0.99));
    printf("\"release_us\": {\"p50\": %.3f, \"p99\": %.3f}, ", quantile_us(&all->release, 0.5),
           quantile_us(&all->release, 0.99));
    printf("\"cycle_us\": {\"p50\": %.3f, \"p99\": %.3f}, ", quantile_us(&all->cycle, 0.5),
           quantile_us(&all->cycle, 0.99));
    printf("\"requests\": %.3f, \"round_trips\": %.3f, ", summary->requests, summary->round_trips);
    printf("\"alone\": {\"acquire_requests\": %" PRIu64 ", \"acquire_round_trips\": %" PRIu64
           ", \"release_requests\": %" PRIu64 ", \"release_round_trips\": %" PRIu64 "}, ",
           request->alone.acquire_requests, request->alone.acquire_round_trips,
           request->alone.release_requests, request->alone.release_round_trips);
    printf("\"share_min\": %.4f, \"share_max\": %.4f, \"max_wait_ms\": %.3f}\n", summary->share_min,
           summary->share_max, (double)all->acquire.largest / 1e6);
}

static void print_table(const struct request *request, const struct summary *summary)
{
    const struct slot *all = &summary->all;
    printf("%-18s %s\n", "store", request->url);
    printf("%-18s %d x %d\n", "processes, threads", (int)request->processes, (int)request->threads);
    printf("%-18s %.0f\n", "acquisitions/s", summary->per_second);
    printf("%-18s %.0f\n", "changes of owner/s", summary->handovers_per_second);
    printf("%-18s p50 %.2f  p99 %.2f\n", "acquire, us", quantile_us(&all->acquire, 0.5),
           quantile_us(&all->acquire, 0.99));
    printf("%-18s p50 %.2f  p99 %.2f\n", "release, us", quantile_us(&all->release, 0.5),
           quantile_us(&all->release, 0.99));
    printf("%-18s acquire %" PRIu64 " in %" PRIu64 " round trips, release %" PRIu64 " in %" PRIu64
           "\n",
           "requests, alone", request->alone.acquire_requests, request->alone.acquire_round_trips,
           request->alone.release_requests, request->alone.release_round_trips);
    printf("%-18s %.2f in %.2f round trips an acquisition\n", "requests, here", summary->requests,
           summary->round_trips);
    printf("%-18s %.2f ms\n", "longest wait", (double)all->acquire.largest / 1e6);
    printf("%-18s %.3f to %.3f\n", "shares", summary->share_min, summary->share_max);
}

static int report(const struct request *request, const struct shared *shared)
{
    static struct summary summary;
    summarise(request, shared, &summary);
    if (summary.all.error)
        return mrt_cli_fail(mrt_cli_exit_code(summary.all.error), "%s: %s", request->name,
                            mortise_error_text(summary.all.error));
    (request->json ? print_json : print_table)(request, &summary);
    if (summary.all.overlaps)
        return mrt_cli_fail(MRT_EXIT_FAILED, "%s: two were inside at once, %llu times",
                            request->name, (unsigned long long)summary.all.overlaps);
    return MRT_EXIT_OK;
}

static int ignore_entry(void *argument, const mortise_entry *entry)
{
    (void)argument, (void)entry;
    return 1;
}

/* Opens the store and sends one request, so that an error is reported once. */
static int probe(const struct mrt_cli *cli, struct request *request)
{
    mortise_client *client;
    int error = open_client(cli, request, true, &client);
    if (error)
        return mrt_cli_fail_error(NULL, error);
    snprintf(request->url, sizeof request->url, "%s", mortise_url(client));
    error = mortise_list(client, request->name, ignore_entry, NULL);
    if (!error)
        error = mrt_bench_count_requests(client, request->name, &request->alone);
    if (error) {
        int exit_code = mrt_cli_fail_error(request->name, error);
        mortise_close(client);
        return exit_code;
    }
    mortise_close(client);
    if (request->processes > 1 && strncmp(request->url, "memory:", 7) == 0)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is not shared by processes", request->url);
    return MRT_EXIT_OK;
}

static bool parse_duration(const char *text, mrt_time *duration)
{
    return mrt_cli_duration(text, duration) && *duration >= MRT_MILLISECOND;
}

/* True to go on; else cli->exit_code says how it ended. */
static bool parse(struct mrt_cli *cli, int argc, char **argv, struct request *request)
{
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        const char *wrong = NULL;
        if (option == MRT_OPTION_STOP)
            return false;
        if (option == THREADS && !mrt_cli_number(optarg, 1, LIMIT, &request->threads))
            wrong = "a number from 1 to 256";
        if (option == PROCESSES && !mrt_cli_number(optarg, 1, PROCESSES_MAX, &request->processes))
            wrong = "a number from 1 to 1024";
        if (option == LOCKS && !mrt_cli_number(optarg, 1, LIMIT, &request->locks))
            wrong = "a number from 1 to 256";
        if (option == SECONDS && !parse_duration(optarg, &request->duration))
            wrong = "a duration of 1ms or more";
        if (option == PAUSE && !mrt_cli_duration(optarg, &request->pause))
            wrong = "a duration";
        request->strict |= option == STRICT;
        request->json |= option == JSON;
        if (wrong) {
            cli->exit_code = mrt_cli_fail_value(cli, wrong);
            return false;
        }
    }
    request->name = argv[optind];
    cli->exit_code = argc - optind != 1 ? mrt_cli_fail(MRT_EXIT_USAGE, "bench: one NAME is needed")
                                        : mrt_cli_check_name(request->name);
    return cli->exit_code == MRT_EXIT_OK;
}

int mrt_cli_bench(struct mrt_cli *cli, int argc, char **argv)
{
    struct request request = {.threads = 1, .processes = 1, .locks = 1, .duration = 3 * MRT_SECOND};
    if (!parse(cli, argc, argv, &request))
        return cli->exit_code;
    int exit_code = probe(cli, &request);
    if (exit_code != MRT_EXIT_OK)
        return exit_code;
    size_t slots = (size_t)(request.threads * request.processes);
    size_t size = sizeof(struct shared) + slots * sizeof(struct slot);
    struct shared *shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    fflush(stdout);
    exit_code = measure(cli, &request, shared);
    if (exit_code == MRT_EXIT_OK)
        exit_code = report(&request, shared);
    munmap(shared, size);
    return exit_code;
}
