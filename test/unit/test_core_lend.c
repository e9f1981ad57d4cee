/* SPDX-License-Identifier: Apache-2.0 */
/* A session that others use: a host beside its engine, and the clients of a store that lends the
   session of its own. */
#include "core_fixture.h"

#define LEASE (1200 * MS)

static void open_with(struct core *core, mrt_time trusted_for)
{
    struct mrt_engine_config config = core_config();
    config.trusted_for = trusted_for;
    core_open(core, &config);
    core->lease = LEASE;
}

static void test_a_host_begins_the_session_and_reads_its_life(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_life life;
    open_with(&core, 0);
    core_no_command(&core);
    assert_false(mrt_engine_lives(core.engine, core.now, &life));
    mrt_time sent = core.now;
    mrt_engine_need_session(core.engine);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    core.now += 10 * MS;
    assert_false(mrt_engine_lives(core.engine, core.now, &life));
    core_answer(&core, start, MRT_STARTED);
    assert_true(mrt_engine_lives(core.engine, core.now, &life));
    assert_true(mrt_id_equal(life.session, start->session));
    assert_int_equal(life.lease, LEASE);
    assert_int_equal(life.proof, sent);
    assert_int_equal(life.heard, sent);
    mrt_engine_need_session(core.engine); /* there is one */
    core_no_command(&core);
    core.now = sent + LEASE;
    assert_false(mrt_engine_lives(core.engine, core.now, &life));
    core_free(&core);
}

static void test_an_engine_that_closes_begins_no_session(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 0);
    mrt_engine_close(core.engine, core.now);
    mrt_engine_need_session(core.engine);
    core_no_command(&core);
    core_free(&core);
}

static void close_with_a_session(mrt_time trusted_for, bool died)
{
    struct core core;
    open_with(&core, trusted_for);
    mrt_engine_need_session(core.engine);
    core_start(&core);
    mrt_engine_close(core.engine, core.now);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    assert_int_equal(stop->died, died);
    core_answer(&core, stop, MRT_STOPPED);
    core_free(&core);
}

/* The delay of what others leave behind counts, because one of them may have died. */
static void test_a_session_that_others_trusted_ends_as_that_of_the_dead(void **state)
{
    (void)state;
    close_with_a_session(0, false);
    close_with_a_session(MRT_SECOND, true);
}

/* An answer of a store that lends its session, with what that has proven and heard. */
static void answer_lent(struct core *core, const struct mrt_command *command,
                        enum mrt_event_type type, mrt_time proven, mrt_time heard)
{
    struct mrt_event event = {.type = type,
                              .serial = command->serial,
                              .session = command->session,
                              .lease = LEASE,
                              .proven = proven,
                              .heard = heard};
    core_event(core, &event);
}

static void test_a_lent_session_is_dated_by_the_lender_and_never_back(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_life life;
    open_with(&core, 0);
    mrt_engine_need_session(core.engine);
    mrt_time begun = core.now - 100 * MS;
    answer_lent(&core, core_fetch(&core, MRT_START), MRT_STARTED, begun, begun + 20 * MS);
    assert_true(mrt_engine_lives(core.engine, core.now, &life));
    assert_int_equal(life.proof, begun);
    assert_int_equal(life.heard, begun + 20 * MS);
    core_pass(&core, mrt_engine_next_time(core.engine) - core.now); /* a twelfth of the lease */
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    answer_lent(&core, renew, MRT_RENEWED, begun - 50 * MS, begun + 10 * MS); /* it came late */
    assert_true(mrt_engine_lives(core.engine, core.now, &life));
    assert_int_equal(life.proof, begun);
    assert_int_equal(life.heard, begun + 20 * MS);
    core_pass(&core, mrt_engine_next_time(core.engine) - core.now);
    renew = core_fetch(&core, MRT_RENEW);
    answer_lent(&core, renew, MRT_RENEWED, begun + 70 * MS, begun + 90 * MS);
    assert_true(mrt_engine_lives(core.engine, core.now, &life));
    assert_int_equal(life.proof, begun + 70 * MS);
    assert_int_equal(life.heard, begun + 90 * MS);
    core_free(&core);
}

static void test_a_lent_session_is_renewed_each_twelfth_of_the_lease(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 0);
    mrt_engine_need_session(core.engine);
    answer_lent(&core, core_fetch(&core, MRT_START), MRT_STARTED, core.now, core.now);
    for (int i = 0; i < 20; i++) {
        core_pass(&core, LEASE / 12 - 1);
        core_no_command(&core);
        core_pass(&core, 1);
        answer_lent(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED, core.now, core.now);
    }
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_host_begins_the_session_and_reads_its_life),
        cmocka_unit_test(test_an_engine_that_closes_begins_no_session),
        cmocka_unit_test(test_a_session_that_others_trusted_ends_as_that_of_the_dead),
        cmocka_unit_test(test_a_lent_session_is_dated_by_the_lender_and_never_back),
        cmocka_unit_test(test_a_lent_session_is_renewed_each_twelfth_of_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
