/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of the store port (core/store.h), continued: tickets with values, their observers,
 * and cells. The letter in a test's name is the clause.
 *
 *   test_conform_values memory: | sqlite: | URI
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "core/rule.h"

#include <stdio.h>
#include <string.h>

#define LONG_ENOUGH (10 * MRT_SECOND)

static const char *uri;
static struct port_client first, second, third;

static int open_three(void **state)
{
    (void)state;
    port_open_session(&first, uri);
    port_open_session(&second, uri);
    port_open_session(&third, uri);
    return 0;
}

static int close_three(void **state)
{
    (void)state;
    struct port_client *const clients[] = {&first, &second, &third};
    for (size_t i = 0; i < 3; i++)
        if (clients[i]->store) {
            assert_int_equal(port_stop(clients[i]).type, MRT_STOPPED);
            port_close(clients[i]);
        }
    return 0;
}

/* For tests of candidates that wait in an order, and of cells. */
static void need_queue(void)
{
    if (!first.ops->capabilities.fair)
        skip();
}

static void need_cells(void)
{
    if (!first.ops->cells)
        skip();
}

/* ------------------------------------------------------------------ observing */

static void expect_holder(struct port_client *client, const struct mrt_event *holder,
                          uint64_t fence, const char *value)
{
    assert_int_equal(holder->type, MRT_HOLDER);
    assert_int_equal(holder->fence, fence);
    assert_true(holder->recheck > 0);
    assert_string_equal(client->value, value);
}

/* Looks as an observer does, when told or after `recheck`, until it sees that. */
static void await_holder(struct port_client *client, const char *queue, struct mrt_id id,
                         uint64_t fence, const char *value)
{
    mrt_time until = mrt_time_now() + LONG_ENOUGH;
    for (;;) {
        struct mrt_event seen = port_observe(client, queue, id);
        assert_int_equal(seen.type, MRT_HOLDER);
        if (seen.fence == fence && strcmp(client->value, value) == 0)
            return;
        assert_true(mrt_time_now() < until);
        port_wait(client, MRT_CHANGED, id, seen.recheck, NULL);
    }
}

static void test_o_g4_the_first_ticket_and_its_value_are_shown(void **state)
{
    (void)state;
    struct mrt_event none = port_observe(&third, "o/1", (struct mrt_id){0, 0});
    expect_holder(&third, &none, 0, "");
    struct mrt_event leads = port_append_value(&first, "o/1", "one");
    port_append_value(&second, "o/1", "two");
    struct mrt_event seen = port_observe(&third, "o/1", (struct mrt_id){0, 0});
    expect_holder(&third, &seen, leads.fence, "one");
    seen = port_observe(&first, "o/1", (struct mrt_id){0, 0});
    expect_holder(&first, &seen, leads.fence, "one");
}

static void test_o_a_value_may_be_empty_or_long(void **state)
{
    (void)state;
    char value[MORTISE_VALUE_MAX + 1];
    memset(value, 'x', MORTISE_VALUE_MAX);
    value[MORTISE_VALUE_MAX] = '\0';
    struct mrt_event leads = port_append_value(&first, "o/2", value);
    struct mrt_event seen = port_observe(&second, "o/2", (struct mrt_id){0, 0});
    expect_holder(&second, &seen, leads.fence, value);
    assert_int_equal(port_set_value(&first, "o/2", &leads, "").type, MRT_VIEW);
    seen = port_observe(&second, "o/2", (struct mrt_id){0, 0});
    expect_holder(&second, &seen, leads.fence, "");
}

static void test_o_an_observer_is_told_of_every_change(void **state)
{
    (void)state;
    need_queue();
    struct mrt_id id = port_id();
    struct mrt_event none = port_observe(&third, "o/3", id);
    expect_holder(&third, &none, 0, "");
    struct mrt_event one = port_append_value(&first, "o/3", "one");
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/3", id, one.fence, "one");
    struct mrt_event two = port_append_value(&second, "o/3", "two");
    assert_int_equal(port_set_value(&first, "o/3", &one, "uno").type, MRT_VIEW);
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/3", id, one.fence, "uno");
    port_remove(&first, "o/3", one.ticket, one.fence);
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/3", id, two.fence, "two");
    port_remove(&second, "o/3", two.ticket, two.fence);
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/3", id, 0, "");
}

