/*
 * A nested acquire and release by the owner of a hold, which asks nobody.
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

int main(int argc, char **argv)
{
    mortise_client *client;
    double ns = 0;
    int error = mortise_open(argc > 1 ? argv[1] : NULL, NULL, &client);
    if (!error) {
        error = measure(client, &ns);
        mortise_close(client);
    }
    if (error) {
        fprintf(stderr, "bench_reentrant: %s %s\n", mortise_error_text(error),
                mortise_error_detail());
        return 1;
    }
    printf("{\"nested_ns\": %.1f}\n", ns);
    return 0;
}
