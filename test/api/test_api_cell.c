/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: values with versions, written by comparing, and guarded by fences. */
#include "api_two.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDERS 50
#define ROUNDS 10

static mortise_cell get(const char *name)
{
    mortise_cell cell;
    check(mortise_cell_get(other, name, &cell) == MORTISE_OK);
    return cell;
}

static void expect(const char *name, uint64_t version, const char *value)
{
    mortise_cell cell = get(name);
    check(cell.version == version);
    check(cell.size == strlen(value) && memcmp(cell.value, value, cell.size) == 0);
}

static int cas(const char *name, uint64_t version, const char *value, uint64_t fence,
               uint64_t *written)
{
    return mortise_cell_cas(client, name, version, value, strlen(value), fence, written);
}

static void test_k1_a_write_names_the_version_it_changes(void **state)
{
    (void)state;
    uint64_t first, second;
    expect("a/cell", 0, "");
    assert_int_equal(cas("a/cell", 3, "x", 0, NULL), MORTISE_ECONFLICT);
    assert_int_equal(cas("a/cell", 0, "one", 0, &first), MORTISE_OK);
    assert_true(first > 0);
    expect("a/cell", first, "one");
    assert_int_equal(cas("a/cell", 0, "x", 0, NULL), MORTISE_ECONFLICT);
    assert_int_equal(cas("a/cell", first, "two", 0, &second), MORTISE_OK);
    assert_int_equal(cas("a/cell", first, "x", 0, NULL), MORTISE_ECONFLICT);
    assert_int_equal(mortise_error_kind_of(MORTISE_ECONFLICT), MORTISE_KIND_BUSY);
    expect("a/cell", second, "two");
    assert_int_equal(mortise_cell_delete(client, "a/cell", first, 0), MORTISE_ECONFLICT);
    assert_int_equal(mortise_cell_delete(client, "a/cell", second, 0), MORTISE_OK);
    expect("a/cell", 0, "");
    assert_int_equal(cas("a/cell", second, "x", 0, NULL), MORTISE_ECONFLICT);
    assert_int_equal(cas("a/cell", 0, "", 0, &first), MORTISE_OK); /* an empty one is one */
    assert_true(first > second);
    expect("a/cell", first, "");
}

static void test_k1_a_superseded_holder_writes_no_cell(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "guarded"), *taken = api_lock(other, "guarded");
    mortise_hold hold = api_acquire(lock);
    uint64_t old = mortise_hold_fence(hold), version;
    assert_int_equal(cas("guarded", 0, "old", old, &version), MORTISE_OK);
    api_release(hold); /* or it was lost while its holder stood still */
    hold = api_acquire(taken);
    uint64_t new = mortise_hold_fence(hold);
    assert_true(new > old);
    assert_int_equal(cas("guarded", version, "new", new, &version), MORTISE_OK);
    assert_int_equal(cas("guarded", version, "late", old, NULL), MORTISE_ESTALE);
    assert_int_equal(mortise_cell_delete(client, "guarded", version, old), MORTISE_ESTALE);
    assert_int_equal(mortise_error_kind_of(MORTISE_ESTALE), MORTISE_KIND_LOST);
    expect("guarded", version, "new");
    assert_int_equal(get("guarded").fence, new);
    assert_int_equal(mortise_cell_delete(client, "guarded", version, new), MORTISE_OK);
    assert_int_equal(cas("guarded", 0, "late", old, NULL), MORTISE_ESTALE);
    api_release(hold);
}

/* ------------------------------------------------------------------ update */

static int add_one(void *argument, mortise_cell *cell)
{
    long number = 0;
    (void)argument;
    cell->value[cell->size] = '\0';
    sscanf((const char *)cell->value, "%ld", &number);
    cell->size = (size_t)snprintf((char *)cell->value, 32, "%ld", number + 1);
    return 0;
}

static void *add(void *argument)
{
    mortise_client *own = api_open(0);
    for (int i = 0; i < ROUNDS; i++)
        check(mortise_cell_update(own, "counter", add_one, argument, 0, -1) == MORTISE_OK);
    api_close(own);
    return NULL;
}

