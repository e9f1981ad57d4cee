/* SPDX-License-Identifier: Apache-2.0 */
/* The counts are in memory that the processes share. Each process has a client of its own. */
#include "live/failover.h"

#include "cmocka_all.h"
#include "live/zookeeper_place.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 16
#define HOLD_MS 2
#define LIMIT_MS 60000

static pid_t processes[PROCESSES_MAX];
static int running;

int failover_port(int number)
{
    const char *at = zk_place_servers("urls");
    for (int i = 0; i <= number; i++) {
        at = strstr(i > 0 ? at + 1 : at, "redis://127.0.0.1:");
        assert_non_null(at);
    }
    return (int)strtol(at + strlen("redis://127.0.0.1:"), NULL, 10);
}

bool failover_write(struct failover_counts *counts, uint64_t fence, bool first)
{
    uint64_t newest = counts->newest;
    do {
        if (first && fence == newest)
            counts->same++;
        if (fence < newest) {
            counts->refused++;
            return false;
        }
    } while (!atomic_compare_exchange_weak(&counts->newest, &newest, fence));
    return true;
}

static void note_beginning(struct failover_counts *counts)
{
    int64_t now = zk_now_ms(), last = atomic_exchange(&counts->last_ms, now);
    if (last > 0 && now - last > counts->gap_ms)
        counts->gap_ms = now - last;
}

static void hold_once(struct failover_counts *counts, mortise_hold hold, int witness)
{
    uint64_t fence = mortise_hold_fence(hold);
    bool alone = flock(witness, LOCK_EX | LOCK_NB) == 0;
    note_beginning(counts);
    if (!alone)
        counts->overlaps++;
    failover_write(counts, fence, true);
    zk_rest_ms(HOLD_MS);
    if (!mortise_is_held(hold))
        counts->lost++;
    failover_write(counts, fence, false);
    if (alone)
        flock(witness, LOCK_UN);
    counts->turns++;
}

static void compete(struct failover_counts *counts, const char *uri)
{
    char path[32]; /* the witness, opened again: a descriptor that is shared shares its lock */
    snprintf(path, sizeof path, "/proc/self/fd/%d", counts->witness);
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    int witness = open(path, O_RDWR | O_CLOEXEC);
    if (witness < 0 || mortise_open(uri, NULL, &client) != MORTISE_OK ||
        mortise_mutex_new(client, "m", NULL, &lock) != MORTISE_OK)
        _exit(1);
    while (!counts->stop) {
        if (mortise_acquire_for(lock, LIMIT_MS, &hold) != MORTISE_OK) {
            counts->errors++;
            zk_rest_ms(20);
            continue;
        }
        hold_once(counts, hold, witness);
        mortise_release(hold);
    }
    mortise_close(client);
    _exit(0);
}

struct failover_counts *failover_begin(const char *uri, int count)
{
    char path[] = "/tmp/mortise-witness-XXXXXX";
    struct failover_counts *counts =
        mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int witness = mkstemp(path);
    assert_true(counts != MAP_FAILED && witness >= 0 && count <= PROCESSES_MAX);
    unlink(path);
    counts->witness = witness;
    for (running = 0; running < count; running++) {
        processes[running] = fork();
        assert_true(processes[running] >= 0);
        if (processes[running] == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
            compete(counts, uri);
    }
    return counts;
}

void failover_wait_turns(struct failover_counts *counts, int turns)
{
    int enough = counts->turns + turns;
    int64_t limit = zk_now_ms() + LIMIT_MS;
    while (counts->turns < enough) {
        if (zk_now_ms() > limit)
            fail_msg("%d turns of %d", (int)counts->turns, enough);
        zk_rest_ms(5);
    }
}

void failover_end(struct failover_counts *counts, const char *title)
{
    int status, failed = 0;
    counts->stop = 1;
    while (running > 0) {
        waitpid(processes[--running], &status, 0);
        failed += status != 0;
    }
    close(counts->witness);
    print_message("%s: %d turns, longest pause %lld ms, %d overlaps, %d writes refused, %d holds "
                  "lost, %d acquires failed\n",
                  title, (int)counts->turns, (long long)counts->gap_ms, (int)counts->overlaps,
                  (int)counts->refused, (int)counts->lost, (int)counts->errors);
    assert_int_equal(failed, 0);
    assert_int_equal(counts->same, 0);
}
