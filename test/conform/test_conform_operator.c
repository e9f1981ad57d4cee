/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's requests of a store: the clauses (m) and (n) of the port. The letter in a
 * test's name is the clause.
 *
 *   test_conform_operator memory: | sqlite: | URI
 */
#include "cmocka_all.h"
#include "conform/port_two.h"
#include "core/recipe.h"
#include "core/rule.h"

#define LONG_ENOUGH (10 * MRT_SECOND)

/* For tests of waiters in an order, or of several holders. */
static void need_queue(void)
{
    if (!first.ops->capabilities.fair)
        skip();
}

/* Looks at a ticket, and attends to it from now on. */
static struct mrt_event watch_closely(struct port_client *client, const char *queue,
                                      const struct mrt_event *view)
{
    struct mrt_command command = port_command(client, MRT_REFRESH);
    command.ticket = view->ticket;
    command.fence = view->fence;
    command.queue = queue;
    command.watch_closely = true;
    return port_send(client, &command);
}

static int revoke(struct port_client *client, const char *queue, uint64_t fence)
{
    return client->ops->revoke(client->store, queue, fence);
}

static int break_ticket(struct port_client *client, const char *queue, uint64_t fence)
{
    return client->ops->break_ticket(client->store, queue, fence);
}

/* Waits until a request later than `before` is told, as the engine does; its number. */
static uint64_t await_request(struct port_client *client, const char *queue,
                              const struct mrt_event *view, uint64_t before)
{
    struct mrt_event event;
    mrt_time until = mrt_time_now() + LONG_ENOUGH;
    while (mrt_time_now() < until) {
        if (port_wait(client, MRT_REVOKED, view->ticket, 0, &event) && event.revoked > before)
            return event.revoked;
        if (!port_wait_told(client, view->ticket, 20 * MRT_MILLISECOND))
            continue;
        event = watch_closely(client, queue, view);
        if (event.revoked > before)
            return event.revoked;
    }
    fail_msg("no request was told");
    return 0;
}

static void test_m_f22_a_session_that_attends_gets_a_revoke_request(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "m/1", port_id());
    struct mrt_event view = watch_closely(&first, "m/1", &held);
    assert_int_equal(view.type, MRT_VIEW);
    assert_int_equal(view.revoked, 0);
    assert_int_equal(revoke(&second, "m/1", held.fence), MORTISE_OK);
    uint64_t number = await_request(&first, "m/1", &held, 0);
    assert_int_equal(revoke(&second, "m/1", 0), MORTISE_OK);
    assert_true(await_request(&first, "m/1", &held, number) > number);
    view = watch_closely(&first, "m/1", &held); /* nothing has changed */
    assert_true(mrt_rule_grants(view.weight_ahead, 1, 1));
    assert_int_equal(view.fence, held.fence);
    assert_true(view.revoked > number);
    assert_int_equal(port_tickets(&second, "m/1"), 1);
}

static void test_m_f22_an_earlier_request_reaches_a_session_that_attends_later(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "m/2", port_id());
    assert_int_equal(revoke(&second, "m/2", 0), MORTISE_OK);
    struct mrt_event view = watch_closely(&first, "m/2", &held);
    if (view.revoked == 0)
        await_request(&first, "m/2", &held, 0);
    assert_true(watch_closely(&first, "m/2", &held).revoked > 0);
}

static void test_m_only_a_holder_gets_a_revoke_request(void **state)
{
    (void)state;
    need_queue();
    assert_int_equal(revoke(&second, "m/3", 0), MORTISE_ENOTHELD);
    struct mrt_event held = port_append(&first, "m/3", port_id());
    struct mrt_event waiting = port_append(&second, "m/3", port_id());
    assert_int_equal(revoke(&first, "m/3", waiting.fence), MORTISE_ENOTHELD);
    assert_int_equal(revoke(&first, "m/3", held.fence + 1), MORTISE_ENOTHELD);
    assert_int_equal(revoke(&first, "m/3x", held.fence), MORTISE_ENOTHELD);
    assert_int_equal(watch_closely(&first, "m/3", &held).revoked, 0);
    assert_int_equal(watch_closely(&second, "m/3", &waiting).revoked, 0);
}

