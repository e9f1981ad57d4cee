#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent with as many locks, and as many waiters, as it takes.
load helper
load agent

needs_descriptors() {
    [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 6200 ] || skip "too few descriptors"
}

@test "an agent has 10,000 locks at a time, and serves others meanwhile" {
    ulimit -Sn "$(ulimit -Hn)"
    start_agent
    client has_ten_thousand_locks
}

@test "6,000 connections wait for one lock, and have it in the order of their LOCKs" {
    needs_descriptors
    start_agent
    ulimit -Sn "$(ulimit -Hn)"
    client serves_thousands_in_order 6000
}

@test "an agent without descriptors says FULL, once in its log, and serves again when one is free" {
    AGENT_WITHIN=(prlimit --nofile=200)
    start_agent
    client is_full_and_serves_again 136
    [ "$(grep -c "is refused: the agent has 136 connections" "$T/agent.out")" -eq 1 ]
}

@test "a program waits while the listener's queue is full" {
    needs_descriptors
    start_agent
    kill -STOP "$AGENT"
    ulimit -Sn "$(ulimit -Hn)"
    client fills_the_queue "$MORTISE" "$AGENT"
}
