/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_acquire(3): waits for five seconds, and hands the
 * fence to what it guards. It prints:
 * held, with a fence
 */
#include <mortise.h>
#include <stdio.h>

int main(void)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    int error = mortise_open(NULL, NULL, &client);

    if (!error)
        error = mortise_mutex_new(client, "report", NULL, &lock);
    if (!error)
        error = mortise_acquire_for(lock, 5000, &hold);
    if (!error) {
        uint64_t fence = mortise_hold_fence(hold);

        puts(fence > 0 ? "held, with a fence" : "held");
        error = mortise_release(hold);
    }
    if (error)
        fprintf(stderr, "report: %s (%s)\n",
                mortise_error_text(error), mortise_error_detail());
    mortise_close(client); /* NULL is allowed */
    return error ? 1 : 0;
}
