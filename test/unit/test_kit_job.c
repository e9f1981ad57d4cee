/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and the outbox of the stores' kit: what is delivered, in which order, and what is copied. */
#include "cmocka_all.h"

#include "store/kit/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The events delivered, one letter each, and the newest of them. */
static char delivered[32];
static struct mrt_event newest;
static char detail[MRT_JOB_DETAIL_SIZE];
static char value[16];

static void deliver(void *context, const struct mrt_event *event)
{
    size_t length = strlen(delivered);
    (void)context;
    delivered[length] = (char)('a' + event->type);
    delivered[length + 1] = '\0';
    newest = *event;
    snprintf(detail, sizeof detail, "%s", event->detail ? event->detail : "none");
    snprintf(value, sizeof value, "%.*s", (int)event->value_size,
             event->value ? (const char *)event->value : "");
}

static struct mrt_outbox outbox;
static const struct mrt_command command = {
    .type = MRT_APPEND, .serial = 7, .session = {1, 2}, .ticket = {3, 4}, .queue = "q"};

static int begin(void **state)
{
    (void)state;
    delivered[0] = '\0';
    mrt_outbox_init(&outbox, (struct mrt_sink){.deliver = deliver});
    return 0;
}

static int end(void **state)
{
    (void)state;
    mrt_outbox_free(&outbox);
    return 0;
}

static struct mrt_job *new_job(const struct mrt_command *of)
{
    struct mrt_job *job = mrt_job_new(sizeof *job, of);
    assert_non_null(job);
    return job;
}

static void test_answers_are_delivered_in_order(void **state)
{
    (void)state;
    mrt_outbox_answer(&outbox, new_job(&command), MRT_VIEW);
    assert_true(mrt_outbox_add(&outbox, (struct mrt_event){.type = MRT_WAKE}));
    mrt_outbox_answer(&outbox, new_job(&command), MRT_REMOVED);
    assert_string_equal(delivered, "");
    mrt_outbox_deliver(&outbox);
    const char expected[] = {'a' + MRT_VIEW, 'a' + MRT_WAKE, 'a' + MRT_REMOVED, '\0'};
    assert_string_equal(delivered, expected);
    assert_int_equal(newest.serial, 7);
    assert_true(mrt_id_equal(newest.session, command.session));
    assert_true(mrt_id_equal(newest.ticket, command.ticket));
    mrt_outbox_deliver(&outbox);
    assert_string_equal(delivered, expected);
}

static void test_a_failure_has_its_detail_and_nothing_else_has(void **state)
{
    (void)state;
    struct mrt_job *job = new_job(&command);
    mrt_job_set_detail(job, "one");
    mrt_job_set_detail(job, "%s and two", job->detail);
    mrt_outbox_fail(&outbox, job, MORTISE_ESTORE);
    mrt_outbox_deliver(&outbox);
    assert_int_equal(newest.type, MRT_FAILED);
    assert_int_equal(newest.error, MORTISE_ESTORE);
    assert_string_equal(detail, "one and two");
    job = new_job(&command);
    mrt_job_set_detail(job, "of a refusal before");
    mrt_outbox_answer(&outbox, job, MRT_VIEW);
    mrt_outbox_deliver(&outbox);
    assert_string_equal(detail, "none");
    mrt_outbox_fail(&outbox, new_job(&command), MORTISE_ESTORE);
    mrt_outbox_deliver(&outbox);
    assert_string_equal(detail, "none");
}

static void test_values_and_details_are_copies(void **state)
{
    (void)state;
    char bytes[] = "bytes", why[] = "why";
    struct mrt_job *job = new_job(&command);
    assert_true(mrt_job_set_value(job, bytes, 5));
    mrt_outbox_answer(&outbox, job, MRT_HOLDER);
    bytes[0] = 'x';
    mrt_outbox_deliver(&outbox);
    assert_string_equal(value, "bytes");
    assert_true(mrt_outbox_add(
        &outbox, (struct mrt_event){
                     .type = MRT_SESSION_LOST, .value = bytes, .value_size = 2, .detail = why}));
    bytes[0] = why[0] = 'y';
    mrt_outbox_deliver(&outbox);
    assert_string_equal(value, "xy");
    assert_string_equal(detail, "why");
}

static void test_a_value_of_no_bytes_is_one(void **state)
{
    (void)state;
    struct mrt_job *job = new_job(&command);
    assert_true(mrt_job_set_value(job, NULL, 0));
    assert_non_null(job->event.value);
    mrt_outbox_answer(&outbox, job, MRT_CELL);
}

static void test_commands_of_an_ended_session(void **state)
{
    (void)state;
    static const struct {
        enum mrt_command_type type;
        enum mrt_event_type answer;
    } rows[] = {{MRT_STOP, MRT_STOPPED},   {MRT_REMOVE, MRT_REMOVED}, {MRT_REFRESH, MRT_GONE},
                {MRT_LIGHTEN, MRT_GONE},   {MRT_SET_VALUE, MRT_GONE}, {MRT_APPEND, MRT_FAILED},
                {MRT_RENEW, MRT_FAILED},   {MRT_DETACH, MRT_FAILED},  {MRT_OBSERVE, MRT_FAILED},
                {MRT_CELL_GET, MRT_FAILED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mrt_command late = command;
        late.type = rows[i].type;
        mrt_outbox_refuse(&outbox, new_job(&late));
        mrt_outbox_deliver(&outbox);
        assert_int_equal(newest.type, rows[i].answer);
        assert_int_equal(newest.serial, 7);
        assert_int_equal(newest.error, rows[i].answer == MRT_FAILED ? MORTISE_ELOST : MORTISE_OK);
        assert_string_equal(detail, rows[i].answer == MRT_FAILED ? MRT_REFUSAL_ENDED : "none");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answers_are_delivered_in_order, begin, end),
        cmocka_unit_test_setup_teardown(test_a_failure_has_its_detail_and_nothing_else_has, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_values_and_details_are_copies, begin, end),
        cmocka_unit_test_setup_teardown(test_a_value_of_no_bytes_is_one, begin, end),
        cmocka_unit_test_setup_teardown(test_commands_of_an_ended_session, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
