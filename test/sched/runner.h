/* SPDX-License-Identifier: Apache-2.0 */
/* Between main.c, runner.c and defects.c. */
#ifndef SCHED_RUNNER_H
#define SCHED_RUNNER_H

#include "schedule.h"

#define JOBS_MAX 16

struct request {
    uint64_t start, seeds;
    int jobs;
    int seconds; /* 0: as long as it takes */
    enum sched_trace trace;
    bool hash, quiet;
    const char *defect; /* of the build with seeded defects; NULL: none */
};

/* The result of a run. */
struct outcome {
    uint64_t schedules, steps;
    bool failed;
    uint64_t seed;   /* of the first that failed */
    char fault[256]; /* and what it showed */
};

/* Runs the seeds, in processes of their own. */
void run_seeds(const struct request *request, struct outcome *outcome);
/* Seeds until each defect is found, or --defect's alone; how many were not. As TAP. */
int run_defects(const struct request *request);
/* Switches a defect on; false: there is none of this name. */
bool switch_defect(const char *name);

#endif
