/* SPDX-License-Identifier: Apache-2.0 */
/* See stall.h. */
#include "live/stall.h"

#include "live/zookeeper_place.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define NAP_MS 5
#define STALL_MS 150
#define ATTEMPTS 6

static atomic_bool over;
static int64_t longest_ms;

static void *nap(void *unused)
{
    (void)unused;
    for (int64_t last = zk_now_ms(), now; !atomic_load(&over); last = now) {
        zk_rest_ms(NAP_MS);
        now = zk_now_ms();
        longest_ms = now - last > longest_ms ? now - last : longest_ms;
    }
    return NULL;
}

/* `longest_ms`: the longest standstill meanwhile. */
static bool attempt(bool (*is_so)(void))
{
    pthread_t thread;
    longest_ms = 0;
    atomic_store(&over, false);
    if (pthread_create(&thread, NULL, nap, NULL) != 0)
        return is_so();
    bool succeeded = is_so();
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    return succeeded;
}

bool stall_succeeds(bool (*is_so)(void), void (*restore)(void))
{
    for (int left = ATTEMPTS; left > 0; left--) {
        if (attempt(is_so))
            return true;
        printf("# failed; the longest standstill of the machine: %d ms\n", (int)longest_ms);
        if (longest_ms < STALL_MS)
            return false;
        if (restore)
            restore();
    }
    return false;
}
