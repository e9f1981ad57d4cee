#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# M1, M4, M12: a quorum of five real Redis servers, some of which are killed or stopped, or which
# many processes ask at once.
load ../cli/helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    python3 "$SERVERS" start redis5 "$BATS_FILE_TMPDIR/redis5" >/dev/null 3>&-
}

teardown_file() {
    python3 "$SERVERS" stop "$BATS_FILE_TMPDIR/redis5"
}

server() {
    python3 "$SERVERS" "$1" "$BATS_FILE_TMPDIR/redis5" "$2" 3>&-
}

# on_five LEASE [ANSWER]: a short lease where it has to end, else one that no wait here outlasts; and for
# how long a server is waited for, before the command ends without it.
on_five() {
    MORTISE_URL="redlock:$(cat "$BATS_FILE_TMPDIR/redis5/url")?session=$1&answer=${2:-500ms}"
    export MORTISE_URL
}

# How many of the five say that somebody has the lock.
having() {
    local count=0 uri
    for uri in $(python3 "$SERVERS" urls "$BATS_FILE_TMPDIR/redis5" | tr , ' '); do
        if "$MORTISE" ls --url "$uri" "$1" 2>/dev/null | grep -q "$1"; then
            count=$((count + 1))
        fi
    done
    echo "$count"
}

is_held_at() {
    "$MORTISE" ls --url "$1" "$2" | grep -q "^$2 *holds"
}

is_nowhere() {
    [ "$(having "$1")" -eq 0 ]
}

@test "doctor: what each of the servers is" {
    on_five 120s
    run "$MORTISE" doctor
    [[ "$output" =~ server\ +Redis\ [0-9.]+(\ \+\ Redis\ [0-9.]+){4}$'\n'\ +encrypted\ +no$'\n' ]]
}

@test "M1 one command at a time holds a lock on five servers, and nothing is left" {
    on_five 120s 10s
    start run a -- sh -c 'touch holding; until test -e enough; do sleep 0.05; done; exit 5'
    until_true test -e holding
    [ "$(having a)" -ge 3 ]
    run -75 "$MORTISE" run -n a -- true
    touch enough
    finish "$PID"
    [ "$code" -eq 5 ]
    run -0 "$MORTISE" run -w 60s a -- true
    until_true is_nowhere a
}

# Each does all of its turns, or fails; within each it is witness that nobody else is in.
@test "M12 RD-18 twenty processes on five servers: each has its three turns, and they count exactly" {
    local i contenders=()
    on_five 120s 10s
    echo 0 >counter
    for i in {1..20}; do
        "$CLAIMER" "$MORTISE_URL" contest counter 3 120 "" 3>&- &
        contenders+=($!)
    done
    all_end_with 0 "${contenders[@]}"
    [ "$(cat counter)" -eq 60 ]
    until_true is_nowhere contest
}

@test "M1 M4 one command at a time holds a lock on members of two kinds, both of which are needed" {
    local redis
    redis="$(python3 "$SERVERS" urls "$BATS_FILE_TMPDIR/redis5" | cut -d , -f 1,2)"
    export MORTISE_URL="redlock:$redis,sqlite:$T/file?answer=10s"
    server kill 1
    start_holder mixed
    is_held_at "${redis%,*}" mixed
    is_held_at "sqlite:$T/file" mixed
    run -75 "$MORTISE" run -n mixed -- true
    kill "$HOLDER"
    run -0 "$MORTISE" run -w 60s mixed -- true
    server restart 1
}

@test "M4 a minority may be away: one killed, one stopped" {
    on_five 120s
    server kill 0
    server pause 1
    run -0 "$MORTISE" run -w 60s b -- true
    server resume 1
    server restart 0
}

@test "M4 no majority of the members may be away" {
    on_five 4s
    start run -w 60s c -- sh -c 'touch holding; exec sleep 60'
    until_true test -e holding
    server kill 0
    server kill 1
    server kill 2
    finish "$PID"
    [ "$code" -eq 76 ]
    run "$MORTISE" run -w 1s d -- true
    [ "$status" -ne 0 ]
    server restart 0
    server restart 1
    server restart 2
    run -0 "$MORTISE" run -w 60s d -- true
}

@test "RD-21 the fence 0 of a quorum's lock guards no command" {
    on_five 20s
    run "$MORTISE" run fence0 -- "$MORTISE" check --fence-file "$BATS_TEST_TMPDIR/f" -- touch "$BATS_TEST_TMPDIR/ran"
    [ "$status" -eq 78 ]
    [[ "$output" == *"fence 0: the store of the lock gives no fences"* ]]
    [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}
