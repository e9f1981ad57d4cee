/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of a process's death on its locks, and of fork: a holder that is killed is noticed
 * immediately, also where file events are refused; a forked child neither drops nor keeps its
 * parent's locks. And a release is told where no descriptor is left for another socket.
 */
#include "cmocka_all.h"
#include "live/sqlite_place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS 50
#define LONG_ENOUGH (60 * MRT_SECOND) /* nobody looks by the clock */

/* ----------------------------------------------------------------- helpers */

static int hold(const char *uri)
{
    struct port_client client;
    port_open_session(&client, uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    helper_say(view.weight_ahead == 0 ? "held" : "waits");
    helper_sleep();
}

/* Holds, and has a child that goes on living. */
static int hold_and_fork(const char *uri, pid_t (*how)(void))
{
    struct port_client client;
    char line[32];
    port_open_session(&client, uri);
    port_append(&client, "q", port_id());
    pid_t child = how();
    if (child == 0)
        helper_sleep();
    snprintf(line, sizeof line, "%d", child);
    helper_say(line);
    helper_sleep();
}

/* Opens the database by hand and looks whether `uri`, here a path, is locked by SQLite. */
static int probe(const char *path)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETLK, &lock), 0);
    helper_say(lock.l_type == F_UNLCK ? "unlocked" : "locked");
    return 0;
}

static int child(const char *role, const char *uri)
{
    if (strcmp(role, "hold") == 0)
        return hold(uri);
    if (strcmp(role, "fork") == 0)
        return hold_and_fork(uri, fork);
    if (strcmp(role, "_Fork") == 0)
        return hold_and_fork(uri, _Fork);
    return probe(uri);
}

/* ------------------------------------------------------------------- death */

static int compare(const void *a, const void *b)
{
    mrt_time x = *(const mrt_time *)a, y = *(const mrt_time *)b;
    return (x > y) - (x < y);
}

static void test_b_a_killed_holder_is_noticed_at_once(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    mrt_time times[KILLS];
    port_open_session(&client, place->uri);
    for (int i = 0; i < KILLS; i++) {
        struct helper helper;
        helper_start(&helper, "hold", place->uri, NULL);
        helper_expect(&helper, "held");
        struct mrt_event view = port_append(&client, "q", port_id());
        assert_true(view.weight_ahead > 0);
        mrt_time began = mrt_time_now();
        helper_kill(&helper);
        assert_true(port_wait_told(&client, view.ticket, LONG_ENOUGH));
        times[i] = mrt_time_now() - began;
        view = port_refresh(&client, "q", &view);
        assert_int_equal(view.weight_ahead, 0);
        port_remove(&client, "q", view.ticket, view.fence);
    }
    qsort(times, KILLS, sizeof times[0], compare);
    print_message("killed to woken: median %.2f ms, longest %.2f ms of %d\n",
                  (double)times[KILLS / 2] / 1e6, (double)times[KILLS - 1] / 1e6, KILLS);
    port_stop(&client);
    port_close(&client);
}

static void test_b_a_killed_waiter_does_not_break_the_chain(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    struct helper holder, waiter;
    helper_start(&holder, "hold", place->uri, NULL);
    helper_expect(&holder, "held");
    helper_start(&waiter, "hold", place->uri, NULL);
    helper_expect(&waiter, "waits");
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    helper_kill(&waiter);
    port_wait_told(&client, view.ticket, 200 * MRT_MILLISECOND);
    assert_true(port_refresh(&client, "q", &view).weight_ahead > 0);
    helper_kill(&holder);
    port_wait_granted(&client, "q", view, 1, 1, LONG_ENOUGH);
    port_stop(&client);
    port_close(&client);
}

/* Takes all inotify instances that this user may still have; their number. */
static int exhaust_inotify(int *descriptors, int room)
{
    int count = 0;
    while (count < room && (descriptors[count] = inotify_init1(IN_CLOEXEC)) >= 0)
        count++;
    return count;
}

