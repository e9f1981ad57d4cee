/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that survives. A power cut is played by keeping of each file what had been synced, and
 * a reboot by another boot id: this program's own fdatasync notes how long the log
 * was whenever it was synced. Clock steps are played by its own clock_gettime.
 */
#include "cmocka_all.h"
#include "live/sqlite_place.h"
#include "live/wall_clock.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/schema.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static off_t synced_log; /* length of the log when it was last synced */
static unsigned int syncs;

int fdatasync(int fd)
{
    char link[64], path[256];
    struct stat status;
    syncs++;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 4 && memcmp(path + length - 4, "-wal", 4) == 0 && fstat(fd, &status) == 0)
        synced_log = status.st_size;
    return (int)syscall(SYS_fdatasync, fd);
}

static struct mrt_id boot(uint64_t number)
{
    return (struct mrt_id){0xb007, number};
}

static void copy_file(const char *from, const char *to, off_t length)
{
    char buffer[4096];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(in >= 0 && out >= 0);
    while (length > 0) {
        size_t part = length < (off_t)sizeof buffer ? (size_t)length : sizeof buffer;
        ssize_t got = read(in, buffer, part);
        if (got <= 0)
            break;
        assert_int_equal(write(out, buffer, (size_t)got), got);
        length -= got;
    }
    close(in);
    close(out);
}

/*
 * The machine at `place` as it comes up after a power cut now: the database, which is
 * written with syncs only, and the synced part of the log. The database is copied
 * by another process: closing it here would drop SQLite's locks on it.
 */
static void cut_power(const struct place *place, struct place *after)
{
    char from[128], to[128];
    struct helper helper;
    *after = *place;
    snprintf(after->directory, sizeof after->directory, "/tmp/mortise-test-XXXXXX");
    assert_non_null(mkdtemp(after->directory));
    snprintf(after->path, sizeof after->path, "%s/locks.db", after->directory);
    snprintf(after->uri, sizeof after->uri, "sqlite://%s", after->path);
    snprintf(from, sizeof from, "%s-wal", place->path);
    snprintf(to, sizeof to, "%s-wal", after->path);
    copy_file(from, to, synced_log);
    helper_start(&helper, "copy", place->path, after->path);
    helper_finish(&helper);
}

static uint64_t take_fence(struct port_client *client, const char *queue)
{
    struct mrt_event view = port_append(client, queue, port_id());
    assert_int_equal(view.type, MRT_VIEW);
    port_remove(client, queue, view.ticket, view.fence);
    return view.fence + view.fence_span - 1;
}