static void test_m_all_holders_get_a_revoke_request(void **state)
{
    (void)state;
    need_queue();
    const uint64_t readers = UINT64_C(1) << 31;
    struct mrt_event one = port_append_weight(&first, "m/4", port_id(), "read-write", readers, 1);
    struct mrt_event two = port_append_weight(&second, "m/4", port_id(), "read-write", readers, 1);
    struct mrt_event late =
        port_append_weight(&second, "m/4", port_id(), "read-write", readers, readers);
    watch_closely(&first, "m/4", &one);
    watch_closely(&second, "m/4", &two);
    watch_closely(&second, "m/4", &late);
    assert_int_equal(revoke(&first, "m/4", 0), MORTISE_OK);
    await_request(&first, "m/4", &one, 0);
    await_request(&second, "m/4", &two, 0);
    assert_int_equal(watch_closely(&second, "m/4", &late).revoked, 0);
    uint64_t before = watch_closely(&first, "m/4", &one).revoked;
    assert_int_equal(revoke(&first, "m/4", two.fence), MORTISE_OK);
    await_request(&second, "m/4", &two, before);
    assert_int_equal(watch_closely(&first, "m/4", &one).revoked, before);
}

/* Nobody attends yet: a request waits for a client that does, even if the ticket changes meanwhile.
 */
static void expect_request_kept(struct port_client *client, const char *queue,
                                const struct mrt_event *held)
{
    if (watch_closely(client, queue, held).revoked == 0)
        await_request(client, queue, held, 0);
    assert_true(watch_closely(client, queue, held).revoked > 0);
}

static void test_m_e5_a_request_outlasts_a_downgrade(void **state)
{
    (void)state;
    need_queue();
    const uint64_t writer = UINT64_C(1) << 31;
    struct mrt_event held =
        port_append_weight(&first, "m/5", port_id(), "read-write", writer, writer);
    assert_int_equal(revoke(&second, "m/5", held.fence), MORTISE_OK);
    assert_int_equal(port_lighten(&first, "m/5", &held, 1).type, MRT_VIEW);
    expect_request_kept(&first, "m/5", &held);
}

/* The second has been let in, and does not know it yet. */
static void test_m_f13_a_request_outlasts_the_grant_of_permits(void **state)
{
    (void)state;
    need_queue();
    struct mrt_event held = port_append_weight(&first, "m/6", port_id(), "semaphore", 2, 2);
    struct mrt_event waits = port_append_weight(&second, "m/6", port_id(), "semaphore", 2, 1);
    port_remove(&first, "m/6", held.ticket, held.fence);
    assert_int_equal(revoke(&first, "m/6", 0), MORTISE_OK);
    port_wait_granted(&second, "m/6", waits, 1, 2, LONG_ENOUGH);
    expect_request_kept(&second, "m/6", &waits);
}

static void test_m_g3_a_request_outlasts_a_new_value(void **state)
{
    (void)state;
    if (!first.ops->values)
        return;
    struct mrt_event leads = port_append_value(&first, "m/7", "one");
    assert_int_equal(revoke(&second, "m/7", leads.fence), MORTISE_OK);
    assert_int_equal(port_set_value(&first, "m/7", &leads, "two").type, MRT_VIEW);
    expect_request_kept(&first, "m/7", &leads);
}

static void test_n_a_broken_ticket_is_gone_and_the_next_is_granted(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "n/1", port_id());
    watch_closely(&first, "n/1", &held);
    struct mrt_event waiting = port_append(&second, "n/1", port_id());
    assert_int_equal(break_ticket(&second, "n/1", held.fence), MORTISE_OK);
    if (first.ops->capabilities.notify)
        assert_true(port_wait(&first, MRT_WAKE, held.ticket, LONG_ENOUGH, NULL));
    port_wait_granted(&second, "n/1", waiting, 1, 1, LONG_ENOUGH);
    assert_int_equal(port_refresh(&first, "n/1", &held).type, MRT_GONE);
    assert_int_equal(port_remove(&first, "n/1", held.ticket, held.fence).type, MRT_REMOVED);
    assert_int_equal(port_tickets(&second, "n/1"), 1);
}

