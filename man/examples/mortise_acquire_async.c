/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_acquire_async(3): a callback in the place of a thread
 * that waits. It prints:
 * held, and released: 0
 */
#include <mortise.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2]; /* a pipe that wakes main */

static void granted(void *argument, int error, mortise_hold hold)
{
    mortise_operation **operation = argument;

    if (error)
        printf("%s %s\n", mortise_error_text(error),
               mortise_operation_detail(*operation));
    else
        printf("held, and released: %d\n", mortise_release(hold));
    if (write(ends[1], "", 1) != 1)
        puts("nobody waits");
}

int main(void)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_operation *operation = NULL;
    char byte;
    int error;

    if (pipe(ends) || mortise_open(NULL, NULL, &client))
        return 1;
    error = mortise_mutex_new(client, "mail", NULL, &lock);
    if (!error)
        error = mortise_acquire_async(
            lock, mortise_now_ns() + 5000000000, granted,
            &operation, &operation);
    if (!error && read(ends[0], &byte, 1) != 1)
        error = 1;
    mortise_close(client);
    return error ? 1 : 0;
}
