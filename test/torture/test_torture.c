/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fault at every place: a scenario of open, acquire, try, time-out, call-back, verify,
 * list, release and close is run again and again, and each time the next of its
 * allocations (or of its calls for a descriptor or a thread) fails; once alone, and
 * once with all that follow. After any failure: no crash, nothing hangs, every answer is one that
 * the header allows, no block stays allocated, no descriptor open, and no ticket stays in the
 * store.
 */
#include "api/api_fixture.h"
#include "torture_faults.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* A scenario that is never without failure would run for ever. */
#define MANY 2000

static mortise_client *keeper; /* holds "held", so that others time out on it */

struct told {
    _Atomic int calls;
    int error;
};

static const int *faults; /* calls of the kind under test */

static bool is_one_of(int error, const int *allowed)
{
    if (error == MORTISE_OK)
        return true;
    for (; *allowed; allowed++)
        if (error == *allowed)
            return true;
    fprintf(stderr, "answered %s: %s\n", mortise_error_name(error), mortise_error_detail());
    return false;
}

/* Answers that lack of memory may cause, beside those of the scenario itself. */
static const int memory_faults[] = {MORTISE_ENOMEM, MORTISE_ETIMEOUT, MORTISE_EBUSY, 0};
/* And lacking descriptors: the store says what it could not do. */
static const int descriptor_faults[] = {
    MORTISE_ENOMEM, MORTISE_ESTORE, MORTISE_EUNREACHABLE, MORTISE_EFULL,         MORTISE_ETIMEOUT,
    MORTISE_ELOST,  MORTISE_EBUSY,  MORTISE_EPERMISSION,  MORTISE_ENOTSUPPORTED, 0};

static void completed(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    told->error = error;
    if (error == MORTISE_OK) {
        error = mortise_release(hold); /* closing may have given it back meanwhile */
        check(error == MORTISE_ENOTHELD || is_one_of(error, faults));
    }
    atomic_store(&told->calls, 1);
}

static int ignore_entry(void *argument, const mortise_entry *entry)
{
    (void)argument;
    check(entry->name != NULL);
    return 0;
}

static void ignore_state(void *argument, mortise_hold hold, mortise_state state)
{
    (void)argument;
    (void)hold;
    (void)state;
}

static void use_hold(mortise_lock *lock, mortise_hold hold)
{
    mortise_hold again;
    int error = mortise_on_lost(hold, ignore_state, NULL);
    check(is_one_of(error, faults));
    error = mortise_lost_fd(hold);
    check(error >= 0 || is_one_of(error, faults));
    error = mortise_acquire_for(lock, 1000, &again);
    check(is_one_of(error, faults));
    if (error == MORTISE_OK)
        check(is_one_of(mortise_release(again), faults));
    check(is_one_of(mortise_verify(hold, 1000), faults));
}

static void use_lock(mortise_client *client, const char *name)
{
    mortise_lock *lock = NULL;
    mortise_hold hold;
    int error = mortise_mutex_new(client, name, NULL, &lock);
    check(is_one_of(error, faults));
    if (error != MORTISE_OK)
        return;
    error = mortise_acquire_for(lock, 1000, &hold);
    check(is_one_of(error, faults));
    if (error == MORTISE_OK) {
        use_hold(lock, hold);
        check(is_one_of(mortise_release(hold), faults));
    }
    mortise_lock_free(lock);
}

static void call_back(mortise_client *client, const char *name, struct told *told)
{
    mortise_lock *lock = NULL;
    if (mortise_mutex_new(client, name, NULL, &lock) != MORTISE_OK)
        return;
    atomic_store(&told->calls, 0);
    int error =
        mortise_acquire_async(lock, mortise_now_ns() + 20 * MS_IN_NS, completed, told, NULL);
    check(is_one_of(error, faults));
    if (error != MORTISE_OK)
        atomic_store(&told->calls, 1);
}

static void run_scenario(uint32_t flags)
{
    mortise_client_options options = {
        .size = sizeof options, .flags = flags, .timeout_ms = 1000, .label = "tortured"};
    mortise_client *client = NULL;
    struct told told[2] = {{.calls = 1}, {.calls = 1}};
    mortise_lock *lock = NULL;
    mortise_hold hold;
    int error = mortise_open(api_url, &options, &client);
    check(is_one_of(error, faults));
    if (error != MORTISE_OK) {
        check(client == NULL);
        return;
    }
    use_lock(client, "a");
    use_lock(client, "b");
    if (mortise_mutex_new(client, "held", NULL, &lock) == MORTISE_OK) {
        check(is_one_of(mortise_try_acquire(lock, &hold), faults));
        check(is_one_of(mortise_acquire_for(lock, 1, &hold), faults));
        mortise_lock_free(lock);
    }
    call_back(client, "c", &told[0]);
    call_back(client, "held", &told[1]);
    check(is_one_of(mortise_list(client, NULL, ignore_entry, NULL), faults));
    if (flags & MORTISE_FOREIGN_LOOP) {
        check(mortise_fd(client) >= 0 || is_one_of(mortise_fd(client), faults));
        check(mortise_process(client) == MORTISE_OK);
    }
    error = mortise_close(client);
    check(error == MORTISE_OK || error == MORTISE_EUNKNOWN);
    check(atomic_load(&told[0].calls) && atomic_load(&told[1].calls));
}