static void test_o_g3_an_observer_is_told_of_the_leaders_death(void **state)
{
    (void)state;
    need_queue();
    struct mrt_id id = port_id();
    port_append_value(&first, "o/4", "one");
    struct mrt_event two = port_append_value(&second, "o/4", "two");
    port_observe(&third, "o/4", id);
    port_close(&first);
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/4", id, two.fence, "two");
    port_close(&second); /* nobody is left who would find it dead */
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/4", id, 0, "");
}

static void test_o_an_observer_is_told_of_its_own_clients_change(void **state)
{
    (void)state;
    struct mrt_id id = port_id();
    struct mrt_event one = port_append_value(&first, "o/5", "one");
    port_observe(&first, "o/5", id);
    port_set_value(&first, "o/5", &one, "uno");
    assert_true(port_wait(&first, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&first, "o/5", id, one.fence, "uno");
}

static void test_o_several_observe_and_each_is_told(void **state)
{
    (void)state;
    struct mrt_id ids[] = {port_id(), port_id(), port_id()};
    port_observe(&second, "o/6", ids[0]);
    port_observe(&second, "o/6", ids[1]);
    port_observe(&third, "o/6", ids[2]);
    struct mrt_event one = port_append_value(&first, "o/6", "one");
    assert_true(port_wait(&second, MRT_CHANGED, ids[0], LONG_ENOUGH, NULL));
    assert_true(port_wait(&second, MRT_CHANGED, ids[1], LONG_ENOUGH, NULL));
    assert_true(port_wait(&third, MRT_CHANGED, ids[2], LONG_ENOUGH, NULL));
    await_holder(&third, "o/6", ids[2], one.fence, "one");
}

static void test_o_a_waiters_value_shows_once_it_leads(void **state)
{
    (void)state;
    need_queue();
    struct mrt_event one = port_append_value(&first, "o/7", "one");
    struct mrt_event two = port_append_value(&second, "o/7", "two");
    struct mrt_event again = port_set_value(&second, "o/7", &two, "dos");
    assert_int_equal(again.type, MRT_VIEW);
    assert_int_equal(again.fence, two.fence);
    assert_false(mrt_rule_grants(again.weight_ahead, 1, 1));
    port_remove(&first, "o/7", one.ticket, one.fence);
    await_holder(&third, "o/7", port_id(), two.fence, "dos");
}

static void test_o_nobody_sets_anothers_value(void **state)
{
    (void)state;
    struct mrt_event one = port_append_value(&first, "o/8", "one");
    assert_int_equal(port_set_value(&second, "o/8", &one, "mine").type, MRT_GONE);
    struct mrt_event seen = port_observe(&third, "o/8", (struct mrt_id){0, 0});
    expect_holder(&third, &seen, one.fence, "one");
    port_remove(&first, "o/8", one.ticket, one.fence);
    assert_int_equal(port_set_value(&first, "o/8", &one, "late").type, MRT_GONE);
}

static void test_o_n_an_observer_is_told_of_a_broken_ticket(void **state)
{
    (void)state;
    need_queue();
    struct mrt_id id = port_id();
    if (!third.ops->break_ticket)
        skip();
    struct mrt_event one = port_append_value(&first, "o/9", "one");
    struct mrt_event two = port_append_value(&second, "o/9", "two");
    port_observe(&third, "o/9", id);
    assert_int_equal(first.ops->break_ticket(first.store, "o/9", one.fence), MORTISE_OK);
    assert_true(port_wait(&third, MRT_CHANGED, id, LONG_ENOUGH, NULL));
    await_holder(&third, "o/9", id, two.fence, "two");
}

/* ------------------------------------------------------------------ cells */

/* Reads what another client has written. In an ensemble of ZooKeeper a server may show it a moment
   after the writer was told (doc/zookeeper.md). */
static struct mrt_event await_cell(struct port_client *client, const char *name, uint64_t version)
{
    struct mrt_event seen = port_cell_get(client, name);
    for (int tries = 0; strchr(uri, ',') && seen.version != version && tries < 1000; tries++)
        seen = port_cell_get(client, name);
    return seen;
}

static void expect_cell(struct port_client *client, const struct mrt_event *cell, uint64_t version,
                        const char *value)
{
    assert_int_equal(cell->type, MRT_CELL);
    assert_int_equal(cell->version, version);
    assert_string_equal(client->value, value);
}

static void expect_refused(struct mrt_event event, int error)
{
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, error);
}

