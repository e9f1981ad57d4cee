/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell as bytes that a server keeps: "mortise1 cell FENCE ID 0|1\n" and the value. A deleted cell
 * (0) keeps its line, with the largest fence and the identity of the deletion.
 */
#ifndef MRT_STORE_KIT_CELL_H
#define MRT_STORE_KIT_CELL_H

#include "store/kit/job.h"

struct mrt_cell {
    uint64_t fence;   /* the largest */
    struct mrt_id id; /* of the CELL_SET that has written it */
    bool there;       /* it has not been deleted */
    size_t value_offset;
};

/* False: it is none of ours. */
bool mrt_cell_parse(const char *bytes, size_t size, struct mrt_cell *cell);
/* The bytes that a CELL_SET makes of a cell whose largest fence was `fence`, which goes into the
   job's event. To be freed; NULL: no memory. */
char *mrt_cell_change(struct mrt_job *job, uint64_t fence, size_t *size);
/* The job's event gets the value. False: no memory, or it is too long. */
bool mrt_cell_show(struct mrt_job *job, const struct mrt_cell *cell, const char *bytes,
                   size_t size);

#endif
