#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every subcommand on every store, once each, in the ways that the store's user meets them; what
# they do in all their ways is in the suites of their names.
load helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

teardown() {
    # The server runs as another user, to whom the test's own directory is closed.
    if [ "${PLACE:-}" ]; then python3 "$SERVERS" stop "$PLACE"; fi
    clean_up
}

# on KIND [PARAMETERS]: the store is a new server's.
on() {
    PLACE=$(mktemp -d /tmp/mortise-cli-XXXXXX)
    python3 "$SERVERS" start "$1" "$PLACE" >/dev/null 3>&-
    export MORTISE_URL
    MORTISE_URL="$(cat "$PLACE/url")$2"
}

shows() {
    "$MORTISE" "${@:2}" | grep -qF -- "$1"
}

fence_of() {
    "$MORTISE" status --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["holders"][0]["fence"])'
}

take_and_look() {
    run -7 "$MORTISE" run a -- sh -c 'exit 7'
    run -0 "$MORTISE" try a
    start_holder a
    run -75 "$MORTISE" try a
    start run a -- touch ran
    WAITER=$PID
    until_true waiters a 1
    shows "a: held, mutex" status a
    shows holds ls a
    shows a top --once
}

ask_and_break() {
    run -0 "$MORTISE" revoke a
    run -0 "$MORTISE" break a --fence "$(fence_of a)"
    finish "$WAITER"
    [ "$code" -eq 0 ]
    [ -e ran ]
    finish "$HOLDER"
    [ "$code" -eq 76 ]
}

hold_for_a_script() {
    "$MORTISE" acquire k >token
    run -75 "$MORTISE" try k
    "$MORTISE" renew k <token | grep -x '[1-9][0-9]*'
    "$MORTISE" release k <token
    until_true is_free k
}

lead_and_check() {
    run -0 "$MORTISE" elect e --value me -- "$MORTISE" elect e --once
    [[ "$output" == *" me" ]]
    run -0 "$MORTISE" run a -- "$MORTISE" check --fence-file f -- echo in
    [ "$output" = in ]
    run -76 "$MORTISE" check --fence 1 --fence-file f -- touch stale
    [ ! -e stale ]
}

# Its address is in the file address, with the token that it has made.
is_served() {
    local address
    address=$(cat address)
    curl -sS -m 60 -H "Authorization: Bearer ${address##*#token=}" "${address%%#*}metrics" | grep -q '^mortise_'
}

measure_and_serve() {
    run -0 "$MORTISE" bench --json --seconds 0.2 b
    costs "$output" $COSTS
    "$MORTISE" demo | grep 'with lock: 0 of 4000 lost$'
    "$MORTISE" serve --help >help || return 0 # built without
    start serve --listen 127.0.0.1:0 --interval 100ms >address
    until_true is_served
    kill "$PID"
    finish "$PID"
}

# Its exit code is 1 where it warns of what the test's own server lets its user do.
doctor_answers() {
    run "$MORTISE" doctor
    [ "$status" -le 1 ]
    [[ "$output" =~ server\ +"$1" ]]
    [[ "$output" =~ across\ hosts\ +"$2" ]]
    [[ "$output" =~ in\ order\ +"$3"$'\n' ]]
}

# Plain runs, -x and -s of one name at the same time: one lock, whose readers alone share it.
contend() {
    local round pids=()
    mkdir inside
    for round in 1 2 3 4; do
        for mode in "" -x -s -s; do
            start run $mode mixed -- sh -c '
                me=$1$$
                touch "inside/$me"
                sleep 0.02
                others=$(ls inside | grep -v "^$me$")
                [ "$1" = reader ] && others=$(echo "$others" | grep -v "^reader")
                [ -z "$others" ] || echo "$me beside $others" >>overlaps
                rm "inside/$me"' sh "$([ "$mode" = -s ] && echo reader || echo alone)"
            pids+=("$PID")
        done
    done
    all_end_with 0 "${pids[@]}"
    [ ! -e overlaps ]
}

every_subcommand() {
    "$MORTISE" init
    contend
    take_and_look
    ask_and_break
    hold_for_a_script
    lead_and_check
    measure_and_serve
    "$MORTISE" completion bash | bash -n
}

@test "every subcommand on SQLite" {
    COSTS="6 1 4 1" # a2: requests and round trips of an acquire, and of a release
    every_subcommand
    doctor_answers SQLite no yes
}

@test "every subcommand on ZooKeeper" {
    COSTS="2 1 1 1" # a2: requests and round trips of an acquire, and of a release
    on zk "?session=6s"
    every_subcommand
    doctor_answers ZooKeeper yes "yes, but for exclusive locks"
}

@test "every subcommand on Redis" {
    COSTS="1 1 1 1" # a2: requests and round trips of an acquire, and of a release
    on redis "?session=6s"
    every_subcommand
    doctor_answers Redis yes "yes, but for exclusive locks"
}

@test "every subcommand on PostgreSQL" {
    COSTS="1 1 1 1" # a2: requests and round trips of an acquire, and of a release
    on postgres "?lease=6s"
    every_subcommand
    doctor_answers PostgreSQL yes yes
}

@test "every subcommand on MariaDB" {
    COSTS="1 1 1 1" # a2: requests and round trips of an acquire, and of a release
    on mariadb "?lease=6s"
    every_subcommand
    doctor_answers MariaDB yes yes
}

@test "u5 where a store has no shared locks, -s is refused with the reason, and -x is a plain run" {
    PLACE=$(mktemp -d /tmp/mortise-cli-XXXXXX)
    python3 "$SERVERS" start mariadb "$PLACE" >/dev/null 3>&-
    local url=$(cat "$PLACE/url")
    for store in "$url?form=get_lock" "redlock:sqlite:$T/1.db,sqlite:$T/2.db,sqlite:$T/3.db"; do
        export MORTISE_URL="$store"
        start run -x a -- sh -c 'touch holding; exec sleep 600'
        HOLDER=$PID
        until_true test -e holding
        rm holding
        run -75 "$MORTISE" run -n a -- true
        fails_with 78 "$MORTISE" run -s b -- true
        [[ "$output" == *"; leave -s out" ]]
        kill "$HOLDER"
        finish "$HOLDER"
    done
}
