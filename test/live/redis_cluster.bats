#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# RD-16: two real servers of one Redis cluster. The second keeps the slot of the namespace
# {mortise/}, and that of the key mortise/a; the first keeps that of the key mortise/b.
load ../cli/helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    python3 "$SERVERS" start redis-cluster "$BATS_FILE_TMPDIR/servers" >/dev/null 3>&-
}

teardown_file() {
    python3 "$SERVERS" stop "$BATS_FILE_TMPDIR/servers"
}

server() {
    python3 "$SERVERS" urls "$BATS_FILE_TMPDIR/servers" | cut -d , -f "$1"
}

# ask SERVER WORD...: what redis-cli gets.
ask() {
    redis-cli -u "$(server "$1")" "${@:2}"
}

# cluster: the URL of both.
cluster() {
    local first
    first=$(server 1)
    echo "redis+cluster://${first#redis://},$(server 2 | sed 's,.*//,,')"
}

# contest URL NAME: four processes count, three turns each, under this claim.
contest() {
    local contenders=() i
    echo 0 >counter
    for i in {1..4}; do
        "$CLAIMER" "$1?session=60s" "$2" counter 3 60 "" 3>&- &
        contenders+=($!)
    done
    all_end_with 0 "${contenders[@]}"
    [ "$(cat counter)" -eq 12 ]
}

one_waits() {
    [ "$("$MORTISE" ls "$1" | grep -c "^$1 *1 ")" -eq 1 ]
}

@test "RD-16 fair locks work at the server that keeps the namespace's slot" {
    export MORTISE_URL="$(server 2)?session=60s"
    start_holder b
    start run -w 60s b -- touch served
    until_true one_waits b
    [ ! -e served ]
    kill "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "RD-16 an operator reaches a fair lock whose name as a claim would be elsewhere" {
    export MORTISE_URL="$(server 2)?session=60s"
    start_holder b
    run -0 "$MORTISE" ls b
    [[ "$output" =~ b\ +holds\ +([1-9][0-9]*) ]]
    run -0 "$MORTISE" break b --fence "${BASH_REMATCH[1]}"
    run -0 "$MORTISE" run -w 60s b -- true
}

@test "RD-16 servers without the slot name the one that has it, and are not asked again" {
    run "$MORTISE" run -w 60s --url "$(server 1)" b -- true
    [ "$status" -eq 78 ]
    [[ "$output" == *"MOVED 13020 "* ]]
    run "$MORTISE" ls --url "$(server 1)"
    [ "$status" -eq 78 ]
    [[ "$output" == *"MOVED 13020 "* ]]
}

@test "RD-16 while the slot is on its way nobody gets a lock, and whoever waits does when it has stayed" {
    export MORTISE_URL="$(server 2)?session=60s"
    ask 2 FLUSHALL
    ask 2 CLUSTER SETSLOT 13020 MIGRATING "$(ask 1 CLUSTER MYID)"
    run "$MORTISE" run -n b -- true
    [ "$status" -eq 69 ]
    [[ "$output" == *"ASK 13020 "* ]]
    start run -w 60s b -- touch served
    ask 2 CLUSTER SETSLOT 13020 STABLE
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "RD-16 a claim has the namespace's slot in a cluster, by the tag behind its name" {
    contest "$(cluster)" b # which without the tag would be elsewhere
    is_kept_out b 'mortise/b{mortise/}'
}

# is_kept_out NAME KEY: another program's key of the claim NAME.
is_kept_out() {
    ask 2 SET "$2" else PX 60000
    run -124 timeout 1 "$CLAIMER" "$(cluster)?session=60s" "$1" counter 1 60 "" </dev/null
    run -0 "$MORTISE" ls --url "$(cluster)" "$1"
    [[ "$output" == *holds* ]]
    ask 2 DEL "$2"
}

@test "RD-16 a name with a tag of its own is the key as it is" {
    contest "$(server 2)" '{mortise/}b'
    is_kept_out '{mortise/}b' 'mortise/{mortise/}b'
}

# Its key would be another one than that of redis+cluster:, and is here by chance.
@test "RD-16 a claim without a tag is refused by redis: at a node of a cluster" {
    echo 0 >counter
    run "$CLAIMER" "$(server 2)?session=60s" a counter 1 60 "" </dev/null
    [ "$status" -ne 0 ]
    [[ "$output" == *"mortise/a: the server is a node of a cluster, where exclusive locks need redis+cluster: or a name as {mortise/}NAME"* ]]
    [ "$(ask 2 EXISTS mortise/a)" -eq 0 ]
    run "$CLAIMER" "$(server 2)?session=60s" b counter 1 60 "" </dev/null
    [ "$status" -ne 0 ]
    [[ "$output" == *"MOVED 6013 "* ]]
    [ "$(cat counter)" -eq 0 ]
    # A name of other programs, which the keeper of the slot of {/} also has.
    "$CLAIMER" "$(server 1)?session=60s&namespace=" b counter 1 60 "" </dev/null
    [ "$(cat counter)" -eq 1 ]
    run -0 "$MORTISE" ls --url "$(server 2)" b
    ask 1 SET mortise/b else
    run -0 "$MORTISE" ls --url "$(server 2)" b # it is not seen from here
    [ -z "$(grep '^b ' <<<"$output")" ]
}
