#!/usr/bin/env bats
# GN-01, GN-03: mortise killed by KILL takes its command's whole process group with
# it, and nobody gets the lock before that.
load helper

# Everything below inherits flock's descriptor, so the witness is free only when
# all of them are dead.
HARD_TO_KILL='exec 9>w; flock -n 9 || echo overlap >> bad
trap "" TERM INT HUP QUIT
(trap "" TERM INT HUP; sleep 60) &
sh -c "sleep 60 & sleep 60" &
touch holding
sleep 60'

@test "GN-01 GN-03: kill -9 ends the whole group before the next one starts" {
    for i in $(seq 10); do
        rm -f holding
        start run a -- bash -c "$HARD_TO_KILL"
        victim=$PID
        until_true test -e holding
        start run a -- bash -c 'exec 9>w; flock -n 9 || echo overlap >> bad'
        waiter=$PID
        until_true waiters a 1
        kill -KILL "$victim"
        finish "$waiter"
        [ "$code" -eq 0 ]
        [ ! -e bad ]
    done
}

@test "GN-03: kill -9 right at the start leaves nothing behind" {
    for i in $(seq 20); do
        start run a -- sh -c 'exec 9>w; flock -n 9 || echo overlap >> bad; sleep 60 & sleep 60'
        victim=$PID
        sleep "0.0$((i % 10))$((i / 10))"
        kill -KILL "$victim"
        run "$MORTISE" run -w 60 a -- bash -c 'exec 9>w; flock -n 9 || echo overlap >> bad'
        [ "$status" -eq 0 ]
    done
    [ ! -e bad ]
}

@test "GN-03: the guard holds none of the caller's pipes, and goes with its run" {
    start run a -- sh -c 'touch holding; sleep 60 >/dev/null 2>&1'
    until_true test -e holding
    guard=$(pgrep -P "$PID" -f . | while read -r pid; do
        if [ "$(cat "/proc/$pid/comm")" = lock-guard ]; then echo "$pid"; fi; done)
    [ -n "$guard" ]
    for fd in 0 1 2; do [ ! -e "/proc/$guard/fd/$fd" ]; done
    [ "$(readlink "/proc/$guard/cwd")" = / ]
    kill -TERM "$guard" "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    until_true is_gone "$guard"
}

@test "GN-03: output of a killed run ends with the command" {
    # The pipe's reader sees the end of file only when nobody holds it any more.
    timeout 60 sh -c '("$MORTISE" run a -- sh -c "touch holding; sleep 60" 3>&- & echo $! > pid; wait) | cat' &
    until_true test -e holding
    kill -KILL "$(cat pid)"
    finish $!
    [ "$code" -eq 0 ]
}
