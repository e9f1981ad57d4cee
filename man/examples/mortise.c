/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise(3): whether header and library are of one version.
 */
#include <mortise.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    int64_t begun = mortise_now_ns();

    printf("compiled with the header of %s\n", MORTISE_VERSION);
    if (strcmp(mortise_version(), MORTISE_VERSION) != 0)
        printf("and runs with %s\n", mortise_version());
    return mortise_now_ns() < begun; /* nobody sets this clock */
}
