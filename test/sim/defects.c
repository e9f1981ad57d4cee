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
#include "mutants.h"

#define CLEAN_SEEDS 2000

static const struct defect {
    int defect; /* enum mrt_defect, or a mutant's number behind those */
    const char *name, *text;
    const char *suite; /* a mutant's; NULL: where a defect shows is known by its name */
} defects[] = {
#define DEFECT_ROW(name, text) {MRT_DEFECT_##name, #name, text, NULL},
#define MUTANT_ROW(name, suite, test, text) {MRT_MUTANT_##name, #name, text, suite},
    MRT_DEFECT_MAP(DEFECT_ROW) MRT_DEFECT_QUORUM_MAP(DEFECT_ROW) MRT_DEFECT_REDIS_MAP(DEFECT_ROW)
        MRT_DEFECT_REDIS_CLAIM_MAP(DEFECT_ROW) MRT_DEFECT_SIMULATED_MAP(DEFECT_ROW)
            MRT_DEFECT_DETACH_MAP(DEFECT_ROW) MRT_DEFECT_SQL_MAP(DEFECT_ROW)
                MRT_DEFECT_LINGER_MAP(DEFECT_ROW) MRT_DEFECT_MULTI_MAP(DEFECT_ROW)
                    MRT_MUTANT_MAP(MUTANT_ROW)
#undef DEFECT_ROW
#undef MUTANT_ROW
};
#define DEFECT_COUNT ((int)(sizeof defects / sizeof defects[0]))

bool defect_switch(int number, const char **name, const char **text)
{
    if (number < 0 || number >= DEFECT_COUNT)
        return false;
    *name = defects[number].name;
    *text = defects[number].text;
    mrt_defect_on = (enum mrt_defect)defects[number].defect;
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

/* What no world shows, or too seldom: what is only told in the log, or told a little later, or
   keeps a lock no longer than its lease. Tests on a real server do. In a quorum, which proof counts
   (QUORUM_UNRENEWED_COUNTS, QUORUM_OLD_START_COUNTS) shows only at members whose claims end with
   a session: a key of the simulated ones has a lease of its own, from its SET, which is later. */
static bool can_show(const struct defect *defect)
{
    if (defect->suite)
        return begins(defect->suite, "sim");
    static const char *const others[] = {
        "REDIS_EVICTION_UNTOLD",    "REDIS_LOST_RENEWS",       "REDIS_CLAIM_BLIND_EXTEND",
        "REDIS_CLAIM_LOST_KEPT",    "REDIS_CLAIM_LATE_SET",    "REDIS_CLAIM_LEAVING_EXTENDED",
        "REDIS_CLAIM_NO_READ_BACK", "REDIS_CLAIM_PHANTOM",     "REDIS_CLAIM_UNPROVEN",
        "QUORUM_UNRENEWED_COUNTS",  "QUORUM_OLD_START_COUNTS", "QUORUM_ROUND_AGAIN",
        "QUORUM_RENEWED_BY_OTHERS", "QUORUM_EQUAL_PAUSES",     "QUORUM_DEAF"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(defect->name, others[i]) == 0)
            return false;
    return true;
}

/* The store that a mutant's "sim [STORE] [mixed | lone]" names. */
static int store_of_suite(const char *suite)
{
    char store[32] = "any";
    int model;
    sscanf(suite, "sim %31s", store);
    return store_by_name(store, &model) ? model : MODEL_ANY;
}

/* Where a defect can show: its own store, or the core under any. */
static int store_of(const struct request *request, const struct defect *defect)
{
    const char *name = defect->name;
    if (request->model != MODEL_ANY)
        return request->model;
    if (defect->suite)
        return store_of_suite(defect->suite);
    bool by_late_words = strcmp(name, "OLD_VIEW_BELIEVED") == 0;
    return begins(name, "ZK_")                       ? MODEL_ZK_LIBRARY
           : begins(name, "REDIS_") || by_late_words ? MODEL_REDIS
           : begins(name, "QUORUM_")                 ? MODEL_REDLOCK
           : begins(name, "SQL_")                    ? MODEL_POSTGRES
                                                     : MODEL_ANY;
}

/* What shows only where one session has locks in several queues, or where locks linger; or where
   nothing but one fault hides it. */
static enum world_kind kind_for(const struct request *request, const struct defect *defect)
{
    const char *name = defect->name;
    if (request->kind != WORLD_FAULTY)
        return request->kind;
    if (defect->suite)
        return strstr(defect->suite, " mixed")  ? WORLD_MIXED
               : strstr(defect->suite, " lone") ? WORLD_LONE
                                                : WORLD_FAULTY;
    bool mixed =
        strcmp(name, "SQL_PG_GONE_COUNTS") == 0 || strcmp(name, "SEMAPHORE_MUTEX_NESTS") == 0 ||
        strcmp(name, "OLD_VIEW_BELIEVED") == 0 || begins(name, "MULTI_") || strstr(name, "LINGER");
    return mixed ? WORLD_MIXED : WORLD_FAULTY;
}

/* Where its seeds begin, if it is shown by so few that the others would take too long. */
static uint64_t first_seed(const struct request *request, const char *name)
{
    static const struct {
        const char *name;
        uint64_t after;
    } late[] = {{"SQL_PG_GONE_COUNTS", 360}, {"OLD_VIEW_BELIEVED", 400}};
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++)
        if (strcmp(name, late[i].name) == 0)
            return request->start + late[i].after;
    return request->start;
}

/* A late word is told of a ticket that was taken out because too few replicas had it. */
static void add_sets(struct request *request, const char *name)
{
    if (strcmp(name, "OLD_VIEW_BELIEVED") != 0 || request->set_count + 2 > SETS_MAX)
        return;
    request->sets[request->set_count++] = "redis_replicas=1";
    request->sets[request->set_count++] = "redis_copyless=1000";
}

/* Runs all lanes of one defect; the failure found, or NULL. */
static const struct board *hunt(const struct request *wanted, const struct defect *defect,
                                uint64_t seeds, struct board *boards)
{
    const char *name = defect->name;
    int processes[JOBS_MAX];
    struct request all = *wanted, *request = &all;
    all.model = store_of(wanted, defect);
    all.kind = kind_for(wanted, defect);
    add_sets(&all, name);
    const struct board *found = NULL;
    memset((void *)boards, 0, (size_t)request->jobs * sizeof *boards);
    for (int i = 0; i < request->jobs; i++) {
        const struct lane lane = {.start = first_seed(request, name) + (uint64_t)i,
                                  .stride = (uint64_t)request->jobs,
                                  .end = seeds ? first_seed(request, name) + seeds
                                               : UINT64_MAX - JOBS_MAX,
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
