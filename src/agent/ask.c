/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of connections to the store: GET and CAS of cells, and LEADER. Each is a request of the
 * engine, which nobody waits for: the reply follows when the answer comes, and the connection's
 * commands behind it wait as behind a LOCK. CANCEL ends it.
 *
 * A question is a lock without a name: it is its connection's `waiting`, and in no table.
 */
#include "agent/lock.h"
#include "agent/rights.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE (5 * MRT_SECOND) /* with a store that does not answer */

/* A number and the value that goes with it; 0 and nil: there is none. */
static void reply_value(uint64_t number, const struct mrt_answer *answer, struct mrt_reply *reply)
{
    mrt_reply_array(reply, 2);
    mrt_reply_integer(reply, (int64_t)number);
    if (number > 0)
        mrt_reply_bulk(reply, (const char *)answer->value, answer->value_size);
    else
        mrt_reply_bytes(reply, "$-1\r\n", 5);
}

static void reply_leader(const struct mrt_answer *answer, struct mrt_reply *reply)
{
    reply_value(answer->fence, answer, reply);
}

static void reply_cell(const struct mrt_answer *answer, struct mrt_reply *reply)
{
    reply_value(answer->version, answer, reply);
}

static void reply_version(const struct mrt_answer *answer, struct mrt_reply *reply)
{
    mrt_reply_integer(reply, (int64_t)answer->version);
}

void mrt_ask(struct mrt_peer *peer, struct mrt_command *wanted, const struct mrt_resp_word *name,
             struct mrt_reply *reply)
{
    char full[MRT_FULL_NAME_SIZE];
    struct mrt_agent *agent = peer->agent;
    const struct mrt_store_ops *ops = agent->driver.ops;
    bool is_leader = wanted->type == MRT_OBSERVE;
    unsigned verb = is_leader ? MRT_ACCESS_LIST : MRT_ACCESS_CELLS;
    if (is_leader ? !ops->values : !ops->cells) {
        mrt_reply_error(reply, "STORE this store keeps no %s", is_leader ? "values" : "cells");
        return;
    }
    if (!mrt_lock_name(peer, name, full, reply) || !mrt_peer_may(peer, verb, name, reply))
        return;
    struct mrt_lock *question =
        mrt_lock_new_question(peer, is_leader                      ? reply_leader
                                    : wanted->type == MRT_CELL_GET ? reply_cell
                                                                   : reply_version);
    if (!question) {
        mrt_reply_error(reply, "FULL the agent has no memory for another question");
        return;
    }
    mrt_time now = mrt_time_now();
    wanted->queue = full;
    question->call.waiter.deadline = mrt_time_add(now, PATIENCE);
    peer->waiting = question;
    mrt_engine_request(agent->driver.engine, wanted, question->answer, &question->call.waiter, now);
    if (question->call.waiter.state == MRT_WAITER_DONE && !question->call.waiter.settled)
        mrt_lock_finish(question, reply);
}
