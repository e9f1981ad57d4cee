/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a chaos run (test/chaos/run): one that competes for a lock and writes
 * down what it sees (history.h), and the judge.
 *
 *     chaos work URI NAME PROCESS HISTORY quick|slow|keep
 *     chaos check HISTORY
 *
 * A worker takes turns until SIGTERM. `quick` holds for some milliseconds, `slow` up to
 * seconds, and `keep` until the hold is lost. From SIGUSR1 to SIGUSR2, which is while there is a
 * fault, nothing is released, and nothing is released later by a client whose store is silent
 * (SUSPENDED): so a hold meets the fault, and lasts until it is lost or the fault is over, which is
 * where a wrong lease would show. Between two looks at its hold a worker may be stopped or killed:
 * nothing here relies on not being.
 */
#include "mortise.h"

#include "chaos/history.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND INT64_C(1000000)
#define PATIENCE_MS 120000

static volatile sig_atomic_t ended, faulty;
static int history = -1;
static unsigned process;
static uint64_t dice;

static void on_signal(int number)
{
    if (number == SIGTERM)
        ended = 1;
    else
        faulty = number == SIGUSR1;
}

static void note(int64_t at, const char *kind, uint64_t number, int64_t until)
{
    char line[128];
    int length = snprintf(line, sizeof line, "%" PRId64 " %s %u %" PRIu64 " %" PRId64 "\n", at,
                          kind, process, number, until);
    if (write(history, line, (size_t)length) != length) {
        perror("history");
        _exit(2);
    }
}

static int64_t roll(int64_t below)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((dice >> 33) % (uint64_t)below);
}

static void rest(int64_t nanoseconds)
{
    const struct timespec pause = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&pause, NULL);
}

/* Says that it is held, if it is; the time is read before it is asked. */
static bool claim(mortise_hold hold, const char *kind)
{
    int64_t at = mortise_now_ns();
    uint64_t fence = mortise_hold_fence(hold);
    if (!mortise_is_held(hold))
        return false;
    note(at, kind, fence, at + mortise_hold_remaining_ms(hold) * MILLISECOND);
    return true;
}

static int64_t choose_length(const char *mode)
{
    if (strcmp(mode, "keep") == 0)
        return INT64_MAX / 2;
    if (strcmp(mode, "quick") == 0)
        return roll(4 * MILLISECOND);
    return roll(8) == 0 ? 2500 * MILLISECOND : roll(800 * MILLISECOND);
}

static bool go_on(mortise_hold hold, int64_t end)
{
    return !ended &&
           (faulty || mortise_now_ns() < end || mortise_hold_state(hold) == MORTISE_SUSPENDED);
}

static void keep_for(mortise_hold hold, uint64_t fence, int64_t length)
{
    int64_t end = mortise_now_ns() + length, said = mortise_now_ns();
    while (go_on(hold, end)) {
        rest(length < 5 * MILLISECOND ? length : 5 * MILLISECOND);
        if (!mortise_is_held(hold)) {
            note(mortise_now_ns(), "lost", fence, 0);
            return;
        }
        if (mortise_now_ns() - said > 50 * MILLISECOND) {
            said = mortise_now_ns();
            claim(hold, "still");
        }
    }
    note(mortise_now_ns(), "release", fence, 0);
}

static int ask(mortise_lock *lock, const char *mode, mortise_hold *hold)
{
    int64_t kind = strcmp(mode, "keep") == 0 ? 9 : roll(10);
    if (kind == 0)
        return mortise_try_acquire(lock, hold);
    return mortise_acquire_for(lock, kind == 1 ? roll(50) : PATIENCE_MS, hold);
}

static void take_turn(mortise_lock *lock, const char *mode)
{
    mortise_hold hold = {0};
    note(mortise_now_ns(), "ask", 0, 0);
    int error = ask(lock, mode, &hold);
    if (error) {
        note(mortise_now_ns(), "failed", (uint64_t)-error, 0);
        rest(5 * MILLISECOND);
        return;
    }
    uint64_t fence = mortise_hold_fence(hold);
    if (claim(hold, "got"))
        keep_for(hold, fence, choose_length(mode));
    else
        note(mortise_now_ns(), "failed", (uint64_t)-MORTISE_ELOST, 0); /* lost on the way here */
    mortise_release(hold);
    rest(roll(3 * MILLISECOND));
}

static int work(const char *uri, const char *name, const char *mode)
{
    mortise_client *client = NULL;
    mortise_lock *lock = NULL;
    while (mortise_open(uri, NULL, &client) != MORTISE_OK) {
        if (ended)
            return 0; /* not one event yet: nobody waits for this process */
        rest(100 * MILLISECOND);
    }
    if (mortise_mutex_new(client, name, NULL, &lock) != MORTISE_OK)
        return 1;
    while (!ended)
        take_turn(lock, mode);
    note(mortise_now_ns(), "left", 0, 0);
    mortise_lock_free(lock);
    int error = mortise_close(client);
    return error == MORTISE_OK || error == MORTISE_EUNKNOWN ? 0 : 1;
}

static int begin_work(char **arguments)
{
    const struct sigaction action = {.sa_handler = on_signal};
    process = (unsigned)strtoul(arguments[2], NULL, 10);
    dice = process * UINT64_C(0x9E3779B97F4A7C15);
    history = open(arguments[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (history < 0 || sigaction(SIGTERM, &action, NULL) || sigaction(SIGUSR1, &action, NULL) ||
        sigaction(SIGUSR2, &action, NULL)) {
        perror(arguments[3]);
        return 2;
    }
    return work(arguments[0], arguments[1], arguments[4]);
}

static int check(const char *path)
{
    static struct chaos_verdict verdict;
    FILE *file = fopen(path, "re");
    if (!file || chaos_history_check(file, &verdict) != 0) {
        perror(path);
        return 2;
    }
    fclose(file);
    printf("holds=%lu failed=%lu lost=%lu dead=%lu overlaps=%lu longest_overlap_ms=%.3f "
           "fences=%lu unserved=%lu broken=%lu\n",
           verdict.holds, verdict.failed, verdict.lost, verdict.dead, verdict.overlaps,
           (double)verdict.longest_overlap / 1e6, verdict.fences, verdict.unserved, verdict.broken);
    for (unsigned i = 0; i < verdict.heals; i++)
        printf("scene %" PRIu64 " wait_ms=%.0f\n", verdict.heal[i].scene,
               (double)verdict.heal[i].longest / 1e6);
    if (verdict.first[0])
        printf("fault: %s\n", verdict.first);
    return chaos_faults(&verdict) ? 1 : 0;
}

int main(int count, char **arguments)
{
    if (count == 7 && strcmp(arguments[1], "work") == 0)
        return begin_work(arguments + 2);
    if (count == 3 && strcmp(arguments[1], "check") == 0)
        return check(arguments[2]);
    fprintf(stderr, "usage: chaos work URI NAME PROCESS HISTORY quick|slow|keep\n"
                    "       chaos check HISTORY\n");
    return 64;
}
