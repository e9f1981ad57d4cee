/* SPDX-License-Identifier: Apache-2.0 */
/* How soon mutants are found; see runner.h. Only sched_defects has any. */
#include "runner.h"

#include <stdio.h>
#include <string.h>

#ifdef MRT_DEFECTS
#include "mutants.h"

static const struct row {
    int mutant;
    const char *name, *suite, *text;
} rows[] = {
#define MUTANT_ROW(name, suite, test, text) {MRT_MUTANT_##name, #name, suite, text},
    MRT_MUTANT_MAP(MUTANT_ROW)
#undef MUTANT_ROW
};

bool switch_defect(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        mrt_mutant_on = rows[i].mutant;
        return true;
    }
    return false;
}

static bool is_found(const struct request *request, const struct row *row, int number)
{
    struct outcome outcome;
    mrt_mutant_on = row->mutant;
    run_seeds(request, &outcome);
    printf("%s %d - %s: %s\n", outcome.failed ? "ok" : "not ok", number, row->name, row->text);
    if (outcome.failed)
        printf("#   in %llu seeds (%llu): %s\n", (unsigned long long)outcome.schedules + 1,
               (unsigned long long)outcome.seed,
               outcome.fault[0] ? outcome.fault : "it breaks off");
    fflush(stdout);
    return outcome.failed;
}

int run_defects(const struct request *request)
{
    struct request each = *request;
    int number = 0, missed = 0;
    each.quiet = true;
    each.seeds = request->seeds > 0 ? request->seeds : UINT64_MAX;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].suite, "sched") == 0 &&
            (!request->defect || strcmp(request->defect, rows[i].name) == 0))
            missed += !is_found(&each, &rows[i], ++number);
    printf("1..%d\n", number);
    return missed + (number == 0);
}

#else

bool switch_defect(const char *name)
{
    (void)name;
    return false;
}

int run_defects(const struct request *request)
{
    (void)request;
    fprintf(stderr, "sched: this build has no defects\n");
    return 1;
}

#endif