static uint64_t first_fence_after(const struct place *after, uint64_t boot_number)
{
    struct port_client client;
    mrt_sqlite_set_boot_id(boot(boot_number));
    port_open_session(&client, after->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    assert_int_equal(view.type, MRT_VIEW);
    assert_int_equal(view.weight_ahead, 0); /* whoever was there has died */
    port_stop(&client);
    port_close(&client);
    check_integrity(after->path);
    return view.fence;
}

/* Nearly all numbers below the limit have been given out. */
static void use_up_block(const struct place *place)
{
    query(place->path, "UPDATE mortise_ticket SET weight = capacity - 10 WHERE queue = ''");
}

static void test_c_fences_rise_across_power_cuts(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    uint64_t reboots = 100;
    mrt_sqlite_set_boot_id(boot(1));
    port_open_session(&client, place->uri);
    for (int round = 0; round < 8; round++) {
        uint64_t last = 0;
        if (round % 2)
            use_up_block(place); /* so the limit is raised in this round */
        port_append(&client, "q", port_id());
        for (int i = 0; i < 5 + round * 40; i++)
            last = take_fence(&client, "q");
        struct place after;
        cut_power(place, &after);
        assert_true(first_fence_after(&after, ++reboots) > last);
        assert_true(first_fence_after(&after, ++reboots) > last);
        remove_tree(after.directory);
        mrt_sqlite_set_boot_id(boot(1));
    }
    port_stop(&client);
    port_close(&client);
}

static void test_c_fences_rise_across_power_cuts_and_checkpoints(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    uint64_t reboots = 200;
    mrt_sqlite_set_boot_id(boot(1));
    port_open_session(&client, place->uri);
    for (int round = 0; round < 6; round++) {
        uint64_t last = 0;
        for (int i = 0; i < 370; i++)
            last = take_fence(&client, "q");
        struct place after;
        cut_power(place, &after);
        assert_true(first_fence_after(&after, ++reboots) > last);
        remove_tree(after.directory);
        mrt_sqlite_set_boot_id(boot(1));
    }
    port_stop(&client);
    port_close(&client);
}

static void test_c_an_acquire_needs_no_sync(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    unsigned int before = syncs;
    for (int i = 0; i < 200; i++)
        take_fence(&client, "q");
    assert_int_equal(syncs, before);
    use_up_block(place);
    before = syncs;
    for (int i = 0; i < 20; i++)
        take_fence(&client, "q");
    assert_int_equal(syncs, before + 1); /* one for a block; or nothing was counted */
    port_stop(&client);
    port_close(&client);
}

static void test_sq_25_a_reboot_ends_all_sessions(void **state)
{
    const struct place *place = *state;
    struct port_client client, next;
    mrt_sqlite_set_boot_id(boot(1));
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    mrt_sqlite_set_boot_id(boot(2));
    port_open_session(&next, place->uri);
    struct mrt_event after = port_append(&next, "q", port_id());
    assert_int_equal(after.weight_ahead, 0);
    assert_true(after.fence > view.fence);
    assert_int_equal(port_refresh(&client, "q", &view).type, MRT_GONE);
    mrt_sqlite_set_boot_id((struct mrt_id){0, 0});
    port_stop(&client);
    port_close(&client);
    port_stop(&next);
    port_close(&next);
}

static void test_c11_a_detached_ticket_survives_a_reboot(void **state)
{
    const struct place *place = *state;
    struct port_client client, next;
    struct mrt_id detached_id = port_id();
    mrt_sqlite_set_boot_id(boot(1));
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    struct mrt_command command = port_command(&client, MRT_DETACH);
    command.queue = "q";
    command.ticket = view.ticket;
    command.detached_id = detached_id;
    command.weight = 1;
    unsigned int before = syncs;
    assert_int_equal(port_send(&client, &command).type, MRT_VIEW);
    assert_true(syncs > before); /* a power cut does not undo it */
    mrt_sqlite_set_boot_id(boot(2));
    port_open_session(&next, place->uri);
    assert_int_equal(port_try(&next, "q", port_id()).type, MRT_BLOCKED);
    command = port_append_command(&next, "q");
    command.ticket = detached_id;
    command.adopt = true;
    before = syncs;
    struct mrt_event adopted = port_send(&next, &command);
    assert_int_equal(adopted.type, MRT_VIEW);
    assert_int_equal(adopted.fence, view.fence);
    assert_true(syncs > before); /* nor this */
    mrt_sqlite_set_boot_id((struct mrt_id){0, 0});
    port_stop(&client);
    port_close(&client);
    port_stop(&next);
    port_close(&next);
}

static struct mrt_event append_with_delay(struct port_client *client, const char *queue,
                                          mrt_time delay)
{
    struct mrt_command command = port_append_command(client, queue);
    command.delay = delay;
    struct mrt_event view = port_send(client, &command);
    assert_int_equal(view.type, MRT_VIEW);
    return view;
}

/* The dead may have sent something to another machine, which has not lost its power. */
static void test_gn06_a_delay_outlives_a_power_cut(void **state)
{
    const struct place *place = *state;
    const mrt_time delay = 300 * MRT_MILLISECOND;
    struct place after;
    struct port_client client, next;
    mrt_sqlite_set_boot_id(boot(1));
    port_open_session(&client, place->uri);
    use_up_block(place);
    struct mrt_event before = port_append(&client, "q", port_id());
    append_with_delay(&client, "q", 3600 * MRT_SECOND);
    for (int i = 0; i < 8; i++)
        port_append(&client, "many", port_id());
    append_with_delay(&client, "r", delay);                 /* it needs the next block, too */
    port_remove(&client, "q", before.ticket, before.fence); /* which is undone */
    port_append(&client, "none", port_id());
    cut_power(place, &after);
    for (uint64_t number = 2; number < 4; number++) {
        mrt_sqlite_set_boot_id(boot(number));
        mrt_time came_up = mrt_time_now();
        port_open_session(&next, after.uri);
        assert_int_equal(port_try(&next, "none", port_id()).type, MRT_VIEW);
        assert_int_equal(port_try(&next, "q", port_id()).type, MRT_BLOCKED);
        struct mrt_event waits = port_append(&next, "r", port_id());
        if (number == 2) {
            assert_true(waits.weight_ahead > 0);
            port_wait_granted(&next, "r", waits, 1, 1, 30 * MRT_SECOND);
            assert_true(mrt_time_now() - came_up >= delay);
        }
        port_stop(&next);
        port_close(&next);
    }
    check_integrity(after.path);
    remove_tree(after.directory);
    mrt_sqlite_set_boot_id((struct mrt_id){0, 0});
    port_stop(&client);
    port_close(&client);
}

/* An agent's delay waits for its clients, which a power cut ends too: the disk need not know it. */
static void test_gn06_a_delay_of_this_host_alone_waits_for_no_disk(void **state)
{
    const struct place *place = *state;
    struct port_client client, next;
    port_open_session(&client, place->uri);
    port_open_session(&next, place->uri);
    port_append(&client, "q", port_id()); /* the first number needs a block */
    struct mrt_command command = port_append_command(&client, "r");
    command.delay = 300 * MRT_MILLISECOND;
    command.delay_is_host = true;
    unsigned int before = syncs;
    assert_int_equal(port_send(&client, &command).type, MRT_VIEW);
    assert_int_equal(syncs, before);
    append_with_delay(&client, "s", command.delay);
    assert_true(syncs > before);
    port_close(&client); /* it dies */
    mrt_time died = mrt_time_now();
    struct mrt_event waits = port_append(&next, "r", port_id());
    assert_true(waits.weight_ahead > 0);
    port_wait_granted(&next, "r", waits, 1, 1, 30 * MRT_SECOND);
    assert_true(mrt_time_now() - died >= command.delay);
    port_stop(&next);
    port_close(&next);
}

static void test_sq_25_clock_steps_change_nothing(void **state)
{
    const struct place *place = *state;
    const time_t steps[] = {3600, -3600, 86400 * 400, 0};
    struct port_client holder, waiter;
    mrt_sqlite_set_boot_id((struct mrt_id){0, 0});
    port_open_session(&holder, place->uri);
    port_open_session(&waiter, place->uri);
    struct mrt_event held = port_append(&holder, "q", port_id());
    struct mrt_event waits = port_append(&waiter, "q", port_id());
    for (int i = 0; i < 4; i++) {
        struct port_client other;
        wall_clock_step = steps[i];
        port_open_session(&other, place->uri); /* it may also sweep now */
        assert_int_equal(port_try(&other, "q", port_id()).type, MRT_BLOCKED);
        assert_false(port_wait_told(&waiter, waits.ticket, 20 * MRT_MILLISECOND));
        assert_true(port_refresh(&waiter, "q", &waits).weight_ahead > 0);
        assert_int_equal(port_refresh(&holder, "q", &held).weight_ahead, 0);
        port_stop(&other);
        port_close(&other);
    }
    port_stop(&holder);
    port_wait_granted(&waiter, "q", waits, 1, 1, 10 * MRT_SECOND);
    port_stop(&waiter);
    port_close(&holder);
    port_close(&waiter);
}

/* ------------------------------------------------------------------ SQ-23 */

struct attempt {
    const char *path;
    int checkpoints, refused;
};

/* In the midst of a checkpoint: can anybody write? */
static void try_to_write(void *argument)
{
    struct attempt *attempt = argument;
    sqlite3 *handle;
    assert_int_equal(sqlite3_open_v2(attempt->path, &handle, SQLITE_OPEN_READWRITE, NULL),
                     SQLITE_OK);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    attempt->checkpoints++;
    if (sqlite3_exec(handle, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_BUSY)
        attempt->refused++;
    sqlite3_close(handle);
}

static int64_t pragma(struct mrt_sqlite_db *db, const char *text, char *result, size_t size)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    snprintf(result, size, "%s", (const char *)sqlite3_column_text(statement, 0));
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static void test_sq_23_no_one_commits_during_a_checkpoint(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    char text[32], path[128];
    struct stat status;
    int without = 0;
    struct attempt attempt = {.path = place->path};
    port_open_session(&client, place->uri);
    struct mrt_sqlite_db *db = &((struct mrt_sqlite_store *)client.store)->db;
    pragma(db, "PRAGMA journal_mode", text, sizeof text);
    assert_string_equal(text, "wal");
    assert_int_equal(pragma(db, "PRAGMA synchronous", text, sizeof text), 1); /* NORMAL */
    assert_int_equal(pragma(db, "PRAGMA wal_autocheckpoint", text, sizeof text), 0);
    assert_int_equal(pragma(db, "PRAGMA page_size", text, sizeof text), 1024);
    assert_int_equal(sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &without),
                     SQLITE_OK);
    assert_int_equal(without, 1);
    db->checkpointing = try_to_write;
    db->checkpointing_argument = &attempt;
    for (int i = 0; i < 3000; i++)
        take_fence(&client, "q");
    print_message("%d checkpoints in 6000 commits\n", attempt.checkpoints);
    assert_in_range(attempt.checkpoints, 4, 12);
    assert_int_equal(attempt.refused, attempt.checkpoints);
    snprintf(path, sizeof path, "%s-wal", place->path);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size < 1300 * 1024); /* it starts anew each time */
    port_stop(&client);
    port_close(&client);
    check_integrity(place->path);
}

