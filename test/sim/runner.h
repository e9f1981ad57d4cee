/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to run seeds: many, one, until one fails, made smaller. */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include "world.h"

#define SETS_MAX 64
#define JOBS_MAX 16

struct request {
    uint64_t start, seeds;
    int jobs, seconds;
    bool single, hash, trace, defects;
    enum world_kind kind;
    int model; /* MODEL_ANY, or the one store */
    const char *sets[SETS_MAX];
    int set_count;
    const char *defect;
    const char *expect; /* how a seed has to fail; NULL: none may */
};

/* All return an exit status. */
int run_seeds(const struct request *request);
int run_single(const struct request *request);
int run_hashes(const struct request *request);
int run_defects(const struct request *request);

/* Memory that workers and their parent share. */
struct board {
    volatile uint64_t runs, operations, steps, seed;
    volatile bool failed, stop;
    char failure[400];
};
struct board *boards_new(int count);
/* Runs seeds start, start + stride, ... below end or until `seconds` have passed; in a
   process of its own. */
struct lane {
    uint64_t start, stride, end;
    int seconds;
    const struct request *request; /* for its sets */
};
int lane_spawn(const struct lane *lane, struct board *board, const struct board *all, int count);
/* Waits for it; fills the board in if it crashed. */
void lane_wait(int process, struct board *board);
/* Whether a run fails, in a process of its own; its failure. */
bool run_fails(uint64_t seed, const struct profile *profile, struct board *board);

double seconds_now(void);

/* Stores by the names of --store; "any" draws one of those that are pure models. */
const char *store_name(int model);
bool store_by_name(const char *name, int *model);

/* The draws of a seed, with the settings of the command line. */
void request_profile(const struct request *request, uint64_t seed, struct profile *profile);

/* Switches a seeded defect on: a number from 1, its name and text; false: no such. */
bool defect_switch(int number, const char **name, const char **text);
bool defect_switch_by_name(const char *wanted);

#endif