static void test_p_k1_a_write_needs_the_version(void **state)
{
    (void)state;
    need_cells();
    struct mrt_event none = port_cell_get(&first, "p/1");
    expect_cell(&first, &none, 0, "");
    expect_refused(port_cell_set(&first, "p/1", 7, 0, "x"), MORTISE_ECONFLICT);
    struct mrt_event made = port_cell_set(&first, "p/1", 0, 0, "a");
    assert_int_equal(made.type, MRT_CELL);
    assert_true(made.version > 0);
    expect_refused(port_cell_set(&second, "p/1", 0, 0, "b"), MORTISE_ECONFLICT);
    struct mrt_event seen = await_cell(&second, "p/1", made.version);
    expect_cell(&second, &seen, made.version, "a");
    struct mrt_event changed = port_cell_set(&second, "p/1", made.version, 0, "b");
    assert_int_equal(changed.type, MRT_CELL);
    assert_true(changed.version > made.version);
    expect_refused(port_cell_set(&first, "p/1", made.version, 0, "c"), MORTISE_ECONFLICT);
    seen = await_cell(&first, "p/1", changed.version);
    expect_cell(&first, &seen, changed.version, "b");
}

static void test_p_versions_rise_across_a_deletion(void **state)
{
    (void)state;
    need_cells();
    struct mrt_event made = port_cell_set(&first, "p/2", 0, 0, "a");
    struct mrt_event deleted = port_cell_set(&first, "p/2", made.version, 0, NULL);
    assert_int_equal(deleted.type, MRT_CELL);
    assert_int_equal(deleted.version, 0);
    struct mrt_event none = await_cell(&second, "p/2", 0);
    expect_cell(&second, &none, 0, "");
    expect_refused(port_cell_set(&second, "p/2", made.version, 0, "b"), MORTISE_ECONFLICT);
    struct mrt_event again = port_cell_set(&second, "p/2", 0, 0, "a");
    assert_true(again.version > made.version);
    expect_refused(port_cell_set(&first, "p/2", made.version, 0, "b"), MORTISE_ECONFLICT);
}

static void test_p_k1_a_smaller_fence_is_refused(void **state)
{
    (void)state;
    need_cells();
    struct mrt_event cell = port_cell_set(&first, "p/3", 0, 100, "a");
    assert_int_equal(cell.type, MRT_CELL);
    expect_refused(port_cell_set(&second, "p/3", cell.version, 99, "b"), MORTISE_ESTALE);
    expect_refused(port_cell_set(&second, "p/3", 0, 99, "b"), MORTISE_ESTALE);
    cell = port_cell_set(&second, "p/3", cell.version, 0, "c");
    assert_int_equal(cell.type, MRT_CELL);
    expect_refused(port_cell_set(&second, "p/3", cell.version, 99, "b"), MORTISE_ESTALE);
    cell = port_cell_set(&first, "p/3", cell.version, 100, "d");
    cell = port_cell_set(&second, "p/3", cell.version, 101, "e");
    assert_int_equal(cell.type, MRT_CELL);
    expect_refused(port_cell_set(&first, "p/3", cell.version, 100, "f"), MORTISE_ESTALE);
    struct mrt_event seen = await_cell(&first, "p/3", cell.version);
    expect_cell(&first, &seen, cell.version, "e");
    assert_int_equal(seen.fence, 101);
    cell = port_cell_set(&second, "p/3", cell.version, 102, NULL);
    assert_int_equal(cell.type, MRT_CELL);
    expect_refused(port_cell_set(&first, "p/3", 0, 101, "g"), MORTISE_ESTALE);
}