static void test_b_a_killed_holder_is_noticed_without_file_events(void **state)
{
    enum { ROOM = 1000 };
    static int descriptors[ROOM];
    const struct place *place = *state;
    struct port_client client;
    struct helper helper;
    helper_start(&helper, "hold", place->uri, NULL);
    helper_expect(&helper, "held");
    struct mrt_event view;
    bool refused;
    int count = 0, tries = 0;
    for (;;) { /* the limit is the user's: another test may give one back before ours is refused */
        port_open_session(&client, place->uri);
        count += exhaust_inotify(descriptors + count, ROOM - count);
        refused = count < ROOM && errno == EMFILE;
        view = port_append(&client, "q", port_id());
        if (!refused || view.recheck <= 150 * MRT_MILLISECOND || ++tries == 20)
            break;
        port_stop(&client);
        port_close(&client);
    }
    if (refused) {
        assert_true(view.recheck <= 150 * MRT_MILLISECOND);
        helper_kill(&helper);
        assert_false(port_wait_told(&client, view.ticket, view.recheck));
        assert_int_equal(port_refresh(&client, "q", &view).weight_ahead, 0);
    } else {
        helper_kill(&helper);
    }
    while (count > 0)
        close(descriptors[--count]);
    port_stop(&client);
    port_close(&client);
    if (!refused)
        skip();
}

/* Allows no descriptor more than there are; the limit as it was. */
static struct rlimit exhaust_descriptors(void)
{
    struct rlimit before, low;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(lowest >= 0);
    close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    return before;
}

static void test_c16_a_release_wakes_a_waiter_with_no_descriptor_left(void **state)
{
    const struct place *place = *state;
    struct port_client holder, waiters[2];
    port_open_session(&holder, place->uri);
    struct mrt_event held = port_append(&holder, "q", port_id());
    for (int i = 0; i < 2; i++)
        port_open_session(&waiters[i], place->uri);
    struct mrt_event view = port_append(&waiters[0], "q", port_id());
    port_remove(&holder, "q", held.ticket, held.fence); /* makes the one socket there is */
    assert_true(port_wait_told(&waiters[0], view.ticket, LONG_ENOUGH));
    held = port_append(&holder, "r", port_id());
    view = port_append(&waiters[1], "r", port_id());
    struct rlimit before = exhaust_descriptors();
    port_remove(&holder, "r", held.ticket, held.fence);
    bool told = port_wait_told(&waiters[1], view.ticket, LONG_ENOUGH);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true(told);
    for (int i = 0; i < 2; i++)
        port_close(&waiters[i]);
    port_close(&holder);
}

static void test_b_tickets_of_a_crashed_process_are_swept_up(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    struct helper helper;
    char path[160];
    port_open_session(&client, place->uri); /* makes the mark of the last sweep */
    helper_start(&helper, "hold", place->uri, NULL);
    helper_expect(&helper, "held");
    helper_kill(&helper);
    assert_int_equal(query(place->path, "SELECT count(*) FROM mortise_ticket"), 2);
    snprintf(path, sizeof path, "%s-sessions", place->path);
    age_tree(path);
    struct mrt_event mine = port_append(&client, "mine", port_id());
    struct port_client other;
    port_open_session(&other, place->uri);
    assert_int_equal(query(place->path, "SELECT count(*) FROM mortise_ticket"), 2);
    assert_int_equal(port_tickets(&other, "q"), 0);
    assert_int_equal(port_refresh(&client, "mine", &mine).type, MRT_VIEW); /* alive, if old */
    port_stop(&other);
    port_close(&other);
    port_stop(&client);
    port_close(&client);
}

/* -------------------------------------------------------------------- fork */

