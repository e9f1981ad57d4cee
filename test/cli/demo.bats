#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise demo.
load helper

check_last_line() {
    [[ "$1" =~ ^without\ lock:\ [0-9]+\ of\ 4000\ updates\ lost\;\ with\ lock:\ 0\ of\ 4000\ lost$ ]]
}

@test "demo: the lock loses nothing, and without it much is lost" {
    mkdir tmp
    TMPDIR="$T/tmp" run timeout 120 "$MORTISE" demo
    echo "$output"
    [ "$status" -eq 0 ]
    check_last_line "${lines[-1]}"
    [[ "${lines[-1]}" != "without lock: 0 "* ]]
    [[ "$output" != *$'\r'* ]]
    [ -z "$(ls -A "$place")" ]
    [ "$("$MORTISE" ls --json)" = "[]" ]
}

@test "demo --url: on any store" {
    run timeout 120 "$MORTISE" demo --url "sqlite://$T/other.db"
    [ "$status" -eq 0 ]
    check_last_line "${lines[-1]}"
    [ -f other.db ]
    [ ! -e state ]
}

@test "demo: a store of one process is refused" {
    fails_with 78 "$MORTISE" demo --url memory:x
}

@test "demo: interrupted, it cleans up" {
    local place # a long one
    place=$(printf 'tmp%.0s' {1..60})
    mkdir "$place"
    TMPDIR="$T/$place" start demo
    until_true sh -c 'ls tmp*/*/number'
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    [ -z "$(ls -A tmp)" ]
}
