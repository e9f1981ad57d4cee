/* SPDX-License-Identifier: Apache-2.0 */
/* One handler, installed at the first client; it only counts, which is safe in a child. */
#include "io/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint64_t generation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_fetch_add(&generation, 1);
}

static void install(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void mrt_fork_watch(void)
{
    pthread_once(&once, install);
}

uint64_t mrt_fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
