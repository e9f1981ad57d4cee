#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on Leases of a fake of a Kubernetes API server, beside candidates by client-go's rule
# that use the real Python client.
load ../cli/helper
load ../cli/server
load contest
load kubernetes
load store

@test "K8-01 what a candidate of client-go's rule leads, mortise does not get before it resigns" {
    candidate shared theirs
    until_true grep -q leads theirs
    run -75 "$MORTISE" run -n shared true
    run -0 "$MORTISE" ls shared
    [[ "$output" == *theirs* ]]
    waits_behind shared
    until_true watchers 1
    [ ! -e served ]
    end_candidate
    next_is_alone
}

@test "K8-01 what mortise holds, a candidate does not lead before it is released" {
    holds_alone ours
    candidate ours theirs
    until_true grep -q waits theirs
    run ! grep -q leads theirs
    let_go
    until_true grep -q leads theirs
    end_candidate
    run ! grep -q "two leaders" theirs
}

@test "K8-02 a candidate that dies is followed after its lease, and mortise's holder likewise" {
    candidate dies theirs --keep
    until_true grep -q leads theirs
    kill -KILL "$THEIRS"
    finish "$THEIRS"
    MORTISE_URL=${MORTISE_URL/=60s/=8s} start run -w 120s dies -- sh -c "$WITNESS; touch served; exec sleep 600"
    local holder=$PID
    until_true test -e served
    candidate dies heir
    until_true grep -q waits heir
    kill -KILL "$holder"
    finish "$holder"
    until_true grep -q leads heir
    end_candidate
    [ ! -e overlaps ]
    [ "$(journal dies '[w[i + 1]["transitions"] - w[i]["transitions"] for i in range(len(w) - 1) if w[i + 1]["holder"] not in ("", w[i]["holder"])]')" = "[1, 1]" ]
}

@test "K8-03 many of both kinds count one by one" {
    local i j ours=() theirs=()
    /usr/bin/python3 -c 'import kubernetes' 2>/dev/null || skip "no python3-kubernetes"
    echo 0 >counted
    for i in 1 2; do
        /usr/bin/python3 "$CANDIDATE" "$PLACE" crowd "c$i" witness --turns 5 counted </dev/null 3>&- &
        theirs+=($!)
        for j in 1 2 3 4; do
            "$MORTISE" run -w 120s crowd -- sh -c "$WITNESS"'; n=$(cat counted); sleep 0.02; echo $((n + 1)) >counted' 3>&- &
            ours+=($!)
        done
    done
    all_end_with 0 "${ours[@]}" "${theirs[@]}"
    [ "$(cat counted)" -eq 18 ]
    [ ! -e overlaps ]
}

@test "K8-04 the fence is the number of the holder: leaseTransitions and one" {
    run -0 "$MORTISE" run fenced -- sh -c 'echo "$MORTISE_FENCE"'
    [ "$output" = 1 ]
    candidate fenced theirs
    until_true grep -q "leads 1" theirs
    end_candidate
    run -0 "$MORTISE" run -w 60s fenced -- sh -c 'echo "$MORTISE_FENCE"'
    [ "$output" = 3 ]
    [ "$(spec fenced leaseTransitions)" = 2 ]
    [ -z "$(spec fenced holderIdentity)" ]
}

@test "a Lease says of its holder what kubectl shows, and keeps what others wrote" {
    api POST "" '{"metadata": {"name": "noted", "annotations": {"a.b/c": "theirs"}, "labels": {"app": "x"}}}'
    start_holder noted
    is_held_by noted mortise_
    [ "$(spec noted leaseDurationSeconds)" = 60 ]
    [[ "$(spec noted renewTime)" == 20*Z ]]
    kill "$HOLDER"
    finish "$HOLDER"
    until_true is_held_by noted ""
    [[ "$(api GET /noted)" == *'"a.b/c": "theirs"'* ]]
    [[ "$(api GET /noted)" == *'"app": "x"'* ]]
}

