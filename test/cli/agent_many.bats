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

# tickets URL: of the lock hot.
tickets() {
    "$MORTISE" ls --url "$1" hot | grep -c "^hot "
}

@test "200 processes with the library compete for a lock by one session and ticket of the store" {
    start_agent
    "$MORTISE" bench --processes 200 --seconds 2 --json --url "agent://$T/agent.sock" hot \
        >"$T/bench" 3>&- &
    BENCH=$!
    has_a_hundred() { [ "$(tickets "agent://$T/agent.sock")" -gt 100 ]; }
    until_true has_a_hundred
    [ "$(tickets "sqlite:$T/locks.db")" -le 1 ]
    [ "$(find "$T/locks.db-sessions" -type f -regex '.*/[0-9a-f]*' | wc -l)" -eq 1 ]
    finish "$BENCH"
    [ "$code" -eq 0 ]
    grep -q '"share_min": [0-9.]*[1-9]' "$T/bench"
}

@test "a program waits while the listener's queue is full" {
    needs_descriptors
    start_agent
    kill -STOP "$AGENT"
    ulimit -Sn "$(ulimit -Hn)"
    client fills_the_queue "$MORTISE" "$AGENT"
}
