#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01, GN-03: mortise killed by KILL takes its command's whole process group with
# it, and nobody gets the lock before that.
load helper

# A tree of four levels, each of which stays and hears nothing but KILL. All inherit flock's
# descriptor, so the witness is free only when all of them are dead.
HARD_TO_KILL='exec 9>w; flock -n 9 || echo overlap >> bad
trap "" TERM INT HUP QUIT
sh -c "sh -c \"sleep 600 & echo \\\$! >deepest; touch holding; wait; :\" & wait; :" &
sleep 600'

@test "GN-01 GN-03: kill -9 ends the whole tree before the next one starts" {
    for i in $(seq 10); do
        rm -f holding
        start run a -- bash -c "$HARD_TO_KILL"
        victim=$PID
        until_true test -e holding
        start run a -- bash -c 'exec 9>w; flock -n 9 || echo overlap >> bad'
        waiter=$PID
        until_true waiters a 1
        if ((i == 1)); then
            # The deepest, its shell, that one's, bash, mortise.
            pid=$(cat deepest)
            for level in 1 2 3 4; do pid=$(sed -n 's/^PPid:\t//p' "/proc/$pid/status"); done
            [ "$pid" -eq "$victim" ]
        fi
        kill -KILL "$victim"
        finish "$waiter"
        [ "$code" -eq 0 ]
        [ ! -e bad ]
    done
}

# Hundredths of a second since the machine came up.
uptime_now() {
    local up
    read -r up _ </proc/uptime
    echo "${up/./}"
}
export -f uptime_now

@test "GN-06: --lock-delay: after kill -9 nobody has the lock for so long" {
    start run --lock-delay 1500ms a -- sh -c 'touch holding; exec sleep 600'
    victim=$PID
    until_true test -e holding
    start run a -- bash -c 'uptime_now >got'
    waiter=$PID
    until_true waiters a 1
    before=$(uptime_now)
    kill -KILL "$victim"
    finish "$waiter"
    [ "$code" -eq 0 ]
    (($(cat got) - before >= 149))
}

@test "GN-06: --lock-delay: ls shows it, break ends it, and a release has none" {
    run -0 "$MORTISE" run --lock-delay 1h a true
    run -0 "$MORTISE" run -n --lock-delay 1h -s a true
    MORTISE_LOCK_DELAY=1h start run --permits 2 a -- sh -c 'touch holding; exec sleep 600'
    until_true test -e holding
    kill -KILL "$PID"
    until_true eval '"$MORTISE" ls a | grep "nobody: delay, 1h00m left"' # nobody has come for it yet
    until_true eval '"$MORTISE" run -n --permits 2 --weight 2 a true; [ $? -eq 75 ] &&
        "$MORTISE" ls a | grep -E "nobody: delay, [0-9hms]+ left"'
    run -0 "$MORTISE" run -n --permits 2 a true # the other permit
    fence=$("$MORTISE" ls --json a | python3 -c '
import json, sys
(row,) = json.load(sys.stdin)
assert row["holder"] and not row["detached"] and 0 < row["delay_ms"] <= 3600000, row
print(row["fence"])')
    run -0 "$MORTISE" break a --fence "$fence"
    run -0 "$MORTISE" run -n --permits 2 --weight 2 a true
    fails_with 64 "$MORTISE" run --lock-delay 25h a true
    fails_with 64 "$MORTISE" run --lock-delay soon a true
    fails_with 64 "$MORTISE" elect --lock-delay 1s a true
    fails_with 78 "$MORTISE" --url redlock:memory:x,memory:y,memory:z run --lock-delay 1s a true
}

@test "GN-03: kill -9 right at the start leaves nothing behind" {
    for i in $(seq 20); do
        start run a -- sh -c 'exec 9>w; flock -n 9 || echo overlap >> bad; sleep 600 & sleep 600'
        victim=$PID
        sleep "0.0$((i % 10))$((i / 10))"
        kill -KILL "$victim"
        run "$MORTISE" run -w 60 a -- bash -c 'exec 9>w; flock -n 9 || echo overlap >> bad'
        [ "$status" -eq 0 ]
    done
    [ ! -e bad ]
}

# find_guard PID: its guard is in $guard, and has done all that it does before it watches.
find_guard() {
    for guard in $(pgrep -P "$1" -x lock-guard); do
        if [ "$(readlink "/proc/$guard/cwd")" = / ]; then return 0; fi
    done
    return 1
}

@test "GN-03: the guard holds none of the caller's pipes, and goes with its run" {
    start run a -- sh -c 'touch holding; sleep 600 >/dev/null 2>&1'
    until_true test -e holding
    until_true find_guard "$PID"
    for fd in 0 1 2; do [ ! -e "/proc/$guard/fd/$fd" ]; done
    kill -TERM "$guard" "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    until_true is_gone "$guard"
}

@test "GN-03: output of a killed run ends with the command" {
    # The pipe's reader sees the end of file only when nobody holds it any more.
    timeout 60 sh -c '("$MORTISE" run a -- sh -c "touch holding; sleep 600" 3>&- & echo $! > pid; wait) | cat' &
    local reader=$!
    until_true test -e holding
    until_true test -s pid
    kill -KILL "$(cat pid)"
    finish $reader
    [ "$code" -eq 0 ]
}
