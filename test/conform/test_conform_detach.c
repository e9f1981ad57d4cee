/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that are nobody's: the clause (q) of the port. Requirement C11.
 *
 *   test_conform_detach memory: | sqlite: | URI
 */
#include "cmocka_all.h"
#include "conform/port_two.h"
#include "core/recipe.h"
#include "core/rule.h"

#define LONG_ENOUGH (10 * MRT_SECOND)

static struct mrt_event detach_as(struct port_client *client, const char *queue,
                                  const struct mrt_event *view, struct mrt_id detached_id,
                                  uint64_t weight)
{
    struct mrt_command command = port_command(client, MRT_DETACH);
    command.ticket = view->ticket;
    command.fence = view->fence;
    command.queue = queue;
    command.kind = port_kind;
    command.weight = weight;
    command.detached_id = detached_id;
    return port_send(client, &command);
}

static struct mrt_event detach(struct port_client *client, const char *queue,
                               const struct mrt_event *view, struct mrt_id detached_id)
{
    return detach_as(client, queue, view, detached_id, 1);
}

static struct mrt_event adopt_after(struct port_client *client, const char *queue,
                                    struct mrt_id detached_id, const char *kind, uint64_t capacity,
                                    uint64_t weight, uint64_t last_fence)
{
    struct mrt_command command = port_command(client, MRT_APPEND);
    command.ticket = detached_id;
    command.queue = queue;
    command.kind = kind;
    command.capacity = capacity;
    command.weight = weight;
    command.adopt = true;
    command.last_fence = last_fence;
    return port_send(client, &command);
}

static struct mrt_event adopt_as(struct port_client *client, const char *queue,
                                 struct mrt_id detached_id, const char *kind, uint64_t capacity,
                                 uint64_t weight)
{
    return adopt_after(client, queue, detached_id, kind, capacity, weight, 0);
}

static struct mrt_event adopt(struct port_client *client, const char *queue,
                              struct mrt_id detached_id)
{
    return adopt_as(client, queue, detached_id, port_kind, 1, 1);
}

/* Appends and detaches; its view when it was granted. */
static struct mrt_event leave_one(struct port_client *client, const char *queue,
                                  struct mrt_id detached_id)
{
    struct mrt_event held = port_append(client, queue, port_id());
    assert_int_equal(held.type, MRT_VIEW);
    assert_int_equal(detach(client, queue, &held, detached_id).type, MRT_VIEW);
    return held;
}

static void expect_granted(const struct mrt_event *view)
{
    assert_int_equal(view->type, MRT_VIEW);
    assert_int_equal(view->weight_ahead, 0);
}

static void expect_not_there(const struct mrt_event *answer)
{
    assert_int_equal(answer->type, MRT_FAILED);
    assert_int_equal(answer->error, MORTISE_ENOTHELD);
}

static void test_q_c11_a_detached_ticket_outlives_its_session(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = leave_one(&first, "q/1", detached_id);
    port_stop(&first);
    port_close(&first);
    port_open_session(&first, uri);
    assert_int_equal(port_try(&first, "q/1", port_id()).type, MRT_BLOCKED);
    struct mrt_event view = adopt(&second, "q/1", detached_id);
    expect_granted(&view);
    assert_int_equal(view.fence, held.fence);
    assert_int_equal(view.fence_span, held.fence_span);
    assert_int_equal(port_remove(&second, "q/1", detached_id, view.fence).type, MRT_REMOVED);
    view = port_append(&first, "q/1", port_id());
    expect_granted(&view);
    assert_true(view.fence >= held.fence + held.fence_span);
}

static void test_q_c11_a_client_that_dies_leaves_its_detached_ticket(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    leave_one(&first, "q/2", detached_id);
    port_close(&first); /* no STOP */
    port_open_session(&first, uri);
    assert_int_equal(port_try(&first, "q/2", port_id()).type, MRT_BLOCKED);
    struct mrt_event view = adopt(&first, "q/2", detached_id);
    expect_granted(&view);
}

