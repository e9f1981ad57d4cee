#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on a real server of NATS with JetStream, which ends, stands still, or whose messages an
# operator deletes.
load ../cli/helper
load ../cli/server
load contest
load nats
load store

setup_file() {
    start_server nats
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    URL="$(server_url)"
    export MORTISE_URL="$URL?lease=60s"
}

@test "NA-01 a hold outlasts the server's end and its next start" {
    start_holder lasts
    start run -w 60s lasts -- touch served
    local waiter=$PID
    until_true waiters lasts 1
    server kill
    run "$MORTISE" run -w 100ms lasts true
    [ "$status" -ne 0 ]
    server restart
    run -75 "$MORTISE" run -n lasts true
    [ ! -e served ]
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "NA-02 what dies with its session frees the lock to the next" {
    export MORTISE_URL="$URL?lease=2s"
    start_holder dies
    start run -w 60s dies -- touch served
    local waiter=$PID
    until_true waiters dies 1
    kill -KILL "$HOLDER"
    finish "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "NA-03 a server that stands still for longer than the lease: the holder ends before the next begins" {
    export MORTISE_URL="$URL?lease=3s"
    holds_alone still
    waits_behind still
    until_true waiters still 1
    server pause
    is_lost
    server resume
    next_is_alone
}

# cut_at KIND N: a lock is taken and given back through what cuts there; 1: it never came to that.
cut_at() {
    between "$@"
    local way=$!
    run -0 "$MORTISE" run -w 60s --url "$BETWEEN?lease=60s" cut -- sh -c "$WITNESS"
    kill "$way"
    [ ! -e overlaps ]
    run -0 "$MORTISE" run -w 60s cut true
    [ -e was_cut ]
}

@test "NA-04 a connection that is cut at any message of a lock's life: the lock is taken once, and free afterwards" {
    local kind n
    for kind in request half answer; do
        n=1
        while cut_at "$kind" "$n"; do ((++n)); done
        echo "# $kind: $((n - 1)) messages" >&3
        [ "$n" -gt 3 ]
    done
}

@test "NA-05 connections that are cut every 300 ms: a hold lasts, and holders follow each other" {
    between every 300
    export MORTISE_URL="$BETWEEN?lease=20s"
    start_holder lasting
    contest 2 8 true
    [ "$(wc -l <made)" -eq 16 ]
    [ -e was_cut ]
    kill -0 "$HOLDER"
    MORTISE_URL="$URL" run -75 "$MORTISE" run -n lasting true
}

# A renewal may write the message anew while it is looked up.
ends_without_session() {
    deletes mortise_s_mortise_4000
    is_gone "$HOLDER"
}

@test "NA-13 a holder whose session's message an operator deletes is stopped, and the next begins" {
    export MORTISE_URL="$URL?lease=4s"
    holds_alone taken
    MORTISE_URL="$URL?lease=60s" waits_behind taken
    until_true waiters taken 1
    until_true ends_without_session
    is_lost
    next_is_alone
}

@test "NA-13 a holder whose ticket's message an operator deletes is stopped, and the next begins" {
    export MORTISE_URL="$URL?lease=4s"
    local number
    holds_alone ticket
    number=$(numbers mortise_q_mortise 'mortise.mortise.q.mortise/ticket.>')
    waits_behind ticket
    until_true waiters ticket 1
    operator delete mortise_q_mortise "$number"
    is_lost
    finish "$NEXT"
    [ -e served ]
}

@test "NA-13 holders whose streams an operator deletes are stopped, and locks work again" {
    export MORTISE_URL="$URL?namespace=gone&lease=4s"
    start_holder a
    operator delete_stream mortise_q_gone
    operator delete_stream mortise_s_gone_4000
    is_lost
    run -0 "$MORTISE" run -w 60s a true
}

has_no() {
    [ -z "$(numbers "$@")" ]
}

has_one() {
    [ "$(numbers "$@" | wc -l)" -eq 1 ]
}

@test "NA-15 init removes the ticket of a dead client in a queue that nobody uses, and no other" {
    export MORTISE_URL="$URL?namespace=unused&lease=2s"
    start_holder lives
    local lives=$HOLDER
    start_holder dies
    kill -KILL "$HOLDER"
    finish "$HOLDER"
    run -0 "$MORTISE" init
    run ! has_no mortise_q_unused 'mortise.unused.q.unused/dies.*' # its session may live
    until_true has_one mortise_s_unused_2000
    run -0 "$MORTISE" init
    has_no mortise_q_unused 'mortise.unused.q.unused/dies.*'
    has_no mortise_q_unused 'mortise.unused.a.unused/dies.*'
    run ! has_no mortise_q_unused 'mortise.unused.q.unused/lives.*'
    run -75 "$MORTISE" run -n lives true
    run -0 "$MORTISE" run -n dies true
    kill "$lives"
    finish "$lives"
}

@test "doctor names the server" {
    run "$MORTISE" doctor
    [[ "$output" == *"NATS JetStream"* ]]
}

@test "a server that is away is named, and another host is tried" {
    tries_another_host "${URL#nats://}"
}

@test "a URI that is wrong says how" {
    refuses_wrong_uris nats MORTISE_NATS_AUTH
}
