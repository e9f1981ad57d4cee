/*
 * How good is the simulator? Each seeded defect is switched on in turn, and the time is
 * taken until a seed fails. One that is not found in time fails the measurement, and so
 * does a failure without a defect. The output is in the form of TAP.
 */
#include "core/defect.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>

#ifdef MRT_DEFECTS

#define CLEAN_SEEDS 2000

static const struct {
    const char *name, *text;
} defects[] = {
#define DEFECT_ROW(name, text) {#name, text},
    MRT_DEFECT_MAP(DEFECT_ROW)
#undef DEFECT_ROW
};

bool defect_switch(int number, const char **name, const char **text)
{
    if (number < 0 || number >= (int)MRT_DEFECT_COUNT)
        return false;
    *name = defects[number].name;
    *text = defects[number].text;
    mrt_defect_on = (enum mrt_defect)number;
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

/* Not in a build without the store that it is in. */
static bool can_show(const char *name)
{
#ifdef MORTISE_ZOOKEEPER
    (void)name;
    return true;
#else
    return strncmp(name, "ZK_", 3) != 0;
#endif
}

/* Where a defect can show: its own store, or the core under any. */
static int store_of(const struct request *request, const char *name)
{
    if (request->model != MODEL_ANY)
        return request->model;
    return strncmp(name, "ZK_", 3) == 0 ? MODEL_ZK_LIBRARY : MODEL_ANY;
}

/* Runs all lanes of one defect; the failure found, or NULL. */
static const struct board *hunt(const struct request *wanted, const char *name, uint64_t seeds,
                                struct board *boards)
{
    int processes[JOBS_MAX];
    struct request all = *wanted, *request = &all;
    all.model = store_of(wanted, name);
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
    int missed = 0;
    if (!freopen("/dev/null", "w", stderr)) /* assertions that fail speak there */
        abort();
    printf("1..%d\n", (int)MRT_DEFECT_COUNT);
    for (int i = 0; defect_switch(i, &name, &text); i++) {
        bool wanted =
            !request->defect || strncmp(name, request->defect, strlen(request->defect)) == 0;
        if (i != 0 && (!wanted || !can_show(name)))
            continue;
        double begin = seconds_now();
        const struct board *found = hunt(request, name, i == 0 ? CLEAN_SEEDS : 0, boards);
        double seconds = seconds_now() - begin;
        uint64_t runs = 0;
        for (int j = 0; j < request->jobs; j++)
            runs += boards[j].runs;
        bool right = (found != NULL) == (i != 0);
        missed += !right;
        printf("%s %d - %-20s %6.2f s %7llu seeds  %s: %s\n", right ? "ok" : "not ok", i + 1, name,
               seconds, (unsigned long long)runs, text, found ? found->failure : "nothing found");
        fflush(stdout);
    }
    printf("# %d of %d seeded defects found\n", (int)MRT_DEFECT_COUNT - 1 - missed,
           (int)MRT_DEFECT_COUNT - 1);
    return missed ? 1 : 0;
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
