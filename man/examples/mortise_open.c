/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_open(3): a client that gives up on a store that is
 * away, and says so. It prints:
 * open
 */
#include <mortise.h>
#include <stdio.h>

static void show_contact(void *argument, int error, const char *why)
{
    (void)argument;
    fprintf(stderr, "%s: %s\n", error ? "away" : "back", why);
}

int main(void)
{
    mortise_client_options options = {0};
    mortise_client *client;
    int error;

    options.size = sizeof options;
    options.label = "nightly report";
    options.give_up_ms = 30000;
    options.contact = show_contact;
    error = mortise_open(NULL, &options, &client);
    if (error) {
        fprintf(stderr, "%s: %s\n", mortise_error_text(error),
                mortise_error_detail());
        return 1;
    }
    printf("open\n");
    return mortise_close(client) ? 1 : 0;
}
