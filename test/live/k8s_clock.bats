#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on Leases whose times are an hour off, and on a server that went back in time.
load ../cli/helper
load ../cli/server
load kubernetes

setup_file() {
    start_server k8s
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    use_fake
}

# holder_with LEASE NAME: a holder with the witness, and a lease of its own, in $HOLDER.
holder_with() {
    rm -f holding
    MORTISE_URL=${MORTISE_URL/=60s/"=$1"} start run --grace 300ms "$2" -- sh -c "$WITNESS; touch holding; exec sleep 600"
    HOLDER=$PID
    until_true test -e holding
}

# next_with LEASE NAME: a waiter with the witness, in $NEXT, which leaves the file served.
next_with() {
    rm -f served
    MORTISE_URL=${MORTISE_URL/=60s/"=$1"} start run -w 300s "$2" -- sh -c "$WITNESS; touch served"
    NEXT=$PID
}

next_is_alone() {
    finish "$NEXT"
    [ "$code" -eq 0 ]
    [ -e served ]
    [ ! -e overlaps ]
}

let_go() {
    kill "$HOLDER"
    finish "$HOLDER"
}

@test "K8-15 times that are an hour off neither end a hold nor keep one" {
    local hour
    for hour in 3600 -3600; do
        candidate "off$hour" "theirs$hour" --clock "$hour"
        until_true grep -q leads "theirs$hour"
        next_with 60s "off$hour"
        sleep 3
        [ ! -e served ]
        end_candidate
        next_is_alone
        run ! grep -q -e stopped -e "two leaders" "theirs$hour.err"
    done
}

@test "K8-15 a dead holder's Lease is free after its lease, whatever time it says" {
    local hour=3600
    candidate gone theirs --clock "$hour" --keep
    until_true grep -q leads theirs
    kill -KILL "$THEIRS"
    finish "$THEIRS"
    next_with 60s gone
    next_is_alone
}

# written NAME N: whether the server has written that N times since it began.
written() {
    [ "$(journal "$1" 'len(w)')" -ge "$2" ]
}

@test "K8-18 a server that is restored from an older copy: the holder goes on" {
    holder_with 9s restored
    cp "$PLACE/0/data" older
    until_true written restored 3
    server kill
    cp older "$PLACE/0/data"
    server restart
    until_true written restored 2
    run -0 kill -0 "$HOLDER"
    let_go
    [ "$code" -ne 76 ]
    run -0 "$MORTISE" run -w 60s restored true
}
