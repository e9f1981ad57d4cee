#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# An agent that stands still for two leases with a holder at work, on Redis and on ZooKeeper. Long.
load helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

# stands_still KIND OPTIONS: of the store's URL
stands_still() {
    run python3 "$SERVERS" with "$1" sh -c \
        'exec timeout 280 python3 "$1" "$MORTISE" "$0$2" "$T" "$3"' '{}' \
        "$BATS_TEST_DIRNAME/agent_still.py" "$2" "${TRIALS:-20}"
    echo "# $1: ${lines[-1]}" >&3
    [ "$status" -eq 0 ]
    [[ "${lines[-1]}" == *" 0 overlaps" ]]
}

@test "no two hold while the agent stands still for two leases, on Redis" {
    stands_still redis "?session=2s"
}

@test "no two hold while the agent stands still for two leases, on ZooKeeper" {
    stands_still zk "?session=2s&tick=500ms"
}
