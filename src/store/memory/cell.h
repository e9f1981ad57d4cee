/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory store's cells, one command at a time: the port's clause (m) in its shortest form.
 *
 * Invariant: a cell is never forgotten, not even when it is deleted; so its version and the
 * largest fence it has seen never fall.
 */
#ifndef MRT_STORE_MEMORY_CELL_H
#define MRT_STORE_MEMORY_CELL_H

#include "core/store.h"

struct mrt_memory_cell;

/* Of a server, NULL to begin with. */
struct mrt_memory_cells {
    struct mrt_memory_cell *by_name;
};

/* Fills in the answer to a CELL_GET or CELL_SET; its value is the cell's, until the next call. */
void mrt_memory_cell_apply(struct mrt_memory_cells *cells, const struct mrt_command *command,
                           struct mrt_event *answer);
void mrt_memory_cells_free(struct mrt_memory_cells *cells);

#endif