@test "a command ends with its own code, runs once a period, and leads" {
    run -7 "$MORTISE" run a -- sh -c 'exit 7'
    is_free a
    start run -x a -- sh -c 'touch holding; exec sleep 600'
    until_true test -e holding
    run -75 "$MORTISE" run -x -n a true
    kill "$PID"
    finish "$PID"
    run -0 "$MORTISE" run -w 60s -x a true
    run -0 "$MORTISE" elect e --value me -- "$MORTISE" elect e --once
    [[ "$output" == *" me" ]]
}

leads() {
    "$MORTISE" elect "$1" --once | grep -qw "$2"
}

@test "K8-01 a leader of client-go's rule is seen, and followed" {
    candidate post theirs
    until_true leads post theirs
    start elect --value ours post -- sh -c "$WITNESS; touch leading; exec sleep 600"
    local holder=$PID
    [ ! -e leading ]
    end_candidate
    until_true test -e leading
    until_true leads post ours
    kill "$holder"
    finish "$holder"
}

@test "names of any kind are kept apart, and are listed as they were given" {
    local name names=('UPPER' 'with space' 'a/b' 'ünïcode' 'upper' "$(printf 'x%.0s' {1..200})")
    for name in "${names[@]}"; do
        start_holder "$name"
        run -75 "$MORTISE" run -n "$name" true
    done
    run -0 "$MORTISE" ls
    for name in "${names[@]}"; do
        [[ "$output" == *"$name "* ]]
    done
}

@test "K8-05 revoke requests, and break ends; a broken holder is told" {
    start run --status-fd 4 taken -- sh -c 'touch holding; exec sleep 600' 4>events
    HOLDER=$PID
    until_true test -e holding
    run -0 "$MORTISE" revoke taken
    until_true grep '"event": "revoke"' events
    run -75 "$MORTISE" run -n taken true
    "$MORTISE" break taken --fence "$("$MORTISE" ls taken --json | grep -o '"fence": [0-9]*' | tr -dc 0-9)"
    finish "$HOLDER"
    [ "$code" -eq 76 ]
    is_free taken
}

@test "what a Lease cannot keep is refused" {
    fails_with 78 "$MORTISE" run --shared a true
    fails_with 78 "$MORTISE" run --permits 3 a true
    fails_with 78 "$MORTISE" acquire --durable a
}

@test "a URI that is wrong says how" {
    local base=k8s://127.0.0.1:1/mortise
    fails_with 78 "$MORTISE" run --url "$base?tls=off&lease=10ms" a true
    fails_with 78 "$MORTISE" run --url "$base?tls=off&lease=1500ms" a true
    fails_with 78 "$MORTISE" run --url "k8s://192.0.2.1/mortise?tls=off" a true
    fails_with 78 "$MORTISE" run --url "k8s://127.0.0.1:0/mortise" a true
    fails_with 78 "$MORTISE" run --url "k8s://127.0.0.1/Not_A_Namespace?tls=off" a true
    fails_with 69 "$MORTISE" run --url "$base?tls=off&credentials=/nowhere" a true
    [[ "$output" == */nowhere* ]]
    KUBERNETES_SERVICE_HOST="" fails_with 78 "$MORTISE" run --url "k8s:" a true
    [[ "$output" == *KUBERNETES_SERVICE_HOST* ]]
}

@test "a server that is away is named, and another host is tried" {
    tries_another_host "$SERVER"
}

@test "doctor and status name the server and its version" {
    run "$MORTISE" doctor
    [[ "$output" == *"v1.34.0-fake"* ]]
    [[ "$output" == *"free after its lease of watching"* ]]
    [[ "$output" == *"deleting the Lease sets them back"* ]]
    [[ "$output" != *"power cut"* ]]
}

@test "a hold outlasts the server's end and its next start" {
    outlasts_a_restart
}
