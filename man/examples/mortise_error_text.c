/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_error_text(3): one reaction for each kind of error. It
 * prints:
 * EUNREACHABLE: the store cannot be reached
 * try again
 */
#include <mortise.h>
#include <stdio.h>

/* Whether the call may be repeated. */
static int may_succeed_later(int error)
{
    switch (mortise_error_kind_of(error)) {
    case MORTISE_KIND_BUSY:
    case MORTISE_KIND_TIMEOUT:
    case MORTISE_KIND_RETRY:
        return 1;
    default:
        return 0;
    }
}

int main(void)
{
    mortise_client *client;
    int error = mortise_open("sqlite:///no/such/place/locks.db",
                             NULL, &client);

    if (error) {
        printf("%s: %s\n", mortise_error_name(error),
               mortise_error_text(error));
        fprintf(stderr, "%s\n", mortise_error_detail());
        puts(may_succeed_later(error) ? "try again" : "give up");
        return 0;
    }
    return mortise_close(client) ? 1 : 0;
}
