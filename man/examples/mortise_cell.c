/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of mortise_cell(3): a counter, and a write that comes too late.
 * It prints:
 * 1
 * ECONFLICT
 */
#include <mortise.h>
#include <stdio.h>

static int add_one(void *argument, mortise_cell *cell)
{
    (void)argument;
    if (cell->version == 0)
        cell->value[0] = 0;
    cell->value[0]++;
    cell->size = 1;
    return 0;
}

int main(void)
{
    mortise_client *client;
    mortise_cell cell;
    int error;

    if (mortise_open(NULL, NULL, &client))
        return 1;
    error = mortise_cell_update(client, "counter", add_one, NULL, 0,
                                -1);
    if (!error)
        error = mortise_cell_get(client, "counter", &cell);
    if (!error) {
        uint64_t old = cell.version;

        printf("%d\n", cell.value[0]);
        error = mortise_cell_update(client, "counter", add_one,
                                    NULL, 0, -1);
        printf("%s\n",
               mortise_error_name(mortise_cell_cas(
                   client, "counter", old, "x", 1, 0, NULL)));
    }
    mortise_close(client);
    return error ? 1 : 0;
}