/* A reader that never ends keeps the log from starting anew: no reason to sync at each commit. */
static void test_sq_23_a_stuck_reader_costs_no_sync_storm(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    sqlite3 *handle;
    struct attempt attempt = {.path = place->path};
    port_open_session(&client, place->uri);
    struct mrt_sqlite_db *db = &((struct mrt_sqlite_store *)client.store)->db;
    assert_int_equal(sqlite3_open_v2(place->path, &handle, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(
        sqlite3_exec(handle, "BEGIN; SELECT count(*) FROM mortise_ticket", NULL, NULL, NULL),
        SQLITE_OK);
    db->checkpointing = try_to_write;
    db->checkpointing_argument = &attempt;
    for (int i = 0; i < 2000; i++)
        take_fence(&client, "q");
    assert_in_range(attempt.checkpoints, 2, 8);
    sqlite3_close(handle);
    port_stop(&client);
    port_close(&client);
    check_integrity(place->path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(int count, char **arguments)
{
    if (count >= 5 && strcmp(arguments[1], "child") == 0) {
        copy_file(arguments[3], arguments[4], INT64_MAX);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        TEST(test_c_fences_rise_across_power_cuts),
        TEST(test_c_fences_rise_across_power_cuts_and_checkpoints),
        TEST(test_c_an_acquire_needs_no_sync),
        TEST(test_sq_25_a_reboot_ends_all_sessions),
        TEST(test_c11_a_detached_ticket_survives_a_reboot),
        TEST(test_gn06_a_delay_outlives_a_power_cut),
        TEST(test_gn06_a_delay_of_this_host_alone_waits_for_no_disk),
        TEST(test_sq_25_clock_steps_change_nothing),
        TEST(test_sq_23_no_one_commits_during_a_checkpoint),
        TEST(test_sq_23_a_stuck_reader_costs_no_sync_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