static void test_n_a_broken_waiter_is_gone(void **state)
{
    (void)state;
    need_queue();
    struct mrt_event held = port_append(&first, "n/2", port_id());
    struct mrt_event waiting = port_append(&second, "n/2", port_id());
    struct mrt_event behind = port_append(&first, "n/2", port_id());
    assert_int_equal(break_ticket(&first, "n/2", waiting.fence), MORTISE_OK);
    assert_int_equal(port_refresh(&second, "n/2", &waiting).type, MRT_GONE);
    port_remove(&first, "n/2", held.ticket, held.fence);
    port_wait_granted(&first, "n/2", behind, 1, 1, LONG_ENOUGH);
}

static void test_n_a_break_with_another_fence_or_name_breaks_nothing(void **state)
{
    (void)state;
    struct mrt_event old = port_append(&first, "n/3", port_id());
    port_remove(&first, "n/3", old.ticket, old.fence);
    assert_int_equal(break_ticket(&second, "n/3", old.fence), MORTISE_ENOTHELD);
    struct mrt_event held = port_append(&first, "n/3", port_id());
    const uint64_t wrong[] = {old.fence, 0, held.fence + 1, held.fence - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(break_ticket(&second, "n/3", wrong[i]), MORTISE_ENOTHELD);
    assert_int_equal(break_ticket(&second, "n/3x", held.fence), MORTISE_ENOTHELD);
    assert_int_equal(port_refresh(&first, "n/3", &held).type, MRT_VIEW);
    assert_int_equal(port_tickets(&second, "n/3"), 1);
}

static void test_n_a_ticket_of_ones_own_is_broken_too(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "n/4", port_id());
    assert_int_equal(break_ticket(&first, "n/4", held.fence), MORTISE_OK);
    assert_int_equal(port_refresh(&first, "n/4", &held).type, MRT_GONE);
}

struct shown {
    uint64_t fence;
    int count;
};

static int note_fence(void *argument, const struct mrt_listed *row)
{
    struct shown *shown = argument;
    shown->fence = row->entry.fence;
    shown->count++;
    return 0;
}

static void test_n_k_a_lighter_ticket_is_shown_and_broken_by_the_fence_it_has_kept(void **state)
{
    (void)state;
    need_queue();
    struct mrt_event held = port_append_weight(&first, "n/5", port_id(), mrt_read_write.kind,
                                               mrt_read_write.capacity, MRT_WRITER);
    struct mrt_event lighter = port_lighten(&first, "n/5", &held, MRT_READER);
    assert_int_equal(lighter.fence, held.fence);
    for (int i = 0; i < 2; i++) { /* also after a request, which is written into its node */
        struct shown shown = {0};
        assert_int_equal(second.ops->list(second.store, "n/5", NULL, note_fence, &shown),
                         MORTISE_OK);
        assert_int_equal(shown.count, 1);
        assert_int_equal(shown.fence, held.fence);
        assert_int_equal(revoke(&second, "n/5", held.fence), MORTISE_OK);
    }
    assert_int_equal(break_ticket(&second, "n/5", held.fence), MORTISE_OK);
    assert_int_equal(port_refresh(&first, "n/5", &held).type, MRT_GONE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_m_f22_a_session_that_attends_gets_a_revoke_request),
        TEST(test_m_f22_an_earlier_request_reaches_a_session_that_attends_later),
        TEST(test_m_only_a_holder_gets_a_revoke_request),
        TEST(test_m_all_holders_get_a_revoke_request),
        TEST(test_m_e5_a_request_outlasts_a_downgrade),
        TEST(test_m_f13_a_request_outlasts_the_grant_of_permits),
        TEST(test_m_g3_a_request_outlasts_a_new_value),
        TEST(test_n_a_broken_ticket_is_gone_and_the_next_is_granted),
        TEST(test_n_a_broken_waiter_is_gone),
        TEST(test_n_a_break_with_another_fence_or_name_breaks_nothing),
        TEST(test_n_a_ticket_of_ones_own_is_broken_too),
        TEST(test_n_k_a_lighter_ticket_is_shown_and_broken_by_the_fence_it_has_kept),
    };
    return run_on_place(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
