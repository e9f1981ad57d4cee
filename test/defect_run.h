/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutants as the measure of a test program: each that names this suite is switched on in a child
 * process of its own, and a test must fail there (test/mutants/README.md). The output is TAP.
 */
#ifndef TEST_DEFECT_RUN_H
#define TEST_DEFECT_RUN_H

/* `run` runs the tests. How many mutants were missed; there has to be one. */
int defect_run(const char *suite, int (*run)(void));

#endif
