#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on a real member of etcd, beside etcdctl on the same names, and what an operator may
# do to it.
load ../cli/helper
load ../cli/server
load contest
load store
load ../cli/agent

setup_file() {
    start_server etcd
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    URL="$(server_url)"
    export MORTISE_URL="$URL?namespace=&lease=60s" ETCDCTL_API=3 ETCDCTL_ENDPOINTS="${URL#etcd://}"
}

# keys NAME N: whether N keys are below it.
keys() {
    [ "$(etcdctl get --prefix "$1/" --keys-only | grep -c .)" -eq "$2" ]
}

# etcdctl_holds NAME WORD...: a holder by etcdctl, until it is ended, once it has begun.
etcdctl_holds() {
    rm -f "$T/theirs"
    etcdctl lock "$1" -- sh -c 'touch "$T/theirs"; exec sleep 600' 3>&- &
    THEIRS=$!
    until_true test -e "$T/theirs"
}

end_theirs() {
    pkill -P "$THEIRS" || kill -INT "$THEIRS"
    finish "$THEIRS"
}

@test "what etcdctl lock holds, mortise does not get before it ends" {
    etcdctl_holds shared
    run -75 "$MORTISE" run -n shared true
    run -0 "$MORTISE" ls shared
    [[ "$output" == *"key "* ]]
    start run -w 60s shared -- touch served
    until_true waiters shared 1
    [ ! -e served ]
    end_theirs
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "what mortise holds, etcdctl lock does not get before it ends" {
    start_holder ours
    etcdctl lock ours -- touch served 3>&- &
    THEIRS=$!
    until_true waiters ours 1
    [ ! -e served ]
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$THEIRS"
    [ "$code" -eq 0 ]
    [ -e served ]
    until_true keys ours 0
}

@test "mortise and etcdctl take turns in the order in which they came" {
    start_holder turns
    local i pids=()
    for i in 1 2 3 4 5 6; do
        if ((i % 2)); then
            etcdctl lock turns -- sh -c "echo $i >>order" 3>&- &
        else
            "$MORTISE" run -w 60s turns -- sh -c "echo $i >>order" 3>&- &
        fi
        pids+=($!)
        until_true waiters turns "$i"
    done
    kill "$HOLDER"
    finish "$HOLDER"
    all_end_with 0 "${pids[@]}"
    [ "$(tr -d '\n' <order)" = 123456 ]
}

@test "etcdctl waits for all readers, and readers behind it wait for etcdctl" {
    start run --shared book -- sh -c 'touch reads; exec sleep 600'
    local reader=$PID
    until_true test -e reads
    etcdctl lock book -- sh -c 'touch theirs; sleep 600' 3>&- &
    THEIRS=$!
    until_true waiters book 1
    run -75 "$MORTISE" run -n --shared book true
    [ ! -e theirs ]
    kill "$reader"
    finish "$reader"
    until_true test -e theirs
    run -75 "$MORTISE" run -n --shared book true
    end_theirs
    run -0 "$MORTISE" run -w 60s --shared book true
}

@test "what dies with its lease frees the name to etcdctl" {
    export MORTISE_URL="$URL?namespace=&lease=2s"
    start_holder dies
    kill -KILL "$HOLDER"
    finish "$HOLDER"
    run -0 etcdctl lock dies -- true
}

leads() {
    "$MORTISE" elect "$1" --once | grep -qw "$2"
}

@test "a leader by etcdctl elect is seen, and followed in order" {
    etcdctl elect post theirs >/dev/null 3>&- &
    THEIRS=$!
    until_true leads post theirs
    start elect --value ours post -- sh -c 'touch leading; exec sleep 600'
    local candidate=$PID
    until_true keys post 2
    [ ! -e leading ]
    kill -INT "$THEIRS"
    finish "$THEIRS"
    until_true test -e leading
    until_true leads post ours
    timeout 5 etcdctl elect -l post 3>&- | head -2 >seen || true
    grep -qx ours seen
    kill "$candidate"
    finish "$candidate"
}

@test "a holder whose lease an operator revokes is stopped, and the next begins" {
    export MORTISE_URL="$URL?namespace=&lease=4s"
    holds_alone taken
    local lease
    lease=$(etcdctl get --prefix taken/ -w json | python3 -c '
import json, sys
print("%x" % json.load(sys.stdin)["kvs"][0]["lease"])')
    waits_behind taken
    until_true waiters taken 1
    etcdctl lease revoke "$lease"
    is_lost
    # etcd tells both at the same time, so the next command may begin before the first has ended.
    finish "$NEXT"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "a waiter outlasts a compaction, and is woken after it" {
    start_holder compacted
    start run -w 60s compacted -- touch served
    local waiter=$PID revision
    until_true waiters compacted 1
    for i in {1..50}; do echo "put filler $i"; done | xargs -L1 etcdctl >/dev/null
    revision=$(etcdctl get filler -w json | python3 -c 'import json, sys
print(json.load(sys.stdin)["header"]["revision"])')
    etcdctl compact "$revision"
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "a hold outlasts the member's end and its next start" {
    outlasts_a_restart
}

# between KIND: what stands between a client and the member (between_etcd.py); $BETWEEN is its host.
between() {
    python3 "$BATS_TEST_DIRNAME/between_etcd.py" "${URL##*:}" "$1" >between 3>&- &
    until_true test -s between
    BETWEEN="127.0.0.1:$(cat between)"
}

@test "ET-07 a renewal does not count while the cluster shows another term after it" {
    between term
    run timeout 60 "$MORTISE" run --url "etcd://$BETWEEN?lease=2s" renewed -- sh -c '
        touch began; exec sleep 600'
    [[ "$output" == *"the lock was lost"* ]]
    [ -e began ]
}

@test "ET-08 the removal of a refused ticket that arrives late does not take the hold it became" {
    between late
    start_holder late
    start run -w 60s late true
    local waiter=$PID
    until_true waiters late 1
    start run -w 60s --url "etcd://$BETWEEN?namespace=&lease=60s&connect=2s&queue_max=1" late -- sh -c '
        touch served; exec sleep 600'
    until_true test -e given_up
    kill "$waiter" "$HOLDER"
    finish "$waiter"
    finish "$HOLDER"
    until_true test -e served
    touch go
    until_true test -e went
    run -75 "$MORTISE" run -n late true
}

@test "ET-09 a ticket whose answer a gateway lost is found by the next attempt" {
    between cut
    run -0 "$MORTISE" run -w 60s --url "etcd://$BETWEEN?namespace=&lease=60s" lost true
    [ -e was_cut ]
    keys lost 0
}

@test "ET-14 a ticket that was broken, and appended again without an answer, ends with its client" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    between again
    STORE="etcd://$BETWEEN?namespace=&lease=60s" start_agent
    port ends_with_a_ticket_that_was_put_anew
    [ -e was_cut ]
    until_true keys anew 0
}

# keys_since REVISION NAME: how many keys the member has had below it, those that were deleted too.
keys_since() {
    timeout 2 etcdctl watch --prefix "$2/" --rev="$1" >history || true
    grep "^$2/" history | sort -u | wc -l
}

@test "ET-13 the tickets of a client leave one key in the member's history, and not one each" {
    local revision
    revision=$(etcdctl get none -w json | grep -o '"revision":[0-9]*' | cut -d: -f2)
    run -0 "$MORTISE" bench --seconds 1 again
    [ "$(keys_since "$revision" again)" -eq 2 ] # the command itself measures with a client of its own first
    [ "$(grep -c ^DELETE history)" -ge 20 ]
    run -0 "$MORTISE" bench --seconds 1 --locks 3 --threads 3 several
    [ "$(keys_since "$revision" several-2)" -eq 1 ]
    [ "$(grep -c ^DELETE history)" -ge 10 ]
}

@test "SE-10 a login ends no session" {
    between login
    MORTISE_ETCD_AUTH=a run "$MORTISE" run -w 2s --url "etcd://a@$BETWEEN" a true
    [[ "$output" == *"no answer from the store"* ]]
}

@test "ET-12 a login that takes longer than connect= succeeds in the end" {
    between slow
    MORTISE_ETCD_AUTH=a run -0 "$MORTISE" run -w 60s --url "etcd://a@$BETWEEN?connect=1s" slow true
}

@test "SE-10 a member that announces no address counts as one that others reach" {
    between null
    run "$MORTISE" doctor --url "etcd://$BETWEEN"
    [ "$status" -lt 124 ]
    [[ "$output" == *"anyone who reaches the server"* ]]
}

@test "no proxy of the environment is used" {
    http_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 run -0 "$MORTISE" run -w 60s direct true
}

@test "doctor names the server and its version" {
    run "$MORTISE" doctor
    [[ "$output" == *"etcd 3."* ]]
}

@test "a URI that is wrong says how" {
    refuses_wrong_uris etcd MORTISE_ETCD_AUTH
    fails_with 78 "$MORTISE" run --url "etcds://127.0.0.1?tls=off" a true
}

@test "a server that is away is named, and another host is tried" {
    tries_another_host "${URL#etcd://}"
}

# etcd wakes a waiter, and does not say what there is to see.
@test "a user of an agent's policy who never asks whether he has the lock loses it by his limit" {
    needs_users
    STORE="$URL?lease=4s"
    start_with_policy <<'END'
allow user www-data acquire on www/
limit user www-data hold 1s
END
    port loses_what_he_does_not_look_at
}
