#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run --every: once in each period, whoever comes first.
load helper

# 10,000 days from 1970 on: no such period ends before 2052.
LONG=240000h

@test "--every: the first one runs, the others end with 0 in silence" {
    run -7 "$MORTISE" run --every "$LONG" a -- sh -c 'echo ran; exit 7'
    [ "$output" = ran ]
    run -0 "$MORTISE" run --every "$LONG" a -- echo ran
    [ -z "$output" ]
    run -0 "$MORTISE" run --every "$LONG" b -- echo ran
    [ "$output" = ran ]
    run -0 "$MORTISE" run a -- echo ran
    [ "$output" = ran ]
}

@test "--every: a run that is not due says so with -v, and leaves the lock free" {
    "$MORTISE" run --every "$LONG" a -- true
    run -0 "$MORTISE" run -v --every "$LONG" a -- echo ran
    [[ "$output" == *"a: has been run in this period"* ]]
    run -0 "$MORTISE" run --json --every "$LONG" a -- echo ran
    [[ "$output" == *'"event": "not-due"'* && "$output" == *'"event": "released"'* ]]
    is_free a
}

@test "--every: one of many that come at once, also of those that share the lock" {
    local mode pids
    for mode in "" -s "--permits 9"; do
        pids=()
        for _ in 1 2 3 4 5 6; do
            "$MORTISE" run $mode --every "$LONG" "job$mode" -- sh -c 'echo ran >>"$0"' "ran$mode" 3>&- &
            pids+=($!)
        done
        all_end_with 0 "${pids[@]}"
        [ "$(wc -l <"ran$mode")" -eq 1 ]
    done
}

@test "--every: once again in each new period" {
    begin=$(date +%s)
    loop() {
        while [ ! -e enough ]; do "$MORTISE" run --every 1s a -- sh -c 'echo ran >>ran'; done
    }
    loop 3>&- &
    loop 3>&- &
    until_true sh -c '[ "$(wc -l <ran)" -ge 3 ]'
    touch enough
    wait
    [ "$(wc -l <ran)" -le $(($(date +%s) - begin + 1)) ]
}

@test "--every inside a run of the same lock" {
    run -0 "$MORTISE" run a -- "$MORTISE" run --every "$LONG" a echo ran
    [ "$output" = ran ]
    run -0 "$MORTISE" run a -- "$MORTISE" run --every "$LONG" a echo ran
    [ -z "$output" ]
}

@test "--every: somebody holds the lock: -n is 75" {
    start_holder a
    fails_with 75 "$MORTISE" run -n --every "$LONG" a -- touch ran
    run -0 "$MORTISE" run -n --quiet-conflict --every "$LONG" a -- touch ran
    [ ! -e ran ]
}

@test "--every: bad arguments" {
    for bad in 0 0.5 -1 x 1.0005; do
        fails_with 64 "$MORTISE" run --every "$bad" a true
    done
    fails_with 64 "$MORTISE" run --every 1h "$(printf 'x%.0s' $(seq 250))" true
    fails_with 64 "$MORTISE" elect --every 1h a true
    [ ! -e state ]
}

@test "--every-success: a run that failed is repeated in the period, one that succeeded is not" {
    run -7 "$MORTISE" run --every "$LONG" --every-success a -- sh -c 'exit 7'
    run -143 "$MORTISE" run --every "$LONG" --every-success a -- sh -c 'kill -TERM $$'
    run -124 "$MORTISE" run --every "$LONG" --every-success --max-hold 0.2 a -- sleep 60
    run -127 "$MORTISE" run --every "$LONG" --every-success a -- ./none
    run -0 "$MORTISE" run --every "$LONG" --every-success a -- echo ran
    [ "$output" = ran ]
    run -0 "$MORTISE" run --every "$LONG" --every-success a -- echo ran
    [ -z "$output" ]
    run -0 "$MORTISE" run --every "$LONG" a -- echo ran
    [ -z "$output" ]
}

@test "--every-success: a mortise that is killed leaves its period to the next" {
    start run --every "$LONG" --every-success a -- sh -c 'touch began; exec sleep 600'
    until_true test -e began
    kill -KILL "$PID"
    finish "$PID"
    run -0 "$MORTISE" run --every "$LONG" --every-success a -- echo ran
    [ "$output" = ran ]
}

@test "--every-success: many that come at once run it until it has succeeded, one at a time" {
    pids=()
    for _ in 1 2 3 4 5 6; do
        "$MORTISE" run --every "$LONG" --every-success a -- \
            sh -c 'mkdir alone && echo ran >>ran && rmdir alone && [ "$(wc -l <ran)" -ge 3 ]' 3>&- &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || true; done
    [ "$(wc -l <ran)" -eq 3 ]
}

@test "--every-success: only with --every, by one that holds the lock alone and sees the end" {
    fails_with 64 "$MORTISE" run --every-success a true
    [[ "${lines[0]}" == *"--every-success needs --every" ]]
    fails_with 64 "$MORTISE" run --every "$LONG" --every-success -F a true
    fails_with 64 "$MORTISE" run --every "$LONG" --every-success -s a true
    fails_with 64 "$MORTISE" run --every "$LONG" --every-success --permits 2 a true
    [ ! -e state ]
    run -64 "$MORTISE" run a -- "$MORTISE" run --every "$LONG" --every-success a true
}

# not_due PERIOD OTHER MS: what has run with --every PERIOD is not due with OTHER, which is as long. In
# a new period it is, so a test at the end of one tries again.
not_due() {
    "$MORTISE" run --every "$1" "$1" -- true
    run -0 "$MORTISE" run --json --every "$2" "$1" -- true
    [[ "$output" == *'"event": "not-due"'*"\"every_ms\": $3"* ]]
}

@test "u46 --every: hourly and daily are the periods 1h and 1d" {
    local period other ms
    while read -r period other ms; do
        not_due "$period" "$other" "$ms" || not_due "$period" "$other" "$ms"
    done <<<"hourly 1h 3600000
daily 1d 86400000
1h hourly 3600000
1d daily 86400000"
    fails_with 64 "$MORTISE" run --every weekly a true
    [[ "${lines[0]}" == *'--every: "weekly" is not a period: hourly, daily, or a duration as 90s, 2h'* ]]
}
