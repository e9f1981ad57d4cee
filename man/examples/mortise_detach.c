/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_detach(3): one client leaves the lock taken, and
 * another takes it over. It prints:
 * try: EBUSY
 * adopted and released: OK
 */
#include <mortise.h>
#include <stdio.h>

/* A client with a handle of the lock. */
static int open_lock(mortise_client **client, mortise_lock **lock)
{
    int error = mortise_open(NULL, NULL, client);

    return error ? error
                 : mortise_mutex_new(*client, "move", NULL, lock);
}

int main(void)
{
    mortise_client *first = NULL, *second = NULL;
    mortise_lock *lock;
    mortise_hold hold;
    char token[MORTISE_TOKEN_SIZE];
    int error = open_lock(&first, &lock);

    if (!error)
        error = mortise_acquire_for(lock, 5000, &hold);
    if (!error)
        error =
            mortise_detach(hold, token); /* keep it like a key */
    mortise_close(first);
    if (!error)
        error = open_lock(&second, &lock);
    if (!error) {
        printf("try: %s\n", mortise_error_name(
                                mortise_try_acquire(lock, &hold)));
        error = mortise_adopt(lock, token, &hold);
    }
    if (!error)
        error = mortise_release(hold);
    printf("adopted and released: %s\n", mortise_error_name(error));
    mortise_close(second);
    return error ? 1 : 0;
}
