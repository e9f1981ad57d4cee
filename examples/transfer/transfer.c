/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves an amount from one account to another, under the locks of both. An account is a file with a
 * number. mortise_acquire_all takes both locks or none, in an order of its own, so a transfer from
 * a to b and one from b to a never wait for each other. A transfer of other accounts does not wait.
 *
 *   ./transfer FROM TO AMOUNT [TIMES]
 *
 * A lock is no transaction: a crash between the two writes loses the amount. Where accounts are
 * rows of one database, use its transactions.
 */
#include <mortise.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_balance(const char *path, long *balance)
{
    FILE *file = fopen(path, "r");
    int found = file && fscanf(file, "%ld", balance) == 1;
    if (file)
        fclose(file);
    return found ? 0 : -1;
}

static int write_balance(const char *path, long balance)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    fprintf(file, "%ld\n", balance);
    return fclose(file);
}

/* Both locks are held. 0; 1: there is not enough; -1: a file cannot be read or written. */
static int move(const char *from, const char *to, long amount)
{
    long source, target;
    if (read_balance(from, &source) || read_balance(to, &target))
        return -1;
    if (source < amount)
        return 1;
    return write_balance(from, source - amount) || write_balance(to, target + amount) ? -1 : 0;
}

static int complain(int error)
{
    fprintf(stderr, "transfer: %s: %s\n", mortise_error_text(error), mortise_error_detail());
    return -1;
}

static int transfer(mortise_client *client, char **accounts, long amount, long times)
{
    mortise_lock *locks[2];
    mortise_hold holds[2];
    int error, failed = 0;
    for (int i = 0; i < 2; i++)
        if ((error = mortise_mutex_new(client, accounts[i], NULL, &locks[i])) != MORTISE_OK)
            return complain(error);
    for (long i = 0; i < times && !failed; i++) {
        error = mortise_acquire_all(locks, 2, 60000, holds);
        if (error)
            return complain(error);
        failed = move(accounts[0], accounts[1], amount);
        error = mortise_release_all(holds, 2); /* ELOST: somebody else may have come in between */
        if (error)
            return complain(error);
    }
    if (failed)
        fprintf(stderr, "transfer: %s\n", failed > 0 ? "not enough" : "an account is no number");
    return failed;
}

int main(int argc, char **argv)
{
    mortise_client *client;
    long amount = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    /* One account's lock would nest in itself, and its balance would be written twice. */
    if (argc < 4 || argc > 5 || amount <= 0 || strcmp(argv[1], argv[2]) == 0) {
        fprintf(stderr, "usage: transfer FROM TO AMOUNT [TIMES]\n");
        return 64;
    }
    int error = mortise_open(NULL, NULL, &client);
    if (error)
        return complain(error) != 0;
    int failed = transfer(client, argv + 1, amount, argc == 5 ? strtol(argv[4], NULL, 10) : 1);
    mortise_close(client); /* releases what is held and frees the locks */
    return failed != 0;
}
