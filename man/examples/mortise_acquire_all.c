/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_acquire_all(3): two accounts, without a deadlock
 * whatever their order. It prints:
 * both: accounts/2 and accounts/1
 */
#include <mortise.h>
#include <stdio.h>

int main(void)
{
    mortise_client *client;
    mortise_lock *accounts[2];
    mortise_hold holds[2];
    int error;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    error =
        mortise_mutex_new(client, "accounts/2", NULL, &accounts[0]);
    if (!error)
        error = mortise_mutex_new(client, "accounts/1", NULL,
                                  &accounts[1]);
    if (!error)
        error = mortise_acquire_all(accounts, 2, 5000, holds);
    if (!error) {
        printf("both: %s and %s\n", mortise_hold_name(holds[0]),
               mortise_hold_name(holds[1]));
        error = mortise_release_all(holds, 2);
    }
    mortise_close(client);
    return error ? 1 : 0;
}
