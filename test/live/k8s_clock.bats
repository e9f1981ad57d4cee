#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on Leases whose times are an hour off, and on a server that went back in time.
load ../cli/helper
load ../cli/server
load contest
load kubernetes

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
