/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a release to a queue: WAITERS clients, each with a session of its own, queue up for
 * one mutex, or to write and to read by turns; after a line of input it is released RELEASES times,
 * each time as soon as all traffic has ended. The program that watches the wire counts.
 *
 *   bench_zookeeper_herd URI mutex|read-write NAME WAITERS RELEASES
 */
#include "mortise.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLIENTS_MAX 256
#define FIRST 2 /* releases that are not counted: they make directories */

static mortise_hold held[CLIENTS_MAX];
static atomic_int granted;

static void check(int error)
{
    if (error == MORTISE_OK)
        return;
    fprintf(stderr, "%s: %s\n", mortise_error_text(error), mortise_error_detail());
    exit(1);
}

static void rest(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = 100000000}, NULL);
}

/* In the order of the queue, because the grants come one after the other. */
static void take(void *argument, int error, mortise_hold hold)
{
    (void)argument;
    check(error);
    held[granted] = hold;
    granted++;
}

/* Gives it to the next, and waits until nothing stirs. */
static void release(int number)
{
    while (granted < number + 1)
        rest();
    check(mortise_release(held[number]));
    while (granted < number + 2)
        rest();
    rest();
}

static int count_entry(void *argument, const mortise_entry *entry)
{
    (void)entry;
    ++*(int *)argument;
    return 0;
}

static void await_tickets(mortise_client *client, const char *name, int wanted)
{
    for (int count = 0; count < wanted; rest()) {
        count = 0;
        check(mortise_list(client, name, count_entry, &count));
    }
}

/* Neighbours in the queue never hold together, so each release grants one. */
static mortise_lock *lock_of(mortise_client *client, const char *kind, const char *name, int place)
{
    mortise_lock *mutex, *read, *write;
    if (strcmp(kind, "mutex") == 0) {
        check(mortise_mutex_new(client, name, NULL, &mutex));
        return mutex;
    }
    check(mortise_read_write_new(client, name, NULL, &read, &write));
    return place % 2 ? read : write;
}

int main(int count, char **arguments)
{
    mortise_client *clients[CLIENTS_MAX];
    const char *name = count == 6 ? arguments[3] : "";
    int waiters = count == 6 ? (int)strtol(arguments[4], NULL, 10) : 0;
    int releases = count == 6 ? (int)strtol(arguments[5], NULL, 10) : 0;
    int all = waiters + FIRST + releases;
    if (waiters < 1 || all > CLIENTS_MAX || releases < 1)
        return 64;
    for (int i = 0; i < all; i++) {
        check(mortise_open(arguments[1], NULL, &clients[i]));
        mortise_lock *lock = lock_of(clients[i], arguments[2], name, i);
        check(mortise_acquire_async(lock, INT64_MAX, take, NULL, NULL));
    }
    await_tickets(clients[0], name, all);
    for (int i = 0; i < FIRST; i++)
        release(i);
    puts("ready");
    fflush(stdout);
    getchar();
    for (int i = 0; i < releases; i++)
        release(FIRST + i);
    puts("done");
    fflush(stdout);
    getchar();
    return 0;
}
