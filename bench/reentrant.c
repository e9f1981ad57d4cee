/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquires and releases that ask nobody: nested ones by the owner of a hold, and those of a lock
 * that lingers because nobody else wants it.
 *
 *   bench_reentrant URL
 */
#include "clock.h"
#include "mortise.h"

#include <stdio.h>

#define TIMES 2000000

static int measure(mortise_client *client, double *ns)
{
    mortise_lock *lock;
    mortise_hold outer, inner;
    int error = mortise_mutex_new(client, "bench", NULL, &lock);
    if (!error)
        error = mortise_acquire(lock, &outer);
    int64_t begin = now_ns();
    for (int i = 0; i < TIMES && !error; i++) {
        error = mortise_acquire(lock, &inner);
        if (!error)
            error = mortise_release(inner);
    }
    *ns = (double)(now_ns() - begin) / TIMES;
    return error ? error : mortise_release(outer);
}

/* A few commands are left: a ticket has only so many fences, and the session shows that it lives.
 */
static int measure_lingering(mortise_client *client, double *ns, double *commands)
{
    const mortise_lock_options options = {.size = sizeof options, .linger_ms = 60000};
    mortise_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    mortise_lock *lock;
    mortise_hold hold;
    int error = mortise_mutex_new(client, "bench/linger", &options, &lock);
    if (!error)
        error = mortise_acquire(lock, &hold);
    if (!error)
        error = mortise_release(hold);
    mortise_get_stats(client, &before);
    int64_t begin = now_ns();
    for (int i = 0; i < TIMES && !error; i++) {
        error = mortise_acquire(lock, &hold);
        if (!error)
            error = mortise_release(hold);
    }
    *ns = (double)(now_ns() - begin) / TIMES;
    mortise_get_stats(client, &after);
    *commands = (double)(after.commands - before.commands) / TIMES;
    return error;
}

int main(int argc, char **argv)
{
    mortise_client *client;
    double ns = 0, lingering_ns = 0, commands = 0;
    int error = mortise_open(argc > 1 ? argv[1] : NULL, NULL, &client);
    if (!error) {
        error = measure(client, &ns);
        if (!error)
            error = measure_lingering(client, &lingering_ns, &commands);
        mortise_close(client);
    }
    if (error) {
        fprintf(stderr, "bench_reentrant: %s %s\n", mortise_error_text(error),
                mortise_error_detail());
        return 1;
    }
    printf("{\"times\": %d, \"nested_ns\": %.1f, \"lingering_ns\": %.1f, "
           "\"lingering_commands\": %.6f}\n",
           TIMES, ns, lingering_ns, commands);
    return 0;
}
