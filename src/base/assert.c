/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process whose own logic is broken: one line, then abort. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void mrt_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "mortise: %s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
