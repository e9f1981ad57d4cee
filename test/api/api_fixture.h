/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the suites of the public interface share. They see mortise.h alone, and run on
 * the store that the first argument or $MORTISE_TEST_URL names: a URI, or "memory", or
 * "sqlite" for a file in a new directory that is removed in the end. A second argument is a
 * pattern of the tests to be run.
 *
 * cmocka's assertions work in the main thread only: `check` works in all, and in
 * child processes, and ends the program.
 */
#ifndef TEST_API_FIXTURE_H
#define TEST_API_FIXTURE_H

#include "cmocka_all.h"

#include "mortise.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MS_IN_NS INT64_C(1000000)

#define check(condition) ((condition) ? (void)0 : api_failed(__FILE__, __LINE__, #condition))
_Noreturn void api_failed(const char *file, int line, const char *condition);

/* To be called first in main. 0, or the exit code of what cannot be run. */
int api_begin(int argc, char **argv);
/* Cleans up, and gives the exit code. */
int api_end(int failed);

extern const char *api_url;
/* Whether another process may open the same store. */
bool api_spans_processes(void);
/* How long a dead client's locks stay: the store's lease, 0 if it needs none. */
int64_t api_lease_ms(void);
/* Whether grants carry fences there; and whether waiters are in the store at all, where lists show
   them, and are served in order. */
bool api_has_fences(void);
bool api_queues(void);
/* Whether each acquire there waits for a disk. */
bool api_commits_to_disk(void);
/* The ports at 127.0.0.1 that stand in it, as many as there are and asked for; how many. */
int api_ports(uint16_t *ports, int most);
/* The store's URI with one more parameter, "key=value"; until the next call. */
const char *api_url_with(const char *parameter);
/* A directory and all in it: files have names of the store's choosing. */
void api_remove_tree(const char *path);
/* True if pauses are as long as in the original (MORTISE_TEST_FULL). */
bool api_full(void);

/* All of these end the program if they fail. */
mortise_client *api_open(uint32_t flags);
mortise_client *api_open_with(const mortise_client_options *options);
void api_close(mortise_client *client);
mortise_lock *api_lock(mortise_client *client, const char *name);
mortise_lock *api_lock_of(mortise_client *client, const char *name, uint64_t owner);
/* Kept for so long after a crash of its holder (lock_delay_ms). */
mortise_lock *api_delaying_lock(mortise_client *client, const char *name, int64_t delay_ms);
mortise_hold api_acquire(mortise_lock *lock);
void api_release(mortise_hold hold);
mortise_stats api_stats(mortise_client *client);
/* Holders and waiters in the store. */
int api_tickets(mortise_client *client, const char *name);
/* Waits, at most api_await_ms, until the store has so many; where no list shows them for certain
 * (not api_queues), for a moment, if any are expected. */
extern int64_t api_await_ms;
void api_await_tickets(mortise_client *client, const char *name, int count);

void api_sleep_ms(int64_t ms);
int64_t api_ms_since(int64_t begin_ns);
/* How many commands the clock alone may have brought since then: rechecks, signs of life. */
uint64_t api_commands_since(int64_t begin_ns);
pthread_t api_thread(void *(*body)(void *), void *argument);
void api_join(pthread_t thread);

/* Before this process opens the store: a child that calls this, and then lives until it is
   killed; and one that holds such a lock. */
pid_t api_child_to_be_killed(void (*hold)(const void *), const void *argument);
pid_t api_holder_to_be_killed(const char *name, int64_t delay_ms);
/* Kills a child, which has lived until then. */
void api_kill(pid_t child);

/* Periods in which contenders held a lock; memory that forked children share. */
struct api_period {
    uint64_t fence;
    int64_t begin, end; /* mortise_now_ns */
};
struct api_history {
    _Atomic size_t count;
    size_t limit;
    struct api_period periods[];
};
struct api_history *api_history_new(size_t limit);
/* Holds for so long, and notes it. */
void api_history_hold(struct api_history *history, mortise_hold hold, int64_t ms);
/* No two periods overlap, and the fences, if there are any, rise in their order. Frees it. */
void api_history_check(struct api_history *history, size_t expected);

#endif