static void wait_for_child(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_sq_22_a_forked_childs_end_frees_nothing(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    struct helper helper;
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    pid_t pid = fork();
    if (pid == 0) {
        client.ops->abandon(client.store); /* as mortise_close does there */
        _exit(0);
    }
    wait_for_child(pid);
    helper_start(&helper, "hold", place->uri, NULL);
    helper_expect(&helper, "waits");
    rest(100 * MRT_MILLISECOND);
    assert_int_equal(port_refresh(&client, "q", &view).weight_ahead, 0);
    assert_int_equal(port_tickets(&client, "q"), 2);
    helper_kill(&helper);
    port_remove(&client, "q", view.ticket, view.fence);
    port_stop(&client);
    port_close(&client);
    check_integrity(place->path);
}

static void test_sq_22_a_forked_child_does_not_keep_the_lock(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    struct helper helper;
    char line[32];
    helper_start(&helper, "fork", place->uri, NULL);
    helper_read(&helper, line, sizeof line);
    pid_t grandchild = (pid_t)strtol(line, NULL, 10);
    assert_true(grandchild > 0);
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    assert_true(view.weight_ahead > 0);
    helper_kill(&helper);
    port_wait_granted(&client, "q", view, 1, 1, LONG_ENOUGH);
    assert_int_equal(kill(grandchild, SIGKILL), 0); /* it lived all the time */
    port_stop(&client);
    port_close(&client);
    check_integrity(place->path);
}

static void test_sq_22_a_guard_made_by_underscore_fork_keeps_it(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    struct helper helper;
    char line[32];
    helper_start(&helper, "_Fork", place->uri, NULL);
    helper_read(&helper, line, sizeof line);
    pid_t grandchild = (pid_t)strtol(line, NULL, 10);
    assert_true(grandchild > 0);
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    helper_kill(&helper);
    rest(200 * MRT_MILLISECOND);
    assert_true(port_refresh(&client, "q", &view).weight_ahead > 0);
    assert_int_equal(kill(grandchild, SIGKILL), 0);
    port_wait_granted(&client, "q", view, 1, 1, LONG_ENOUGH);
    port_stop(&client);
    port_close(&client);
}

static void test_sq_22_a_forked_child_cannot_open_its_parents_database(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    pid_t pid = fork();
    if (pid == 0) {
        struct port_client second;
        bool refused = port_try_open(&second, place->uri, "") == MORTISE_EFORKED;
        client.ops->abandon(client.store);
        bool still = port_try_open(&second, place->uri, "") == MORTISE_EFORKED;
        _exit(refused && still ? 0 : 1);
    }
    wait_for_child(pid);
    port_stop(&client);
    port_close(&client);
    pid = fork();
    if (pid == 0) { /* closed before the fork: no trace of it */
        struct port_client second;
        _exit(port_try_open(&second, place->uri, "") == 0 ? 0 : 1);
    }
    wait_for_child(pid);
}

static void test_sq_22_closing_one_client_drops_no_lock_of_another(void **state)
{
    const struct place *place = *state;
    struct port_client one, two;
    struct helper helper;
    port_open_session(&one, place->uri);
    port_open_session(&two, place->uri);
    port_append(&two, "q", port_id());
    port_stop(&two);
    port_close(&two);
    helper_start(&helper, "probe", place->path, NULL);
    helper_expect(&helper, "locked");
    helper_finish(&helper);
    port_stop(&one);
    port_close(&one);
    helper_start(&helper, "probe", place->path, NULL);
    helper_expect(&helper, "unlocked"); /* or the question was the wrong one */
    helper_finish(&helper);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(int count, char **arguments)
{
    if (count >= 4 && strcmp(arguments[1], "child") == 0)
        return child(arguments[2], arguments[3]);
    const struct CMUnitTest tests[] = {
        TEST(test_b_a_killed_holder_is_noticed_at_once),
        TEST(test_b_a_killed_waiter_does_not_break_the_chain),
        TEST(test_b_a_killed_holder_is_noticed_without_file_events),
        TEST(test_c16_a_release_wakes_a_waiter_with_no_descriptor_left),
        TEST(test_b_tickets_of_a_crashed_process_are_swept_up),
        TEST(test_sq_22_a_forked_childs_end_frees_nothing),
        TEST(test_sq_22_a_forked_child_does_not_keep_the_lock),
        TEST(test_sq_22_a_guard_made_by_underscore_fork_keeps_it),
        TEST(test_sq_22_a_forked_child_cannot_open_its_parents_database),
        TEST(test_sq_22_closing_one_client_drops_no_lock_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
