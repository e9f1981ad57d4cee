/* SPDX-License-Identifier: Apache-2.0 */
/* See noted.h. */
#include "live/noted.h"

#include "cmocka_all.h"
#include "live/zookeeper_place.h"

#include <inttypes.h>
#include <stdio.h>

static FILE *history;

static void note(int64_t at, const char *kind, unsigned process, uint64_t number, int64_t until)
{
    fprintf(history, "%" PRId64 " %s %u %" PRIu64 " %" PRId64 "\n", at, kind, process, number,
            until);
}

void noted_begin(void)
{
    history = tmpfile();
    assert_non_null(history);
}

mortise_hold noted_acquire(mortise_lock *lock, unsigned process)
{
    note(mortise_now_ns(), "ask", process, 0, 0);
    mortise_hold hold = zk_acquire(lock);
    int64_t at = mortise_now_ns();
    assert_true(mortise_is_held(hold));
    note(at, "got", process, mortise_hold_fence(hold),
         at + mortise_hold_remaining_ms(hold) * 1000000);
    return hold;
}

void noted_release(mortise_hold hold, unsigned process)
{
    note(mortise_now_ns(), "release", process, mortise_hold_fence(hold), 0);
    mortise_release(hold);
}

void noted_leave(unsigned process)
{
    note(mortise_now_ns(), "left", process, 0, 0);
}

const struct chaos_verdict *noted_judge(void)
{
    static struct chaos_verdict verdict;
    rewind(history);
    assert_int_equal(chaos_history_check(history, &verdict), 0);
    fclose(history);
    print_message("expected: %s\n", verdict.first);
    return &verdict;
}
