/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of ours that counts under a claim: claimer URL NAME COUNTER ROUNDS LEASE, which the URL has
 * here. The file COUNTER.busy, which can be made only where it is not, is the witness that nobody
 * else is in; COUNTER.turns has a letter for each turn, of whose kind it was.
 *
 * It acquires once before that, says "ready", and begins with a line, or the end, of its input, so
 * that several begin together.
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

static void note_turn(const char *turns)
{
    int file = open(turns, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0 || write(file, "m", 1) != 1)
        fail("no turns");
    close(file);
}

/* Whether each of these letters is among the turns. */
static int has_all(const char *turns, const char *letters)
{
    int letter, missing = 0;
    FILE *file = fopen(turns, "r");
    if (!file)
        fail("no turns");
    for (; *letters && !missing; letters++) {
        rewind(file);
        while ((letter = getc(file)) != EOF && letter != *letters)
            continue;
        missing = letter == EOF;
    }
    fclose(file);
    return !missing;
}

static void acquire(mortise_lock *lock, mortise_hold *hold)
{
    if (mortise_acquire_for(lock, 60000, hold) != MORTISE_OK)
        fail("not acquired");
}

static void release(mortise_hold hold)
{
    if (mortise_release(hold) != MORTISE_OK)
        fail("not held to the end");
}

static void wait_for_start(void)
{
    int byte;
    puts("ready");
    fflush(stdout);
    do
        byte = getchar();
    while (byte != EOF && byte != '\n');
}

int main(int argc, char **argv)
{
    mortise_client *client = NULL;
    mortise_lock *lock = NULL;
    mortise_hold hold;
    char busy[256], turns[256];
    if (argc != 7 || mortise_open(argv[1], NULL, &client) != MORTISE_OK ||
        mortise_exclusive_new(client, argv[2], NULL, &lock) != MORTISE_OK)
        fail("claimer URL NAME COUNTER ROUNDS LEASE LETTERS");
    snprintf(busy, sizeof busy, "%s.busy", argv[3]);
    snprintf(turns, sizeof turns, "%s.turns", argv[3]);
    acquire(lock, &hold);
    release(hold);
    wait_for_start();
    int met = 0; /* each kind, also before this one's last turn */
    for (long i = strtol(argv[4], NULL, 10); i > 0 || !met; i--) {
        acquire(lock, &hold);
        count(argv[3], busy);
        note_turn(turns);
        met = met || has_all(turns, argv[6]);
        release(hold);
    }
    return mortise_close(client) != MORTISE_OK;
}
