/*
 * Seeded defects as the measure of a test program: each is switched on in a child process of its
 * own, and a test must fail there. The output is TAP.
 */
#ifndef TEST_DEFECT_RUN_H
#define TEST_DEFECT_RUN_H

#include "core/defect.h"

struct defect_row {
    int defect; /* enum mrt_defect */
    const char *name, *text;
};

/* `pattern` makes a defect's name into a pattern of test names; `run` runs the tests. The mutants
   of this suite follow (test/mutants/README.md). How many defects were missed. */
int defect_run(const char *suite, const struct defect_row *rows, int total,
               void (*pattern)(const char *defect, char pattern[40]), int (*run)(void));

#endif
