/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_semaphore_new(3): two at a time, then three. It
 * prints:
 * third of two: EBUSY
 * third of 3: OK
 */
#include <mortise.h>
#include <stdio.h>

int main(void)
{
    mortise_client *client;
    mortise_lock *slots;
    mortise_hold one, two, three;
    uint32_t permits = 0;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    if (mortise_semaphore_new(client, "builds", 3, NULL, &slots) ==
            0 &&
        mortise_semaphore_set_permits(slots, 2, 5000) == 0 &&
        mortise_acquire_for(slots, 5000, &one) == 0 &&
        mortise_acquire_for(slots, 5000, &two) == 0) {
        printf(
            "third of two: %s\n",
            mortise_error_name(mortise_try_acquire(slots, &three)));
        mortise_semaphore_set_permits(slots, 3, 5000);
        mortise_semaphore_get_permits(slots, &permits);
        printf("third of %u: %s\n", permits,
               mortise_error_name(
                   mortise_acquire_for(slots, 5000, &three)));
    }
    return mortise_close(client) ? 1 : 0; /* releases all */
}
