/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds in processes of their own, so that a crash, a failed assertion and an endless loop are
 * faults like any other. Each notes its seed in memory that all share: a process that a signal ends
 * tells nothing itself.
 */
#include "runner.h"

#include "world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 20 /* seconds, of one schedule */

struct progress {
    uint64_t seed, schedules, steps;
    bool failed;
};
static struct progress *progress; /* one for each job */

static bool any_failed(const struct request *request)
{
    for (int i = 0; i < request->jobs; i++)
        if (__atomic_load_n(&progress[i].failed, __ATOMIC_RELAXED))
            return true;
    return false;
}

static void run_job(const struct request *request, int job)
{
    struct progress *own = &progress[job];
    time_t end = time(NULL) + request->seconds;
    for (uint64_t i = (uint64_t)job; i < request->seeds && !any_failed(request);
         i += (uint64_t)request->jobs) {
        if (request->seconds > 0 && time(NULL) >= end)
            break;
        own->seed = request->start + i;
        alarm(LONGEST); /* of the system's time */
        world_run(own->seed, request->trace);
        own->steps += sched_steps();
        own->schedules++;
        if (request->hash)
            printf("seed %llu: %016llx\n", (unsigned long long)own->seed,
                   (unsigned long long)sched_hash());
    }
    exit(0); /* what is left behind is a sanitizer's to find */
}

/* A process that is told to be quiet gives its last words to a pipe. */
static pid_t start_job(const struct request *request, int job, const int words[2])
{
    progress[job] = (struct progress){.seed = request->start};
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (request->quiet) {
        dup2(words[1], STDOUT_FILENO);
        dup2(words[1], STDERR_FILENO);
    }
    close(words[0]);
    close(words[1]);
    run_job(request, job);
    return 0;
}

static void note_end(const struct request *request, int job, int status, struct outcome *outcome)
{
    outcome->schedules += progress[job].schedules;
    outcome->steps += progress[job].steps;
    if (status == 0)
        return;
    __atomic_store_n(&progress[job].failed, true, __ATOMIC_RELAXED);
    outcome->failed = true;
    outcome->seed = progress[job].seed;
    if (WIFSIGNALED(status) && !request->quiet)
        printf("signal %d: %s\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (!request->quiet)
        printf("FAILED: sched --seed %llu\n", (unsigned long long)outcome->seed);
}

/* The line that says what was wrong: sched_fail's, or a sanitizer's, or an assertion's. */
static void read_words(int pipe_end, struct outcome *outcome)
{
    char line[256];
    FILE *lines = fdopen(pipe_end, "r");
    while (lines && fgets(line, sizeof line, lines)) {
        const char *fault = strstr(line, " steps: ");
        if (!fault)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(outcome->fault, sizeof outcome->fault, "%s", fault + strlen(" steps: "));
    }
    if (lines)
        fclose(lines);
}

void run_seeds(const struct request *request, struct outcome *outcome)
{
    pid_t jobs[JOBS_MAX];
    int words[2], status;
    *outcome = (struct outcome){.schedules = 0};
    progress = mmap(NULL, JOBS_MAX * sizeof *progress, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED || pipe(words) != 0) {
        outcome->failed = true;
        return;
    }
    fflush(stdout);
    for (int job = 0; job < request->jobs; job++)
        jobs[job] = start_job(request, job, words);
    close(words[1]);
    read_words(words[0], outcome);
    for (int job = 0; job < request->jobs; job++)
        if (jobs[job] > 0 && waitpid(jobs[job], &status, 0) == jobs[job])
            note_end(request, job, status, outcome);
    munmap(progress, JOBS_MAX * sizeof *progress);
}
