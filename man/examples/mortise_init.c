/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_init(3): prints what an administrator has to run.
 */
#include <mortise.h>
#include <stdio.h>

static void print(void *argument, const char *text)
{
    fputs(text, argument);
}

int main(void)
{
    /* Contacts no server, because there is a function to print. */
    int error = mortise_init(
        "postgresql://locks@db.example.org/app", print, stdout);

    if (error)
        fprintf(stderr, "%s: %s\n", mortise_error_text(error),
                mortise_error_detail());
    return error ? 1 : 0;
}
