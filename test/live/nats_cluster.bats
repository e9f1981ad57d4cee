#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Three servers of one cluster, of which the one that leads the stream, or another, is killed or stands
# still. A file that the holders keep locked by the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server
load nats

eval "common_$(declare -f setup)"
setup() {
    common_setup
    start_server nats3
    URL="$(server_url)"
    export MORTISE_URL="$URL?replicas=3&lease=20s"
}

teardown() {
    cd /
    clean_up
    python3 "$SERVERS" stop "$PLACE"
}

teardown_file() {
    true
}

# leader: the number of the server that leads the stream.
leader() {
    local name
    name=$(operator leader "$(operator streams | head -1)")
    echo "${name#n}"
}

# of_server N: the URL of one server alone.
of_server() {
    python3 "$SERVERS" urls "$PLACE" | cut -d , -f "$(($1 + 1))"
}

# lasts_through COMMAND...: a hold does, and those who compete are served.
lasts_through() {
    contest 4 20 "$@"
    [ "$(wc -l <made)" -ge 60 ]
    kill -0 "$HOLDER"
    run -75 "$MORTISE" run -n lasts true
}

stand_still() {
    python3 "$SERVERS" pause "$PLACE" "$1"
    sleep 6
    python3 "$SERVERS" resume "$PLACE" "$1"
}

@test "NA-06 the leader is killed: holders follow each other, never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through python3 "$SERVERS" kill "$PLACE" "$(leader)"
}

@test "NA-06 another member is killed: holders follow each other, never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through python3 "$SERVERS" kill "$PLACE" "$((($(leader) + 1) % 3))"
}

@test "NA-07 the leader stands still and goes on: never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through stand_still "$(leader)"
}

@test "NA-07 a holder that reaches the old leader alone is stopped before the next one begins" {
    start_holder other
    local led
    led=$(leader)
    MORTISE_URL="$(of_server "$led")?replicas=3&lease=4s" holds_alone cut
    local holder=$PID
    python3 "$SERVERS" pause "$PLACE" "$led"
    MORTISE_URL="$(of_server $(((led + 1) % 3)))?replicas=3&lease=4s" run -0 "$MORTISE" run -w 120s cut -- \
        sh -c 'exec 9>>witness; flock -n 9 && touch alone'
    [ -e alone ]
    [ ! -e overlaps ]
    python3 "$SERVERS" resume "$PLACE" "$led"
    finish "$holder"
    [ "$code" -ne 0 ]
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
