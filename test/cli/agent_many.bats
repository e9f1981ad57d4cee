#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent with as many locks, and as many waiters, as it takes.
load helper
load agent

@test "an agent has 10,000 locks at a time, and serves others meanwhile" {
    ulimit -Sn "$(ulimit -Hn)"
    start_agent
    client has_ten_thousand_locks
}

@test "4,000 connections wait for one lock, and have it in the order of their LOCKs" {
    ulimit -Sn "$(ulimit -Hn)"
    start_agent
    client serves_thousands_in_order
}
