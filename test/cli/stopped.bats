#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01 on a store of this machine: mortise stands still, and the store does.
load helper
load stopped

@test "GN-01 mortise is stopped at any moment: nobody gets the lock beside its command" {
    for ((round = 0; round < ROUNDS; round++)); do
        begin_round 200ms
        kill -STOP "$HOLDER"
        pause_for 100 500
        kill -CONT "$HOLDER"
        end_round
    done
}

@test "GN-01 the store stands still at any moment: nobody gets the lock beside the command" {
    for ((round = 0; round < ROUNDS; round++)); do
        begin_round 200ms
        python3 -c '
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
db.execute("BEGIN IMMEDIATE")
time.sleep(0.5)' state/mortise/locks.db
        end_round
    done
}
