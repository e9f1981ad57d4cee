/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's hand drive; see core_fixture.h. */
#include "core_fixture.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static int successes_left = -1;

void core_fail_allocations(int successes)
{
    successes_left = successes;
}

static bool fails(void)
{
    if (successes_left < 0)
        return false;
    if (successes_left == 0)
        return true;
    successes_left--;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

struct mrt_engine_config core_config(void)
{
    return (struct mrt_engine_config){
        .seed = {1, 2},
        .fair_after = 1 * MS,
        .budget = 2 * MS,
        .budget_count = 4,
        .margin_min = 10 * MS,
    };
}

void core_open(struct core *core, const struct mrt_engine_config *config)
{
    struct mrt_engine_config chosen = config ? *config : core_config();
    memset(core, 0, sizeof *core);
    core->now = MRT_SECOND;
    core->shown.fence = 100;
    core->shown.fence_span = 1000;
    assert_int_equal(mrt_engine_new(&chosen, &core->engine), MORTISE_OK);
    assert_int_equal(mrt_engine_queue(core->engine, "q", &mrt_mutex, &core->queue), MORTISE_OK);
}

void core_open_recipe(struct core *core, const struct mrt_recipe *recipe)
{
    core_open(core, NULL);
    mrt_queue_put(core->queue);
    assert_int_equal(mrt_engine_queue(core->engine, "s", recipe, &core->queue), MORTISE_OK);
}

void core_free(struct core *core)
{
    core_fail_allocations(-1);
    mrt_engine_free(core->engine);
}

struct mrt_waiter core_waiter(uint64_t owner)
{
    return (struct mrt_waiter){.owner = owner, .deadline = MRT_TIME_NEVER};
}

struct mrt_waiter core_asking(uint64_t owner, uint64_t weight)
{
    struct mrt_waiter waiter = core_waiter(owner);
    waiter.weight = weight;
    return waiter;
}

void core_acquire(struct core *core, struct mrt_waiter *waiter)
{
    mrt_engine_acquire(core->engine, core->queue, waiter, core->now);
}

struct mrt_command *core_fetch(struct core *core, enum mrt_command_type type)
{
    assert_true(mrt_engine_has_command(core->engine));
    struct mrt_command *command = mrt_engine_next_command(core->engine, core->now);
    assert_non_null(command);
    assert_int_equal(command->type, type);
    return command;
}

void core_no_command(struct core *core)
{
    assert_null(mrt_engine_next_command(core->engine, core->now));
    assert_false(mrt_engine_has_command(core->engine));
}

void core_settled(struct core *core, const struct mrt_waiter *waiter)
{
    assert_ptr_equal(mrt_engine_next_settled(core->engine), waiter);
}

void core_none_settled(struct core *core)
{
    core_settled(core, NULL);
}

void core_done(struct core *core, const struct mrt_waiter *waiter, int error)
{
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    assert_int_equal(waiter->error, error);
    core_settled(core, waiter);
}

void core_event(struct core *core, const struct mrt_event *event)
{
    mrt_engine_event(core->engine, event, core->now);
}

/* Each ticket has a fence of its own, unless the test has said which. */
static void number_ticket(struct core *core, const struct mrt_command *command)
{
    if (command->type != MRT_APPEND || command->adopt ||
        mrt_id_equal(command->ticket, core->appended))
        return;
    if (core->shown.fence == core->appended_fence && core->shown.fence > 0)
        core->shown.fence += core->shown.fence_span;
    core->appended = command->ticket;
    core->appended_fence = core->shown.fence;
}

static struct mrt_event answer_to(struct core *core, const struct mrt_command *command)
{
    number_ticket(core, command);
    struct mrt_event event = core->shown;
    event.serial = command->serial;
    event.session = command->session;
    event.ticket = command->ticket;
    event.lease = core->lease;
    return event;
}

void core_answer(struct core *core, const struct mrt_command *command, enum mrt_event_type type)
{
    struct mrt_event event = answer_to(core, command);
    event.type = type;
    core_event(core, &event);
}

void core_fail(struct core *core, const struct mrt_command *command, int error)
{
    struct mrt_event event = answer_to(core, command);
    event.type = MRT_FAILED;
    event.error = error;
    core_event(core, &event);
}

void core_view(struct core *core, const struct mrt_command *command, uint64_t weight_ahead)
{
    struct mrt_event event = answer_to(core, command);
    event.type = MRT_VIEW;
    event.weight_ahead = weight_ahead;
    core_event(core, &event);
}

void core_wake(struct core *core, struct mrt_id ticket)
{
    struct mrt_event event = {
        .type = MRT_WAKE, .session = core->engine->session.id, .ticket = ticket};
    core_event(core, &event);
}

void core_revoke(struct core *core, struct mrt_id ticket, uint64_t number)
{
    const struct mrt_event event = {.type = MRT_REVOKED,
                                    .session = core->engine->session.id,
                                    .ticket = ticket,
                                    .revoked = number};
    core_event(core, &event);
}

void core_session_lost(struct core *core)
{
    struct mrt_event event = {
        .type = MRT_SESSION_LOST, .session = core->engine->session.id, .error = MORTISE_ELOST};
    core_event(core, &event);
}

void core_pass(struct core *core, mrt_time duration)
{
    core->now += duration;
    mrt_engine_tick(core->engine, core->now);
}

void core_start(struct core *core)
{
    core_answer(core, core_fetch(core, MRT_START), MRT_STARTED);
}

void core_grant(struct core *core, struct mrt_waiter *waiter)
{
    core_acquire(core, waiter);
    if (core->engine->session.state == MRT_SESSION_STARTING)
        core_start(core);
    core_view(core, core_fetch(core, MRT_APPEND), 0);
    if (waiter->state == MRT_WAITER_WOKEN) {
        core_settled(core, waiter);
        mrt_engine_retry(core->engine, waiter, core->now);
        assert_int_equal(waiter->error, MORTISE_OK);
    } else {
        core_done(core, waiter, MORTISE_OK);
    }
    assert_non_null(waiter->hold);
}

void core_queue_behind(struct core *core, struct mrt_waiter *waiter)
{
    core_acquire(core, waiter);
    if (core->engine->session.state == MRT_SESSION_STARTING)
        core_start(core);
    core_view(core, core_fetch(core, MRT_APPEND), 1);
    assert_int_equal(core->queue->ticket->state, MRT_TICKET_WAITING);
    assert_int_equal(waiter->state, MRT_WAITER_WAITING);
}

void core_lose_append(struct core *core, struct mrt_waiter *waiter)
{
    core_acquire(core, waiter);
    core_start(core);
    core_answer(core, core_fetch(core, MRT_APPEND), MRT_UNKNOWN);
}

int core_release(struct core *core, struct mrt_hold *hold, uint64_t owner)
{
    return mrt_engine_release(core->engine, hold, hold->generation, owner, core->now);
}

static void answer_in_order(struct core *core, const struct mrt_command *command)
{
    switch (command->type) {
    case MRT_START:
        core_answer(core, command, MRT_STARTED);
        break;
    case MRT_STOP:
        core_answer(core, command, MRT_STOPPED);
        break;
    case MRT_RENEW:
        core_answer(core, command, MRT_RENEWED);
        break;
    case MRT_REMOVE:
        core_answer(core, command, MRT_REMOVED);
        break;
    default:
        core_view(core, command, 0);
    }
}

void core_settle_all(struct core *core)
{
    struct mrt_command *command;
    while ((command = mrt_engine_next_command(core->engine, core->now)))
        answer_in_order(core, command);
    while (mrt_engine_next_settled(core->engine))
        ;
}
