/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good is the simulator? Each mutant is switched on in turn, and the time is
 * taken until a seed fails. One that is not found in time fails the measurement, and so
 * does a failure without a defect. The output is in the form of TAP.
 */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

#ifdef MRT_DEFECTS
#include "texts.h"

#define CLEAN_SEEDS 2000

static const struct defect {
    int mutant;
    const char *name, *text, *suite;
} defects[] = {{MRT_MUTANT_NONE, "NONE", "nothing", "sim"},
#define MUTANT_ROW(name, suite, test, text) {MRT_MUTANT_##name, #name, text, suite},
#define TEXT_ROW(name, suite, text) {SIM_TEXT_##name, #name, text, suite},
               MRT_MUTANT_MAP(MUTANT_ROW) SIM_TEXT_MAP(TEXT_ROW)
#undef MUTANT_ROW
#undef TEXT_ROW
};
#define DEFECT_COUNT ((int)(sizeof defects / sizeof defects[0]))

bool defect_switch(int number, const char **name, const char **text)
{
    if (number < 0 || number >= DEFECT_COUNT)
        return false;
    *name = defects[number].name;
    *text = defects[number].text;
    mrt_mutant_on = defects[number].mutant;
    return true;
}

bool defect_switch_by_name(const char *wanted)
{
    const char *name, *text;
    for (int i = 0; defect_switch(i, &name, &text); i++)
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool can_show(const struct defect *defect)
{
    return begins(defect->suite, "sim");
}

/* The store that a mutant's "sim [STORE] ..." names. */
static int store_of_suite(const char *suite)
{
    char store[32] = "any";
    int model;
    sscanf(suite, "sim %31s", store);
    return store_by_name(store, &model) ? model : MODEL_ANY;
}

/* Takes the settings of a mutant's "sim STORE ... from SEED field=value ...". */
static void take_words(struct request *request, const char *suite)
{
    static char words[256];
    const char *from = strstr(suite, " from ");
    request->start += from ? strtoull(from + strlen(" from "), NULL, 10) : 0;
    snprintf(words, sizeof words, "%s", suite);
    char *rest;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strchr(word, '=') && request->set_count < SETS_MAX)
            request->sets[request->set_count++] = word;
}

/* Where a defect can show: its own store, or the core under any. */
static int store_of(const struct request *request, const struct defect *defect)
{
    return request->model != MODEL_ANY ? request->model : store_of_suite(defect->suite);
}

/* Mutants that show only where one session has locks in several queues, or where locks linger; or
 * that nothing but one fault hides. */
static enum world_kind kind_for(const struct request *request, const struct defect *defect)
{
    if (request->kind != WORLD_FAULTY)
        return request->kind;
    return strstr(defect->suite, " mixed")  ? WORLD_MIXED
           : strstr(defect->suite, " lone") ? WORLD_LONE
                                            : WORLD_FAULTY;
}

/* Runs all lanes of one defect; the failure found, or NULL. */
static const struct board *hunt(const struct request *wanted, const struct defect *defect,
                                uint64_t seeds, struct board *boards)
{
    int processes[JOBS_MAX];
    struct request all = *wanted, *request = &all;
    all.model = store_of(wanted, defect);
    all.kind = kind_for(wanted, defect);
    take_words(&all, defect->suite);
    const struct board *found = NULL;
    memset((void *)boards, 0, (size_t)request->jobs * sizeof *boards);
    for (int i = 0; i < request->jobs; i++) {
        const struct lane lane = {.start = request->start + (uint64_t)i,
                                  .stride = (uint64_t)request->jobs,
                                  .end = seeds ? request->start + seeds : UINT64_MAX - JOBS_MAX,
                                  .seconds = request->seconds,
                                  .request = request};
        processes[i] = lane_spawn(&lane, &boards[i], boards, request->jobs);
    }
    for (int i = 0; i < request->jobs; i++) {
        lane_wait(processes[i], &boards[i]);
        for (int j = 0; boards[i].failed && j < request->jobs; j++)
            boards[j].stop = true;
        if (boards[i].failed && (!found || boards[i].seed < found->seed))
            found = &boards[i];
    }
    return found;
}

int run_defects(const struct request *request)
{
    struct board *boards = boards_new(request->jobs);
    const char *name, *text;
    int missed = 0, total = 0;
    if (!freopen("/dev/null", "w", stderr)) /* assertions that fail speak there */
        abort();
    for (int i = 0; defect_switch(i, &name, &text); i++) {
        bool wanted =
            !request->defect || strncmp(name, request->defect, strlen(request->defect)) == 0;
        int store = store_of(request, &defects[i]);
        bool built = store == MODEL_ANY || store_name(store);
        if (i != 0 && (!wanted || !built || !can_show(&defects[i])))
            continue;
        double begin = seconds_now();
        const struct board *found = hunt(request, &defects[i], i == 0 ? CLEAN_SEEDS : 0, boards);
        double seconds = seconds_now() - begin;
        uint64_t runs = 0;
        for (int j = 0; j < request->jobs; j++)
            runs += boards[j].runs;
        bool right = (found != NULL) == (i != 0);
        missed += !right;
        total += i != 0;
        printf("%s %d - %-20s %6.2f s %7llu seeds  %s: %s (%llu)\n", right ? "ok" : "not ok", i + 1,
               name, seconds, (unsigned long long)runs, text,
               found ? found->failure : "nothing found",
               found ? (unsigned long long)found->seed : 0);
        fflush(stdout);
    }
    printf("1..%d\n# %d of %d seeded defects found\n", total + 1, total - missed, total);
    return missed > 0 || total == 0;
}

#else

bool defect_switch(int number, const char **name, const char **text)
{
    (void)number, (void)name, (void)text;
    return false;
}

bool defect_switch_by_name(const char *wanted)
{
    (void)wanted;
    return false;
}

int run_defects(const struct request *request)
{
    (void)request;
    fprintf(stderr, "sim: this build has no seeded defects; use sim_defects\n");
    return 64;
}

#endif
