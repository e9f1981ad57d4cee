/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_election(3): leads, says where it can be reached, and
 * resigns. It prints:
 * elected
 * deposed
 */
#include <mortise.h>
#include <stdio.h>

static void elected(void *argument, uint64_t fence)
{
    (void)fence; /* pass it along with the leader's writes */
    fputs("elected\n", argument);
}

static void deposed(void *argument, uint64_t fence)
{
    (void)fence;
    fputs("deposed\n", argument);
}

int main(void)
{
    mortise_election_options options = {0};
    mortise_election *election;
    mortise_leader leader;
    mortise_client *client;
    int error;

    options.size = sizeof options;
    options.value = "10.0.0.7:8080";
    options.value_size = 13;
    options.elected = elected;
    options.deposed = deposed;
    options.argument = stdout;
    if (mortise_open(NULL, NULL, &client))
        return 1;
    error = mortise_election_new(client, "primary", &options,
                                 &election);
    if (!error) {
        error = mortise_election_campaign(election, 5000);
        if (!error &&
            mortise_election_leader(election, &leader) == 0)
            fprintf(stderr, "%.*s leads\n", (int)leader.size,
                    (char *)leader.value);
        mortise_election_free(election); /* resigns, and waits */
    }
    mortise_close(client);
    return error ? 1 : 0;
}
