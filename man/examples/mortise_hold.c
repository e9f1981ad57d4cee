/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_hold(3): acts only while the hold is worth enough
 * time. It prints:
 * begins
 * held after the release: 0
 */
#include <mortise.h>
#include <stdio.h>

/* Whether a step of at most `need_ms` may begin now. */
static int may_begin(mortise_hold hold, int64_t need_ms)
{
    return mortise_hold_state(hold) == MORTISE_HELD &&
           mortise_hold_remaining_ms(hold) >= need_ms;
}

int main(void)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold = {NULL, 0}; /* none */
    char node[MORTISE_NODE_SIZE];
    int ended = 1;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    if (mortise_mutex_new(client, "stock", NULL, &lock) == 0 &&
        mortise_acquire_for(lock, 5000, &hold) == 0) {
        if (may_begin(hold, 500))
            puts("begins");
        if (mortise_hold_node(hold, node, sizeof node) == 0)
            fprintf(stderr, "%s, depth %u\n", node,
                    mortise_hold_count(hold));
        ended = mortise_verify(hold, 2000); /* asks the store */
        mortise_release(hold);
    }
    printf("held after the release: %d\n", mortise_is_held(hold));
    mortise_close(client);
    return ended ? 1 : 0;
}
