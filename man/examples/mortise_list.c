/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_list(3): shows one queue, and ends its holder by the
 * fence that was shown. It prints:
 * deploy: mutex holds
 * broken: OK
 */
#include <mortise.h>
#include <stdio.h>

static int show(void *argument, const mortise_entry *entry)
{
    printf("%s: %s %s\n", entry->name, entry->kind,
           entry->place == 0 ? "holds" : "waits");
    if (entry->place == 0)
        *(uint64_t *)argument = entry->fence;
    return 0;
}

int main(void)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    uint64_t fence = 0;
    int error;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    error = mortise_mutex_new(client, "deploy", NULL, &lock);
    if (!error)
        error = mortise_acquire_for(lock, 5000, &hold);
    if (!error)
        error = mortise_list(client, "deploy", show, &fence);
    if (!error)
        error = mortise_break(client, "deploy", fence);
    printf("broken: %s\n", mortise_error_name(error));
    mortise_close(client);
    return error ? 1 : 0;
}