/* SQLite closes a database's descriptors later, when no lock on it is left in the process. */
static bool is_kept_by_sqlite(DIR *directory, const char *number)
{
    static const char ending[] = "/locks.db";
    char target[4096];
    ssize_t length = readlinkat(dirfd(directory), number, target, sizeof target);
    const ssize_t tail = (ssize_t)sizeof ending - 1;
    return length >= tail && memcmp(target + length - tail, ending, (size_t)tail) == 0;
}

static int open_descriptors(void)
{
    int count = 0;
    struct dirent *entry;
    DIR *directory = opendir("/proc/self/fd");
    check(directory != NULL);
    while ((entry = readdir(directory)))
        count += !is_kept_by_sqlite(directory, entry->d_name);
    closedir(directory);
    return count;
}

/* Only the keeper's ticket is there; another client than the tortured one says so. */
static void check_store(void)
{
    api_await_tickets(keeper, NULL, 1);
    mortise_client *other = api_open(0);
    api_await_tickets(other, NULL, 1);
    check(api_tickets(other, NULL) == 1); /* also where not all who wait are shown */
    mortise_hold hold;
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        check(mortise_try_acquire(api_lock(other, names[i]), &hold) == MORTISE_OK);
        api_release(hold);
    }
    api_close(other);
}

static void torture(enum fault_kind kind, bool persistent, uint32_t flags)
{
    size_t n, failed = 1;
    faults = kind == FAULT_MEMORY ? memory_faults : descriptor_faults;
    run_scenario(flags); /* what is made once and kept is made now */
    check_store();
    long live = faults_live_blocks();
    int descriptors = open_descriptors();
    for (n = 1; n < MANY && failed > 0; n++) {
        faults_arm(kind, n, persistent);
        run_scenario(flags);
        failed = faults_disarm();
        check_store();
        if (faults_live_blocks() != live || open_descriptors() != descriptors) {
            print_message("# call %zu: blocks %ld, were %ld; descriptors %d, were %d\n", n,
                          faults_live_blocks(), live, open_descriptors(), descriptors);
            fail();
        }
    }
    assert_true(n > 3 && n < MANY);
    print_message("# %zu places\n", n - 2);
}

/* The slots of a closed client's holds stay for the next one (api/slot.c). As many as a scenario
   needs are there before blocks are counted. */
static void make_slots(void)
{
    static const char *const names[] = {"1", "2", "3", "4", "5", "6"};
    mortise_client *client = api_open(0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        api_acquire(api_lock(client, names[i]));
    api_close(client);
}

static int open_keeper(void **state)
{
    (void)state;
    make_slots();
    keeper = api_open(0);
    api_acquire(api_lock(keeper, "held"));
    return 0;
}

static int close_keeper(void **state)
{
    (void)state;
    api_close(keeper);
    return 0;
}

static void test_f5_each_allocation_fails_once(void **state)
{
    (void)state;
    torture(FAULT_MEMORY, false, 0);
}

static void test_f5_each_allocation_and_all_after_it_fail(void **state)
{
    (void)state;
    torture(FAULT_MEMORY, true, 0);
}

static void test_f5_allocations_of_a_foreign_loop_fail(void **state)
{
    (void)state;
    torture(FAULT_MEMORY, false, MORTISE_FOREIGN_LOOP);
    torture(FAULT_MEMORY, true, MORTISE_FOREIGN_LOOP);
}

static void test_f5_each_descriptor_fails_once(void **state)
{
    (void)state;
    torture(FAULT_DESCRIPTOR, false, 0);
}

static void test_f5_each_descriptor_and_all_after_it_fail(void **state)
{
    (void)state;
    torture(FAULT_DESCRIPTOR, true, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f5_each_allocation_fails_once),
        cmocka_unit_test(test_f5_each_allocation_and_all_after_it_fail),
        cmocka_unit_test(test_f5_allocations_of_a_foreign_loop_fail),
        cmocka_unit_test(test_f5_each_descriptor_fails_once),
        cmocka_unit_test(test_f5_each_descriptor_and_all_after_it_fail),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, open_keeper, close_keeper));
}
