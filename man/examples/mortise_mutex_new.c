/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_mutex_new(3): a mutex that nests, and one that does
 * not. It prints:
 * accounts/17: OK
 * accounts/18: EDEADLOCK
 */
#include <mortise.h>
#include <stdio.h>

/* Acquires a lock twice: the error of the second time. */
static int acquire_twice(mortise_lock *lock)
{
    mortise_hold first, second;
    int error = mortise_acquire_for(lock, 5000, &first);

    if (error)
        return error;
    error = mortise_try_acquire(lock, &second);
    if (!error)
        mortise_release(second);
    mortise_release(first);
    return error;
}

int main(void)
{
    mortise_lock_options options = {0};
    mortise_client *client;
    mortise_lock *nests, *refuses;

    options.size = sizeof options;
    options.max_hold_ms = 60000; /* then it is lost, and released */
    if (mortise_open(NULL, NULL, &client))
        return 1;
    if (mortise_mutex_new(client, "accounts/17", &options,
                          &nests) == 0 &&
        mortise_semaphore_mutex_new(client, "accounts/18", NULL,
                                    &refuses) == 0) {
        printf("%s: %s\n", mortise_lock_name(nests),
               mortise_error_name(acquire_twice(nests)));
        printf("%s: %s\n", mortise_lock_name(refuses),
               mortise_error_name(acquire_twice(refuses)));
    }
    return mortise_close(client) ? 1 : 0; /* frees the locks too */
}
