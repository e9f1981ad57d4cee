/* SPDX-License-Identifier: Apache-2.0 */
/* Many processes on one file: nobody ever hears BUSY, nobody overlaps, nothing is damaged. */
#include "cmocka_all.h"
#include "live/sqlite_place.h"

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 50
#define CYCLES 200

/* Guarded by the lock under test, and by nothing else. */
struct guarded {
    volatile uint64_t count;
    volatile uint64_t fence;
};

static struct guarded *map_guarded(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(struct guarded)), 0);
    void *memory = mmap(NULL, sizeof(struct guarded), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(fd);
    return memory;
}

/* port_send fails if submit answers that it was busy. */
static int cycle(const char *uri, const char *path)
{
    struct port_client client;
    struct guarded *guarded = map_guarded(path);
    port_open_session(&client, uri);
    for (int i = 0; i < CYCLES; i++) {
        struct mrt_event view = port_append(&client, "contended", port_id());
        assert_int_equal(view.type, MRT_VIEW);
        while (view.weight_ahead) {
            port_wait_told(&client, view.ticket, view.recheck);
            view = port_refresh(&client, "contended", &view);
            assert_int_equal(view.type, MRT_VIEW);
        }
        uint64_t count = guarded->count;
        assert_true(view.fence > guarded->fence);
        guarded->fence = view.fence;
        sched_yield();
        guarded->count = count + 1;
        assert_int_equal(port_remove(&client, "contended", view.ticket, view.fence).type,
                         MRT_REMOVED);
    }
    assert_int_equal(port_stop(&client).type, MRT_STOPPED);
    port_close(&client);
    return 0;
}

/* Opens the store as soon as its input ends, so that all do at once. */
static int open_once(const char *uri)
{
    struct port_client client;
    port_open_session(&client, uri);
    assert_int_equal(port_append(&client, uri, port_id()).type, MRT_VIEW);
    port_stop(&client);
    port_close(&client);
    return 0;
}

static void test_sq_20_fifty_processes_never_hear_busy(void **state)
{
    const struct place *place = *state;
    struct helper helpers[PROCESSES];
    char path[128];
    snprintf(path, sizeof path, "%s/guarded", place->directory);
    struct guarded *guarded = map_guarded(path);
    mrt_time began = mrt_time_now();
    for (int i = 0; i < PROCESSES; i++)
        helper_start(&helpers[i], "cycle", place->uri, path);
    for (int i = 0; i < PROCESSES; i++)
        helper_finish(&helpers[i]);
    mrt_time took = mrt_time_now() - began;
    print_message("%d processes, %d hand-overs in %lld ms: %lld a second\n", PROCESSES,
                  PROCESSES * CYCLES, (long long)(took / MRT_MILLISECOND),
                  (long long)(PROCESSES * CYCLES * MRT_SECOND / took));
    assert_int_equal(guarded->count, PROCESSES * CYCLES);
    munmap(guarded, sizeof *guarded);
    assert_int_equal(query(place->path, "SELECT count(*) FROM mortise_ticket"), 1);
    check_integrity(place->path);
}

static void test_sq_18_fifty_processes_create_the_file_at_once(void **state)
{
    const struct place *place = *state;
    struct helper helpers[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        helper_start(&helpers[i], "open", place->uri, NULL);
    for (int i = 0; i < PROCESSES; i++)
        helper_finish(&helpers[i]);
    assert_int_equal(query(place->path, "SELECT count(*) FROM mortise_ticket"), 1);
    check_integrity(place->path);
}

static mrt_time processor_time(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * MRT_SECOND + used.tv_nsec;
}

/* Somebody keeps the database's writer lock; who gives up meanwhile leaves nothing to do. */
static void test_f4_a_call_given_up_at_a_busy_database_leaves_the_loop_asleep(void **state)
{
    const struct place *place = *state;
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    sqlite3 *other;
    assert_int_equal(mortise_open(place->uri, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_mutex_new(client, "busy", NULL, &lock), MORTISE_OK);
    assert_int_equal(sqlite3_open(place->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(mortise_acquire_for(lock, 50, &hold), MORTISE_ETIMEOUT);
    mrt_time before = processor_time();
    const struct timespec pause = {.tv_nsec = 500 * MRT_MILLISECOND};
    nanosleep(&pause, NULL);
    assert_true(processor_time() - before < 100 * MRT_MILLISECOND);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    assert_int_equal(mortise_acquire_for(lock, 5000, &hold), MORTISE_OK);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

/* Keeps the writer lock of the database for a while. */
static int keep_busy(const char *path)
{
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    helper_say("busy");
    rest(200 * MRT_MILLISECOND);
    assert_int_equal(sqlite3_exec(handle, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    return 0;
}

/* The first call is given up while the busy store has its command in hand. The second one, of the
   same client, comes before the store has given that back. */
static void test_f4_the_call_behind_one_given_up_at_a_busy_database_is_served(void **state)
{
    const struct place *place = *state;
    struct helper other;
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    assert_int_equal(mortise_open(place->uri, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_mutex_new(client, "busy", NULL, &lock), MORTISE_OK);
    assert_int_equal(mortise_acquire(lock, &hold), MORTISE_OK); /* there is a session from now on */
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    int given_up = 0;
    for (int i = 0; i < 20 && given_up < 3; i++) { /* a thread that runs late misses the moment */
        helper_start(&other, "busy", place->path, NULL);
        helper_expect(&other, "busy");
        int error = mortise_acquire_for(lock, 5, &hold);
        if (error == MORTISE_ETIMEOUT) {
            given_up++;
            error = mortise_acquire_for(lock, 60000, &hold);
        }
        assert_int_equal(error, MORTISE_OK);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        helper_finish(&other);
    }
    assert_true(given_up > 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

/* In a helper. */
static int act(const char *role, const char *place, const char *more)
{
    if (strcmp(role, "busy") == 0)
        return keep_busy(place);
    return strcmp(role, "cycle") == 0 ? cycle(place, more) : open_once(place);
}

int main(int count, char **arguments)
{
    if (count >= 4 && strcmp(arguments[1], "child") == 0)
        return act(arguments[2], arguments[3], arguments[4]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sq_20_fifty_processes_never_hear_busy, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(test_sq_18_fifty_processes_create_the_file_at_once,
                                        place_make, place_remove),
        cmocka_unit_test_setup_teardown(
            test_f4_a_call_given_up_at_a_busy_database_leaves_the_loop_asleep, place_make,
            place_remove),
        cmocka_unit_test_setup_teardown(
            test_f4_the_call_behind_one_given_up_at_a_busy_database_is_served, place_make,
            place_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
