/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_get_capabilities(3): refuses a store without fences.
 * It prints:
 * fences, and 0 acquisitions
 */
#include <mortise.h>
#include <stdio.h>

int main(void)
{
    mortise_capabilities can = {0};
    mortise_stats stats = {0};
    mortise_client *client;
    int failed = 1;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    can.size = sizeof can;
    stats.size = sizeof stats;
    if (mortise_get_capabilities(client, &can) == 0 && can.fence)
        failed = mortise_get_stats(client, &stats) != 0;
    if (failed)
        fprintf(stderr, "%s: no fences\n", mortise_url(client));
    else
        printf("fences, and %llu acquisitions\n",
               (unsigned long long)stats.acquisitions);
    mortise_close(client);
    return failed;
}
