#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Three servers of one cluster, of which the one that leads the stream, or another, is killed or stands
# still. A file that the holders keep locked by the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server
load cluster
load contest
load nats

eval "common_$(declare -f setup)"
setup() {
    common_setup
    start_server nats3
    URL="$(server_url)"
    export MORTISE_URL="$URL?replicas=3&lease=20s"
}

# leader: the number of the server that leads the stream.
leader() {
    local name
    name=$(operator leader "$(operator streams | head -1)")
    echo "${name#n}"
}

@test "NA-06 the leader is killed: holders follow each other, never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through 20 python3 "$SERVERS" kill "$PLACE" "$(leader)"
}

@test "NA-06 another member is killed: holders follow each other, never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through 20 python3 "$SERVERS" kill "$PLACE" "$((($(leader) + 1) % 3))"
}

@test "NA-07 the leader stands still and goes on: never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through 20 stand_still "$(leader)" 6
}

@test "NA-07 a holder that reaches the old leader alone is stopped before the next one begins" {
    start_holder other
    local led
    led=$(leader)
    MORTISE_URL="$(of_server "$led")?replicas=3&lease=4s" holds_alone cut
    python3 "$SERVERS" pause "$PLACE" "$led"
    MORTISE_URL="$(of_server $(((led + 1) % 3)))?replicas=3&lease=4s" waits_behind cut
    next_is_alone
    python3 "$SERVERS" resume "$PLACE" "$led"
    is_lost
}

@test "NA-08 without a majority nothing is granted, and with one again the waiter is" {
    start_holder lasts
    start run -w 60s lasts -- touch served
    local waiter=$PID
    until_true waiters lasts 1
    python3 "$SERVERS" kill "$PLACE" 0
    python3 "$SERVERS" kill "$PLACE" 1
    run "$MORTISE" run -w 1s new touch granted
    [ "$status" -ne 0 ]
    [ ! -e granted ]
    [ ! -e served ]
    python3 "$SERVERS" restart "$PLACE" 0
    python3 "$SERVERS" restart "$PLACE" 1
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e served ]
}
