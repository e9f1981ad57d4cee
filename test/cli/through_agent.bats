#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run through an agent (MORTISE_URL=agent:...) over the embedded store. Where safety is
# tested, a lock of the kernel is the witness (stopped.bash).
load helper
load agent
load stopped

through_agent() {
    start_agent "$@"
    export MORTISE_URL="agent://$T/agent.sock"
}

# A holder that is hard to end, through the agent, and the next one, who has its store from $1.
holder_and_next() {
    start run --grace 300ms a -- bash -c "$WITNESS"
    HOLDER=$PID
    until_true test -e holding
    "${@:2}"
    MORTISE_URL="$1" start run a -- bash -c "$NEXT"
    NEXT_ONE=$PID
}

@test "a lock is taken through the agent, shown with its holder, and given back" {
    through_agent
    takes_and_leaves a
    start_holder b
    "$MORTISE" ls b | grep "pid $HOLDER"
}

@test "clients of the agent and of its store exclude each other" {
    through_agent
    start_holder a
    MORTISE_URL="sqlite:$T/locks.db" run -75 "$MORTISE" run -n a true
    kill "$HOLDER"
    finish "$HOLDER"
    export MORTISE_URL="sqlite:$T/locks.db"
    start_holder a
    MORTISE_URL="agent://$T/agent.sock" run -75 "$MORTISE" run -n a true
}

@test "a killed holder's lock passes when its command is dead" {
    through_agent
    holder_and_next "$MORTISE_URL" true
    end_round
}

@test "a holder that stands still keeps its lock for its lease, and its command ends first" {
    through_agent
    holder_and_next "$MORTISE_URL" true
    kill -STOP "$HOLDER"
    until_true test -e granted
    kill -CONT "$HOLDER"
    end_round
}

@test "an agent is killed while a holder stands still: a client of the store waits" {
    through_agent
    holder_and_next "sqlite:$T/locks.db" true
    kill -STOP "$HOLDER"
    kill -KILL "$AGENT"
    until_true test -e granted
    [ ! -e bad ]
    end_round
}

@test "an agent is killed and started again: who waits queues again" {
    through_agent
    holder_and_next "$MORTISE_URL" true
    until_true waiters a 1
    kill -KILL "$AGENT"
    wait "$AGENT" || true
    start_agent
    until_true test -e granted
    end_round
}

@test "an agent ends once the last hold was given back, and its successor serves who waits" {
    through_agent --drain 60s
    start_holder a
    MORTISE_URL="agent://$T/agent.sock" start run a -- touch granted
    NEXT_ONE=$PID
    until_true waiters a 1
    kill -TERM "$AGENT"
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$AGENT"
    [ "$code" -eq 0 ]
    start_agent
    finish "$NEXT_ONE"
    [ "$code" -eq 0 ]
    [ -e granted ]
}

@test "an agent on another store is no successor" {
    through_agent
    start_holder a
    start run a -- true 2>err
    NEXT_ONE=$PID
    until_true waiters a 1
    kill -KILL "$AGENT"
    wait "$AGENT" || true
    STORE="sqlite:$T/other.db" start_agent
    finish "$NEXT_ONE"
    [ "$code" -ne 0 ]
    grep "another store" err
}

@test "without an agent the error says what to start" {
    MORTISE_URL="agent://$T/agent.sock" run -69 "$MORTISE" run a -- true
    [[ $output == *"start mortise agent"* ]]
}
