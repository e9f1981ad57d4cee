#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on Leases while requests to a fake of an API server go wrong. No outcome hangs on a time
# that a slow machine could miss: an event decides, or what is wrong would take a minute.
load ../cli/helper
load ../cli/server
load contest
load kubernetes

@test "K8-06 an answer that is lost after the Lease was created: the own record is recognised" {
    fault create first lose-reply
    run -0 "$MORTISE" run -w 60s first -- sh -c 'echo "$MORTISE_FENCE"'
    [ "$output" = 1 ]
    happened lose-reply
    [ "$(journal first '[row["type"] for row in w].count("ADDED"), max(row["transitions"] for row in w)')" = "(1, 0)" ]
}

@test "K8-06 an answer that is lost after a Lease was taken over: no second transition" {
    is_free second
    fault update second lose-reply
    run -0 "$MORTISE" run -w 60s second -- sh -c 'echo "$MORTISE_FENCE"'
    [ "$output" = 2 ]
    happened lose-reply
    [ "$(journal second 'max(row["transitions"] for row in w)')" = 1 ]
}

@test "K8-06 a renewal whose answer is lost, or is no answer, ends no hold" {
    local kind
    holder_with 9s third
    for kind in lose-reply garbage drop; do fault update third "$kind"; done
    for kind in 500 503 429; do fault update third status "\"code\": $kind, \"retry_after\": 1"; done
    fault update third status-done '"code": 504'
    until_true happened status 3
    until_true happened status-done 1
    run -0 kill -0 "$HOLDER"
    [ "$(journal third 'h')" = "$(journal third '[h[0]]')" ]
    [ "$(spec third leaseTransitions)" = 0 ]
    next_with 9s third
    let_go
    next_is_alone
}

@test "K8-06 an object that is no Lease is no free lock to an operator either" {
    start_holder shown
    fault get shown foreign '"times": -1'
    fault list "" foreign '"times": -1'
    fails_with 69 "$MORTISE" ls shown
    [[ "$output" == *"no Lease"* ]]
    fails_with 69 "$MORTISE" ls
    fails_with 69 "$MORTISE" break shown --fence 1
    fake DELETE faults
    run -0 "$MORTISE" ls shown
    [[ "$output" == *shown* ]]
    fault update shown foreign '"times": -1'
    fails_with 69 "$MORTISE" break shown --fence 1
    [[ "$output" == *"may have been done"* ]]
    fake DELETE faults
    is_lost
    is_held_by shown ""
}

@test "K8-07 a release whose answer is lost leaves the lock free" {
    start_holder left
    fault update left lose-reply
    let_go
    happened lose-reply
    run -0 "$MORTISE" run -w 60s left true
}

@test "K8-08 the next holder comes after a lease without renewals, and not before the last is dead" {
    holder_with 3s silent
    next_with 60s silent
    fault update silent drop '"holder": "'"$(spec silent holderIdentity)"'", "times": -1'
    next_is_alone
    is_lost
    [ "$(journal silent 'len([x for x in h if x])')" = 2 ]
    [ "$(journal silent 'max(row["transitions"] for row in w)')" = 1 ]
}

@test "K8-09 a renewal that arrives after the next holder's grant changes nothing" {
    holder_with 3s late
    local identity
    identity=$(spec late holderIdentity)
    start run -w 300s late -- sh -c "$WITNESS; touch served; exec sleep 600"
    NEXT=$PID
    fault update late late '"holder": "'"$identity"'", "times": -1'
    until_true test -e served
    fake POST go
    until_true happened late-done
    is_held_by late mortise_
    run ! is_held_by late "$identity"
    [ "$(journal late '[x for x in h if x][-1] == h[-1] and len([x for x in h if x])')" = 2 ]
    kill "$NEXT"
    finish "$NEXT"
    finish "$HOLDER"
    [ ! -e overlaps ]
}

@test "K8-10 a watch that is cut, silent, or too old: the waiter is served all the same" {
    local kind
    for kind in cut gone hush; do
        start_holder "w$kind"
        fault watch "w$kind" "$kind"
        next_with "60s&recheck=1s" "w$kind"
        until_true happened "$kind"
        let_go
        next_is_alone
    done
}

@test "K8-10 an answer that is older than what the watch has shown does not hide it" {
    start_holder older
    next_with "60s&recheck=1s" older
    until_true watchers 1
    fault get older late
    until_true happened late # its second look, after a recheck
    fault get older drop '"times": -1'
    let_go
    until_true is_held_by older ""
    fake POST go
    next_is_alone
}

@test "K8-10 a compaction while a client waits: it reads again" {
    start_holder compacted
    next_with 600s compacted # its next look by itself would be after a third of that
    until_true watchers 1
    fake POST compact
    for i in 1 2 3; do api POST "" '{"metadata": {"name": "filler'$i'"}}'; fake POST compact; done
    let_go
    next_is_alone
}

@test "K8-11 a Lease that an operator deletes: its holder is told, and does not come back" {
    holder_with 9s deleted
    api DELETE /deleted
    is_lost
    run -0 "$MORTISE" run -w 60s deleted -- sh -c 'echo "$MORTISE_FENCE"'
    [ "$output" = 1 ]
    [ "$(journal deleted 'len([x for x in h if x])')" = 2 ]
}

@test "K8-11 a Lease that somebody else writes into is lost by its holder" {
    holder_with 9s stolen
    local lease
    lease=$(api GET /stolen | sed 's/"holderIdentity": "[^"]*"/"holderIdentity": "robber"/')
    # A renewal may come between.
    while [[ "$(api PUT /stolen "$lease")" == *Conflict* ]]; do
        lease=$(api GET /stolen | sed 's/"holderIdentity": "[^"]*"/"holderIdentity": "robber"/')
    done
    is_lost
    is_held_by stolen robber
}

@test "K8-12 of many that race for one Lease each counts once, whatever conflicts" {
    local i all=()
    echo 0 >counted
    fault update race status '"code": 500, "times": 5, "after": 10'
    fault update race lose-reply '"times": 5, "after": 10'
    for i in {1..16}; do
        "$MORTISE" run -w 300s race -- sh -c "$WITNESS"'; n=$(cat counted); sleep 0.01; echo $((n + 1)) >counted' 3>&- &
        all+=($!)
    done
    all_end_with 0 "${all[@]}"
    [ "$(cat counted)" -eq 16 ]
    [ ! -e overlaps ]
    [ "$(journal race 'len([x for x in h if x]), max(row["transitions"] for row in w)')" = "(16, 15)" ]
}

@test "K8-13 a server that stands still ends a hold at its lease, by the holder's own clock" {
    holder_with 3s still
    next_with 60s still
    server pause
    is_lost
    server resume
    next_is_alone
}

@test "K8-14 a holder that stands still for longer than its lease is dead before the next begins" {
    holder_with 3s stopped
    next_with 60s stopped
    kill -STOP "$HOLDER"
    until_true test -e served
    kill -CONT "$HOLDER"
    is_lost
    next_is_alone
}
