/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 128-bit identities of sessions and tickets. A session's is drawn from the
 * system's entropy; its tickets' are that plus a count, so they are as hard to
 * guess and never repeat.
 */
#ifndef MRT_BASE_ID_H
#define MRT_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

struct mrt_id {
    uint64_t high, low;
};

static inline bool mrt_id_equal(struct mrt_id a, struct mrt_id b)
{
    return a.high == b.high && a.low == b.low;
}

static inline bool mrt_id_none(struct mrt_id id)
{
    return id.high == 0 && id.low == 0;
}

#define MRT_ID_TEXT_SIZE 33
/* 32 lower-case hexadecimal digits and a NUL. */
void mrt_id_format(struct mrt_id id, char text[MRT_ID_TEXT_SIZE]);
/* True if `text` is exactly such a text. */
bool mrt_id_parse(const char *text, struct mrt_id *id);

/* Fills from getrandom; false if the system cannot give entropy. */
bool mrt_id_random(struct mrt_id *id);

#endif