/* Each of fifty adds 1 many times; processes where the store has them. */
static void test_k1_the_counter_is_exact(void **state)
{
    (void)state;
    pid_t children[ADDERS];
    pthread_t threads[ADDERS];
    char expected[16];
    if (!api_spans_processes())
        other = api_open(0); /* what is in memory ends with its last user */
    for (int i = 0; i < ADDERS; i++) {
        if (!api_spans_processes()) {
            threads[i] = api_thread(add, NULL);
            continue;
        }
        children[i] = fork();
        check(children[i] >= 0);
        if (children[i] == 0) {
            add(NULL);
            _exit(0);
        }
    }
    for (int i = 0; i < ADDERS; i++) {
        int status = 0;
        if (!api_spans_processes())
            api_join(threads[i]);
        else
            check(waitpid(children[i], &status, 0) == children[i]);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    if (api_spans_processes())
        other = api_open(0);
    snprintf(expected, sizeof expected, "%d", ADDERS * ROUNDS);
    mortise_cell cell = get("counter");
    assert_int_equal(cell.size, strlen(expected));
    assert_memory_equal(cell.value, expected, cell.size);
    api_close(other);
}

static int write_between(void *argument, mortise_cell *cell)
{
    int *times = argument;
    if (++*times <= 3)
        check(mortise_cell_cas(other, "between", cell->version, "x", 1, 0, NULL) == MORTISE_OK);
    cell->size = 1;
    cell->value[0] = 'u';
    return 0;
}

static int always_between(void *argument, mortise_cell *cell)
{
    int never = -1000000;
    (void)argument;
    return write_between(&never, cell);
}

static int stop(void *argument, mortise_cell *cell)
{
    (void)cell;
    return *(int *)argument;
}

static int too_long(void *argument, mortise_cell *cell)
{
    (void)argument;
    cell->size = MORTISE_VALUE_MAX + 1;
    return 0;
}

static void test_k3_an_update_goes_on_until_its_time_is_up(void **state)
{
    (void)state;
    int times = 0, code = 42;
    assert_int_equal(mortise_cell_update(client, "between", write_between, &times, 0, -1), 0);
    assert_int_equal(times, 4);
    mortise_cell cell = get("between");
    assert_int_equal(cell.value[0], 'u');
    int error = MORTISE_EUNKNOWN; /* a slow store's time may be up in the middle of a write */
    for (int i = 0; i < 20 && error == MORTISE_EUNKNOWN; i++)
        error = mortise_cell_update(client, "between", always_between, NULL, 0, 200);
    assert_int_equal(error, MORTISE_ETIMEOUT);
    cell = get("between");
    assert_int_equal(cell.value[0], 'x');
    assert_int_equal(mortise_cell_update(client, "between", stop, &code, 0, -1), 42);
    assert_int_equal(mortise_cell_update(client, "between", too_long, NULL, 0, -1),
                     MORTISE_EINVALID);
    assert_int_equal(get("between").version, cell.version);
    assert_int_equal(mortise_cell_update(client, "between", add_one, NULL, 9, -1), MORTISE_OK);
    assert_int_equal(mortise_cell_update(client, "between", add_one, NULL, 8, -1), MORTISE_ESTALE);
}

/* ------------------------------------------------------------------ the rest */

static void in_a_callback(void *argument, int error, mortise_hold hold)
{
    mortise_cell cell;
    (void)error;
    atomic_store((_Atomic int *)argument, mortise_cell_get(client, "c", &cell));
    api_release(hold);
}

static _Atomic bool changing, changed;

static int change_slowly(void *argument, mortise_cell *cell)
{
    (void)argument, (void)cell;
    changing = true;
    api_sleep_ms(300);
    changed = true;
    return MORTISE_OK;
}

static void *update_closed(void *closing)
{
    check(mortise_cell_update(closing, "closed", change_slowly, NULL, 0, -1) == MORTISE_ECLOSED);
    return NULL;
}

static void test_k3_a_close_waits_for_an_update(void **state)
{
    (void)state;
    mortise_client *closing = api_open(0);
    pthread_t thread = api_thread(update_closed, closing);
    while (!changing)
        api_sleep_ms(1);
    api_close(closing);
    assert_true(changed);
    api_join(thread);
    expect("closed", 0, "");
}

static void test_wrong_arguments_of_cells_are_refused(void **state)
{
    (void)state;
    char value[MORTISE_VALUE_MAX + 1] = {0};
    mortise_cell cell;
    _Atomic int result = 1;
    mortise_lock *lock = api_lock(client, "c");
    assert_int_equal(mortise_cell_get(NULL, "c", &cell), MORTISE_EINVALID);
    assert_int_equal(mortise_cell_get(client, "c", NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_cell_get(client, "", &cell), MORTISE_ENAME);
    assert_int_equal(mortise_cell_cas(client, "c", 0, value, sizeof value, 0, NULL),
                     MORTISE_EINVALID);
    assert_int_equal(mortise_cell_cas(client, "c", 0, NULL, 1, 0, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_cell_update(client, "c", NULL, NULL, 0, 0), MORTISE_EINVALID);
    assert_int_equal(mortise_cell_cas(client, "c", 0, value, MORTISE_VALUE_MAX, 0, NULL), 0);
    assert_int_equal(get("c").size, MORTISE_VALUE_MAX);
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, in_a_callback, &result, NULL),
                     MORTISE_OK);
    while (result == 1)
        api_sleep_ms(1);
    assert_int_equal(result, MORTISE_EDEADLOCK);
}

static int add_x(void *argument, mortise_cell *cell)
{
    (void)argument;
    cell->value[cell->size++] = 'x';
    return 0;
}

static void test_rd_21_a_hold_without_a_fence_guards_no_cell(void **state)
{
    (void)state;
    mortise_client *quorum;
    check(mortise_open("redlock:memory:cell-a,memory:cell-b,memory:cell-c", NULL, &quorum) == 0);
    mortise_hold hold = api_acquire(api_lock(quorum, "unfenced"));
    assert_int_equal(mortise_cell_cas_held(client, "unfenced", 0, "a", 1, hold, NULL),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "no fences"));
    assert_int_equal(mortise_cell_delete_held(client, "unfenced", 0, hold), MORTISE_ENOTSUPPORTED);
    assert_int_equal(mortise_cell_update_held(client, "unfenced", add_x, NULL, hold, 1000),
                     MORTISE_ENOTSUPPORTED);
    expect("unfenced", 0, "");
    api_release(hold);
    api_close(quorum);
}

