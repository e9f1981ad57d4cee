/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a run, for the process that started it: one line of JSON each, written by one call, so
 * that lines of several runs on one descriptor do not mix. A reader that is gone or does not read
 * is no reason to stop: the line is lost, or waited for.
 */
#include "cli/frame/json.h"
#include "cli/run/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
}

void mrt_run_event(const struct mrt_run *run, const char *event, const struct mrt_run_lock *lock,
                   const char *more, ...)
{
    char *line = NULL;
    size_t length = 0;
    va_list arguments;
    if (run->status_fd < 0)
        return;
    FILE *out = open_memstream(&line, &length);
    if (!out)
        return;
    fprintf(out, "{\"event\": \"%s\", \"time\": ", event);
    mrt_json_time(out, wall_ms());
    if (lock) {
        fprintf(out, ", \"name\": ");
        mrt_json_string(out, lock->name);
    }
    va_start(arguments, more);
    vfprintf(out, more, arguments);
    va_end(arguments);
    fprintf(out, "}\n");
    if (fclose(out) == 0) {
        ssize_t written = write(run->status_fd, line, length);
        (void)written;
    }
    free(line);
}
