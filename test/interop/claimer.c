/*
 * One of ours that counts under a claim: claimer URL NAME COUNTER ROUNDS LEASE, which the URL has
 * here. The file COUNTER.busy, which can be made only where it is not, is the witness that nobody
 * else is in.
 */
#include "mortise.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "claimer: %s: %s\n", what, mortise_error_detail());
    exit(1);
}

static void count(const char *counter, const char *busy)
{
    int witness = open(busy, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (witness < 0)
        fail("somebody else is in");
    close(witness);
    long value = 0;
    FILE *file = fopen(counter, "r+");
    if (!file || fscanf(file, "%ld", &value) != 1)
        fail("no counter");
    rewind(file);
    fprintf(file, "%ld\n", value + 1);
    fclose(file);
    unlink(busy);
}

int main(int argc, char **argv)
{
    mortise_client *client = NULL;
    mortise_lock *lock = NULL;
    mortise_hold hold;
    char busy[256];
    if (argc != 6 || mortise_open(argv[1], NULL, &client) != MORTISE_OK ||
        mortise_exclusive_new(client, argv[2], NULL, &lock) != MORTISE_OK)
        fail("claimer URL NAME COUNTER ROUNDS LEASE");
    snprintf(busy, sizeof busy, "%s.busy", argv[3]);
    for (long i = strtol(argv[4], NULL, 10); i > 0; i--) {
        if (mortise_acquire_for(lock, 60000, &hold) != MORTISE_OK)
            fail("not acquired");
        count(argv[3], busy);
        if (mortise_release(hold) != MORTISE_OK)
            fail("not held to the end");
    }
    return mortise_close(client) != MORTISE_OK;
}
