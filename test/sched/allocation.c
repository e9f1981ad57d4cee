/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freed memory is kept until the end of a run, filled with a pattern: whoever reads it finds no
 * address there, and whoever has written into it is found then. The address sanitizer does that
 * better, and is left to it.
 */
#include "system.h"

#include <malloc.h>
#include <string.h>

#define KEPT_MAX 8192
#define PATTERN 0xa5

static struct {
    unsigned char *block;
    size_t size;
} kept[KEPT_MAX];
static size_t count;

void __real_free(void *block);
void __wrap_free(void *block);

void __wrap_free(void *block)
{
    if (!block || !sched_runs() || count == KEPT_MAX || SCHED_SANITIZED) {
        __real_free(block);
        return;
    }
    kept[count].block = block;
    kept[count].size = malloc_usable_size(block);
    memset(block, PATTERN, kept[count++].size);
}

void system_free_kept(void)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < kept[i].size; at++)
            if (kept[i].block[at] != PATTERN)
                sched_fail("memory was written %zu bytes behind its begin after it was freed", at);
        __real_free(kept[i].block);
    }
    count = 0;
}
