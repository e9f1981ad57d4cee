/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_on_lost(3): a loss that a thread hears of, here the
 * end of max_hold_ms. It prints:
 * tape: lost, stop the work
 * release: ELOST
 */
#include <mortise.h>
#include <poll.h>
#include <stdio.h>

static void report(void *argument, mortise_hold hold,
                   mortise_state state)
{
    (void)hold;
    if (state == MORTISE_LOST)
        printf("%s: lost, stop the work\n", (const char *)argument);
}

int main(void)
{
    static char name[] = "tape";
    mortise_lock_options options = {0};
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;

    options.size = sizeof options;
    options.max_hold_ms = 100;
    if (mortise_open(NULL, NULL, &client))
        return 1;
    if (mortise_mutex_new(client, name, &options, &lock) == 0 &&
        mortise_acquire_for(lock, 5000, &hold) == 0) {
        struct pollfd lost = {mortise_lost_fd(hold), POLLIN, 0};

        mortise_on_lost(hold, report, name);
        poll(&lost, 1, -1); /* the work, until it is lost */
        printf("release: %s\n",
               mortise_error_name(mortise_release(hold)));
    }
    return mortise_close(client) ? 1
                                 : 0; /* waits for the callback */
}
