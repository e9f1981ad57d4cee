/* SPDX-License-Identifier: Apache-2.0 */
/* See cell.h. */
#include "store/kit/cell.h"

#include "store/kit/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN MRT_LINE_BEGIN "cell "
#define LINE_SIZE 96

bool mrt_cell_parse(const char *bytes, size_t size, struct mrt_cell *cell)
{
    uint64_t there;
    char text[LINE_SIZE];
    const char *line = mrt_line_first(bytes, size, BEGIN, text, sizeof text, &cell->value_offset);
    if (!line || !mrt_line_number(&line, &cell->fence) || !mrt_line_id(&line, &cell->id, false) ||
        !mrt_line_number(&line, &there))
        return false;
    cell->there = there == 1;
    return there <= 1;
}

char *mrt_cell_change(struct mrt_job *job, uint64_t fence, size_t *size)
{
    const struct mrt_command *command = &job->command;
    size_t value_size = command->value ? command->value_size : 0;
    char id[MRT_ID_TEXT_SIZE], *bytes = malloc(LINE_SIZE + value_size);
    if (!bytes)
        return NULL;
    mrt_id_format(command->ticket, id);
    job->event.fence = command->fence > fence ? command->fence : fence;
    *size = (size_t)snprintf(bytes, LINE_SIZE, BEGIN "%" PRIu64 " %s %d\n", job->event.fence, id,
                             command->value != NULL);
    if (value_size > 0)
        memcpy(bytes + *size, command->value, value_size);
    *size += value_size;
    return bytes;
}

bool mrt_cell_show(struct mrt_job *job, const struct mrt_cell *cell, const char *bytes, size_t size)
{
    size_t offset = cell->value_offset, length = cell->there ? size - offset : 0;
    return length <= MORTISE_VALUE_MAX &&
           mrt_job_set_value(job, length > 0 ? bytes + offset : "", length);
}