static void test_q_a_repeated_detach_or_adopt_is_recognised(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = leave_one(&first, "q/3", detached_id);
    assert_int_equal(detach(&first, "q/3", &held, detached_id).type, MRT_VIEW);
    struct mrt_event view = adopt(&second, "q/3", detached_id);
    expect_granted(&view);
    view = adopt(&second, "q/3", detached_id);
    expect_granted(&view);
    assert_int_equal(port_tickets(&first, "q/3"), 1);
    assert_int_equal(detach(&first, "q/3", &held, detached_id).type, MRT_GONE); /* another's now */
}

static void test_q_only_the_token_and_name_of_a_detached_ticket_adopt_it(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event answer = adopt(&second, "q/4", detached_id);
    expect_not_there(&answer);
    leave_one(&first, "q/4", detached_id);
    answer = adopt(&second, "q/4", port_id());
    expect_not_there(&answer);
    answer = adopt(&second, "q/other", detached_id);
    expect_not_there(&answer);
    answer = adopt(&second, "q/4", detached_id);
    expect_granted(&answer);
    answer = adopt(&first, "q/4", detached_id);
    expect_not_there(&answer);
    assert_int_equal(port_tickets(&first, "q/other"), 0); /* nothing was appended instead */
    assert_int_equal(port_tickets(&first, "q/4"), 1);
}

static void test_q_an_adopted_ticket_ends_with_its_session(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    leave_one(&first, "q/5", detached_id);
    struct mrt_event view = adopt(&second, "q/5", detached_id);
    expect_granted(&view);
    struct mrt_event waiting = port_append(&first, "q/5", port_id());
    assert_true(waiting.weight_ahead > 0);
    port_stop(&second);
    port_wait_granted(&first, "q/5", waiting, 1, 1, LONG_ENOUGH);
}

static void test_q_a_waiter_is_woken_when_the_adopter_dies(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    leave_one(&first, "q/6", detached_id);
    struct mrt_event waiting = port_append(&first, "q/6", port_id());
    assert_true(waiting.weight_ahead > 0);
    struct mrt_event view = adopt(&second, "q/6", detached_id);
    expect_granted(&view);
    port_close(&second);
    port_wait_granted(&first, "q/6", waiting, 1, 1, LONG_ENOUGH);
    port_open_session(&second, uri);
}

static void test_q_a_ticket_detached_again_outlives_its_adopter(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    leave_one(&first, "q/7", detached_id);
    struct mrt_event view = adopt(&first, "q/7", detached_id);
    expect_granted(&view);
    assert_int_equal(detach(&first, "q/7", &view, detached_id).type, MRT_VIEW); /* as it was */
    assert_int_equal(detach(&first, "q/7", &view, detached_id).type, MRT_VIEW);
    port_stop(&first);
    port_start(&first);
    view = adopt(&second, "q/7", detached_id);
    expect_granted(&view);
}

static void test_q_the_identity_before_a_detach_means_nothing(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = leave_one(&first, "q/8", detached_id);
    assert_int_equal(port_refresh(&first, "q/8", &held).type, MRT_GONE);
    assert_int_equal(port_remove(&first, "q/8", held.ticket, held.fence).type, MRT_REMOVED);
    assert_int_equal(port_tickets(&first, "q/8"), 1);
    assert_int_equal(detach(&first, "q/8", &held, port_id()).type, MRT_GONE);
}

