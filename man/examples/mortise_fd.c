/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_fd(3): a client without a thread, in a loop of
 * poll(2). It prints:
 * granted: OK
 */
#include <mortise.h>
#include <poll.h>
#include <stdio.h>

static void granted(void *argument, int error, mortise_hold hold)
{
    printf("granted: %s\n", mortise_error_name(error));
    if (!error)
        mortise_release(hold);
    *(int *)argument = 1;
}

int main(void)
{
    mortise_client_options options = {0};
    mortise_client *client;
    mortise_lock *lock;
    int done = 0, error;

    options.size = sizeof options;
    options.flags = MORTISE_FOREIGN_LOOP;
    if (mortise_open(NULL, &options, &client))
        return 1;
    error = mortise_mutex_new(client, "queue", NULL, &lock);
    if (!error)
        error = mortise_acquire_async(lock, INT64_MAX, granted,
                                      &done, NULL);
    while (!error && !done) {
        struct pollfd event = {mortise_fd(client), POLLIN, 0};

        poll(&event, 1, mortise_next_timeout_ms(client));
        error = mortise_process(client);
    }
    mortise_close(client);
    return error ? 1 : 0;
}
