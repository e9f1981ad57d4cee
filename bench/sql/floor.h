/* SPDX-License-Identifier: Apache-2.0 */
/* Each product's file gives these to floor.c: statements on one connection. Any failure ends the
   program. */
#ifndef BENCH_SQL_FLOOR_H
#define BENCH_SQL_FLOOR_H

/* The statements in the place of an acquire and a release; the first is at [0]. */
struct floor_mode {
    const char *name;
    const char *setup; /* NULL: none is needed */
    const char *step[2];
};

/* Ends with one without a name. */
extern const struct floor_mode floor_modes[];
void floor_open(const char *url, const struct floor_mode *mode);
void floor_step(int which);

#endif
