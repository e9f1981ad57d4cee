/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_read_write_new(3): a writer that goes on as a reader.
 * It prints:
 * writes alone
 * reads beside other readers
 */
#include <mortise.h>
#include <stdio.h>

int main(void)
{
    mortise_client *client;
    mortise_lock *read, *write;
    mortise_hold hold;
    int error;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    error = mortise_read_write_new(client, "catalogue", NULL, &read,
                                   &write);
    if (!error)
        error = mortise_acquire_for(write, 5000, &hold);
    if (!error) {
        puts("writes alone");
        error = mortise_downgrade(hold);
    }
    if (!error) {
        puts("reads beside other readers");
        error = mortise_release(hold);
    }
    if (error)
        fprintf(stderr, "catalogue: %s\n",
                mortise_error_text(error));
    mortise_close(client);
    return error ? 1 : 0;
}