static void test_q_a_ticket_of_another_kind_or_weight_is_not_adopted(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = port_append_weight(&first, "q/9", port_id(), "semaphore", 3, 2);
    assert_int_equal(detach_as(&first, "q/9", &held, detached_id, 2).type, MRT_VIEW);
    const struct {
        const char *kind;
        uint64_t capacity, weight;
    } others[] = {{"mutex", 3, 2}, {"semaphore", 4, 2}, {"semaphore", 3, 1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct mrt_event answer = adopt_as(&second, "q/9", detached_id, others[i].kind,
                                           others[i].capacity, others[i].weight);
        assert_int_equal(answer.type, MRT_FAILED);
        assert_int_equal(answer.error, MORTISE_EMISMATCH);
    }
    struct mrt_event view = adopt_as(&second, "q/9", detached_id, "semaphore", 3, 2);
    expect_granted(&view);
}

static void test_q_a_ticket_is_detached_with_the_weight_of_the_command(void **state)
{
    (void)state;
    const char *kind = mrt_read_write.kind;
    struct mrt_id detached_id = port_id();
    struct mrt_event held =
        port_append_weight(&first, "q/10", port_id(), kind, MRT_WRITER, MRT_WRITER);
    struct mrt_event reader =
        port_append_weight(&second, "q/10", port_id(), kind, MRT_WRITER, MRT_READER);
    assert_false(mrt_rule_grants(reader.weight_ahead, MRT_READER, MRT_WRITER));
    assert_int_equal(detach_as(&first, "q/10", &held, detached_id, MRT_READER).type, MRT_VIEW);
    port_wait_told(&second, reader.ticket, LONG_ENOUGH);
    struct mrt_event view = port_refresh(&second, "q/10", &reader);
    assert_true(mrt_rule_grants(view.weight_ahead, MRT_READER, MRT_WRITER));
    view = adopt_as(&first, "q/10", detached_id, kind, MRT_WRITER, MRT_READER);
    expect_granted(&view);
}

static int find_detached(void *argument, const struct mrt_listed *row)
{
    *(int *)argument += row->entry.detached;
    return 0;
}

static void test_q_c11_an_operator_sees_and_breaks_a_detached_ticket(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = leave_one(&first, "q/11", detached_id);
    struct mrt_event waiting = port_append(&first, "q/11", port_id());
    int detached;
    assert_int_equal(port_list(&second, "q/11", find_detached, &detached), MORTISE_OK);
    assert_int_equal(detached, 1);
    assert_int_equal(second.ops->revoke(second.store, "q/11", held.fence), MORTISE_OK);
    assert_int_equal(second.ops->break_ticket(second.store, "q/11", held.fence), MORTISE_OK);
    port_wait_granted(&first, "q/11", waiting, 1, 1, LONG_ENOUGH);
    struct mrt_event answer = adopt(&second, "q/11", detached_id);
    expect_not_there(&answer);
    detached = 0;
    assert_int_equal(second.ops->list(second.store, "q/11", NULL, find_detached, &detached), 0);
    assert_int_equal(detached, 0);
}

/* Clients that held it before may have had other fences of it. */
static void test_q_an_adopted_ticket_owns_the_last_fence_that_it_had(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = port_append(&first, "q/13", port_id());
    struct mrt_event next = port_append(&second, "q/13", port_id());
    port_remove(&first, "q/13", held.ticket, held.fence);
    port_wait_granted(&second, "q/13", next, 1, 1, LONG_ENOUGH);
    next = port_refresh(&second, "q/13", &next);
    expect_granted(&next);
    assert_int_equal(detach(&second, "q/13", &next, detached_id).type, MRT_VIEW);
    uint64_t last = next.fence + next.fence_span - 1;
    struct mrt_event view = adopt_after(&first, "q/13", detached_id, port_kind, 1, 1, last);
    expect_granted(&view);
    assert_in_range(last, view.fence, view.fence + view.fence_span - 1);
}

static void test_q_a_session_that_has_ended_detaches_nothing(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "q/12", port_id());
    port_stop(&first);
    struct mrt_event answer = detach(&first, "q/12", &held, port_id());
    assert_int_equal(answer.type, MRT_FAILED);
    assert_int_equal(answer.error, MORTISE_ELOST);
    port_start(&first);
    assert_int_equal(port_tickets(&first, "q/12"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_q_c11_a_detached_ticket_outlives_its_session),
        TEST(test_q_c11_a_client_that_dies_leaves_its_detached_ticket),
        TEST(test_q_a_repeated_detach_or_adopt_is_recognised),
        TEST(test_q_only_the_token_and_name_of_a_detached_ticket_adopt_it),
        TEST(test_q_an_adopted_ticket_ends_with_its_session),
        TEST(test_q_a_waiter_is_woken_when_the_adopter_dies),
        TEST(test_q_a_ticket_detached_again_outlives_its_adopter),
        TEST(test_q_the_identity_before_a_detach_means_nothing),
        TEST(test_q_a_ticket_of_another_kind_or_weight_is_not_adopted),
        TEST(test_q_a_ticket_is_detached_with_the_weight_of_the_command),
        TEST(test_q_c11_an_operator_sees_and_breaks_a_detached_ticket),
        TEST(test_q_an_adopted_ticket_owns_the_last_fence_that_it_had),
        TEST(test_q_a_session_that_has_ended_detaches_nothing),
    };
    return run_on_place(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
