/* SPDX-License-Identifier: Apache-2.0 */
/* See cell.h. */
#include "store/memory/cell.h"

#include <stdlib.h>
#include <string.h>

/* Memory that runs out makes an insertion fail, not the process. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element) = NULL)
#include <uthash.h>

struct mrt_memory_cell {
    uint64_t version, fence;
    struct mrt_id writer;
    void *value; /* NULL: deleted, or not there yet */
    size_t size;
    UT_hash_handle hh;
    char name[];
};

static struct mrt_memory_cell *find(struct mrt_memory_cells *cells, const char *name)
{
    struct mrt_memory_cell *cell = NULL;
    HASH_FIND_STR(cells->by_name, name, cell);
    return cell;
}

static struct mrt_memory_cell *make(struct mrt_memory_cells *cells, const char *name)
{
    size_t size = strlen(name) + 1;
    struct mrt_memory_cell *cell = calloc(1, sizeof *cell + size), *added = cell;
    if (!cell)
        return NULL;
    memcpy(cell->name, name, size);
    HASH_ADD_STR(cells->by_name, name, added);
    if (!added)
        free(cell);
    return added;
}

static int write_value(struct mrt_memory_cell *cell, const struct mrt_command *command)
{
    void *value = command->value ? malloc(command->value_size + 1) : NULL;
    if (command->value && !value)
        return MORTISE_ENOMEM;
    if (value && command->value_size > 0)
        memcpy(value, command->value, command->value_size);
    free(cell->value);
    cell->value = value;
    cell->size = command->value_size;
    cell->version++;
    cell->writer = command->ticket;
    if (cell->fence < command->fence)
        cell->fence = command->fence;
    return MORTISE_OK;
}

static int set(struct mrt_memory_cell *cell, const struct mrt_command *command)
{
    uint64_t version = cell->value ? cell->version : 0;
    if (mrt_id_equal(cell->writer, command->ticket))
        return MORTISE_OK;
    if (command->fence > 0 && command->fence < cell->fence)
        return MORTISE_ESTALE;
    if (command->version != version)
        return MORTISE_ECONFLICT;
    return write_value(cell, command);
}

void mrt_memory_cell_apply(struct mrt_memory_cells *cells, const struct mrt_command *command,
                           struct mrt_event *answer)
{
    struct mrt_memory_cell *cell = find(cells, command->queue);
    int error = MORTISE_OK;
    if (!cell && command->type == MRT_CELL_SET)
        cell = make(cells, command->queue);
    if (command->type == MRT_CELL_SET)
        error = cell ? set(cell, command) : MORTISE_ENOMEM;
    answer->type = error == MORTISE_OK ? MRT_CELL : MRT_FAILED;
    answer->error = error;
    if (!cell)
        return;
    answer->version = cell->value ? cell->version : 0;
    answer->fence = cell->fence;
    answer->value = cell->value;
    answer->value_size = cell->value ? cell->size : 0;
}

void mrt_memory_cells_free(struct mrt_memory_cells *cells)
{
    struct mrt_memory_cell *cell, *next;
    HASH_ITER (hh, cells->by_name, cell, next) {
        HASH_DEL(cells->by_name, cell);
        free(cell->value);
        free(cell);
    }
}