static void test_p_a_write_sent_twice_is_done_once(void **state)
{
    (void)state;
    need_cells();
    struct mrt_command write = port_cell_command(&first, "p/4", 0, 0, "a");
    struct mrt_event made = port_send(&first, &write);
    write.serial = ++first.serial;
    struct mrt_event again = port_send(&first, &write);
    assert_int_equal(again.type, MRT_CELL);
    assert_int_equal(again.version, made.version);
    struct mrt_command removal = port_cell_command(&first, "p/4", made.version, 0, NULL);
    assert_int_equal(port_send(&first, &removal).type, MRT_CELL);
    removal.serial = ++first.serial;
    assert_int_equal(port_send(&first, &removal).type, MRT_CELL);
    write.serial = ++first.serial; /* not the newest any more, but there is no cell: it is done */
    assert_int_equal(port_send(&first, &write).type, MRT_CELL);
}

static void test_p_cells_and_locks_of_one_name_do_not_mix(void **state)
{
    (void)state;
    need_cells();
    struct mrt_event cell = port_cell_set(&first, "p/5", 0, 0, "a");
    assert_int_equal(cell.type, MRT_CELL);
    assert_int_equal(port_cell_set(&first, "p/5/below", 0, 0, "b").type, MRT_CELL);
    assert_int_equal(port_append(&second, "p/5", port_id()).type, MRT_VIEW);
    assert_int_equal(port_tickets(&second, "p/5"), 1);
    assert_int_equal(port_cell_set(&first, "p/5", cell.version, 0, NULL).type, MRT_CELL);
    assert_int_equal(port_cell_get(&first, "p/5/below").type, MRT_CELL);
    assert_string_equal(first.value, "b");
}

static void test_p_a_value_may_be_empty_or_long(void **state)
{
    (void)state;
    need_cells();
    char value[MORTISE_VALUE_MAX + 1];
    memset(value, 'x', MORTISE_VALUE_MAX);
    value[MORTISE_VALUE_MAX] = '\0';
    struct mrt_event cell = port_cell_set(&first, "p/6", 0, 0, "");
    struct mrt_event seen = await_cell(&second, "p/6", cell.version);
    expect_cell(&second, &seen, cell.version, "");
    assert_true(seen.version > 0);
    cell = port_cell_set(&first, "p/6", cell.version, 0, value);
    seen = await_cell(&second, "p/6", cell.version);
    expect_cell(&second, &seen, cell.version, value);
}

static void test_p_cells_outlive_sessions(void **state)
{
    (void)state;
    need_cells();
    struct mrt_event cell = port_cell_set(&first, "p/7", 0, 5, "a");
    assert_int_equal(port_stop(&first).type, MRT_STOPPED);
    expect_refused(port_cell_set(&first, "p/7", cell.version, 5, "b"), MORTISE_ELOST);
    expect_refused(port_cell_get(&first, "p/7"), MORTISE_ELOST);
    port_close(&first);
    struct mrt_event seen = await_cell(&second, "p/7", cell.version);
    expect_cell(&second, &seen, cell.version, "a");
    assert_int_equal(seen.fence, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_three, close_three)

static const struct CMUnitTest tests[] = {
    TEST(test_o_g4_the_first_ticket_and_its_value_are_shown),
    TEST(test_o_a_value_may_be_empty_or_long),
    TEST(test_o_an_observer_is_told_of_every_change),
    TEST(test_o_g3_an_observer_is_told_of_the_leaders_death),
    TEST(test_o_an_observer_is_told_of_its_own_clients_change),
    TEST(test_o_several_observe_and_each_is_told),
    TEST(test_o_a_waiters_value_shows_once_it_leads),
    TEST(test_o_nobody_sets_anothers_value),
    TEST(test_o_n_an_observer_is_told_of_a_broken_ticket),
    TEST(test_p_k1_a_write_needs_the_version),
    TEST(test_p_versions_rise_across_a_deletion),
    TEST(test_p_k1_a_smaller_fence_is_refused),
    TEST(test_p_a_write_sent_twice_is_done_once),
    TEST(test_p_cells_and_locks_of_one_name_do_not_mix),
    TEST(test_p_a_value_may_be_empty_or_long),
    TEST(test_p_cells_outlive_sessions),
};

int main(int count, char **arguments)
{
    const char *given = count > 1 ? arguments[1] : "memory:";
    uri = port_place_open(given);
    if (!uri)
        return 1;
    int failed = cmocka_run_group_tests_name(given, tests, NULL, NULL);
    port_place_close();
    return failed != 0;
}