static void test_k1_a_hold_guards_a_cell_while_it_is_held(void **state)
{
    (void)state;
    uint64_t version;
    mortise_hold hold = api_acquire(api_lock(client, "held"));
    assert_int_equal(mortise_cell_cas_held(client, "held", 0, "x", 1, hold, &version), 0);
    assert_int_equal(get("held").fence, mortise_hold_fence(hold));
    assert_int_equal(mortise_cell_update_held(client, "held", add_x, NULL, hold, 1000), 0);
    version = get("held").version;
    expect("held", version, "xx");
    api_release(hold);
    assert_int_equal(mortise_cell_delete_held(client, "held", version, hold), MORTISE_ENOTHELD);
    hold = api_acquire(api_lock(other, "held"));
    assert_int_equal(mortise_cell_delete_held(client, "held", version, hold), MORTISE_OK);
    expect("held", 0, "");
    api_release(hold);
}

static void test_cells_work_on_a_foreign_loop(void **state)
{
    (void)state;
    mortise_client *foreign = api_open(MORTISE_FOREIGN_LOOP);
    int times = 0;
    uint64_t version;
    assert_int_equal(mortise_cell_cas(foreign, "foreign", 0, "a", 1, 0, &version), MORTISE_OK);
    expect("foreign", version, "a");
    assert_int_equal(mortise_cell_update(foreign, "between", write_between, &times, 0, -1), 0);
    api_close(foreign);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_k1_the_counter_is_exact),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_k1_a_write_names_the_version_it_changes),
        cmocka_unit_test(test_k1_a_superseded_holder_writes_no_cell),
        cmocka_unit_test(test_k3_an_update_goes_on_until_its_time_is_up),
        cmocka_unit_test(test_k3_a_close_waits_for_an_update),
        cmocka_unit_test(test_rd_21_a_hold_without_a_fence_guards_no_cell),
        cmocka_unit_test(test_k1_a_hold_guards_a_cell_while_it_is_held),
        cmocka_unit_test(test_wrong_arguments_of_cells_are_refused),
        cmocka_unit_test(test_cells_work_on_a_foreign_loop),
    };
    int error = api_begin(argc, argv);
    if (error)
        return error;
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    return api_end(failed + cmocka_run_group_tests(tests, open_clients, close_clients));
}
