#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-02: every signal, while waiting and while the command runs.
load helper

number() {
    kill -l "$1"
}

@test "GN-02 waiting: a signal ends it with 128+N, and nothing stays queued" {
    start_holder a
    for signal in HUP INT QUIT TERM USR1 USR2; do
        start run a -- touch ran
        waiter=$PID
        until_true waiters a 1
        kill -"$signal" "$waiter"
        finish "$waiter"
        echo "$signal: $code"
        [ "$code" -eq $((128 + $(number "$signal"))) ]
        waiters a 0
    done
    [ ! -e ran ]
}

@test "GN-02 waiting: the one behind moves up when the one ahead is interrupted" {
    start_holder a
    start run a -- touch first
    first=$PID
    until_true waiters a 1
    start run a -- touch second
    second=$PID
    until_true waiters a 2
    kill -INT "$first"
    finish "$first"
    [ "$code" -eq 130 ]
    kill -TERM "$HOLDER"
    finish "$second"
    [ "$code" -eq 0 ]
    [ -e second ]
    [ ! -e first ]
}

@test "GN-02 waiting: a stopped waiter goes on after CONT" {
    start_holder a
    start run a -- touch ran
    waiter=$PID
    until_true waiters a 1
    kill -STOP "$waiter"
    kill -CONT "$waiter"
    kill -TERM "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e ran ]
}

@test "GN-02 a store that is busy: a signal ends it, and -w its time" {
    "$MORTISE" run a -- true
    python3 -c '
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open("busy", "w")
time.sleep(60)' state/mortise/locks.db 3>&- &
    until_true test -e busy
    start run a -- touch ran
    sleep 0.3
    kill -INT "$PID"
    finish "$PID"
    [ "$code" -eq 130 ]
    fails_with 75 "$MORTISE" run -w 0.3 a -- touch ran
    [ ! -e ran ]
}

@test "GN-02 running: forwarded to the command, whose exit code counts" {
    for signal in HUP INT QUIT TERM USR1 USR2 WINCH CONT; do
        rm -f ready
        start run a -- bash -c "trap 'exit 42' $signal; touch ready
            while :; do sleep 0.02; done"
        until_true test -e ready
        kill -"$signal" "$PID"
        finish "$PID"
        echo "$signal: $code"
        [ "$code" -eq 42 ]
    done
    is_free a
}

@test "GN-02 running: not caught, 128+N" {
    for signal in HUP INT TERM USR1; do
        rm -f holding
        start_holder a
        kill -"$signal" "$HOLDER"
        finish "$HOLDER"
        echo "$signal: $code"
        [ "$code" -eq $((128 + $(number "$signal"))) ]
    done
}

@test "GN-02 running: forwarded to the whole group, a second time too" {
    start run a -- bash -c "trap 'echo one >> got' TERM
        bash -c \"trap 'echo two >> got; exit' TERM; touch ready; while :; do sleep 0.02; done\" &
        while [ \"\$(grep -c one got)\" != 2 ]; do sleep 0.02; done 2>/dev/null; exit 5"
    until_true test -e ready
    kill -TERM "$PID"
    until_true grep one got
    until_true grep two got
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 5 ]
}

@test "GN-02 running: a command that ignores TERM keeps the lock" {
    start run a -- bash -c "trap '' TERM; touch ready; while [ ! -e end ]; do sleep 0.02; done; exit 3"
    until_true test -e ready
    kill -TERM "$PID"
    fails_with 75 "$MORTISE" run -w 100ms a true
    touch end
    finish "$PID"
    [ "$code" -eq 3 ]
}

@test "GN-02 nohup: an ignored signal stays ignored, waiting and running" {
    start_holder a
    (trap '' HUP; exec "$MORTISE" run a -- sh -c 'touch ready; while [ ! -e end ]; do sleep 0.02; done; exit 4') 3>&- &
    pid=$!
    until_true waiters a 1
    kill -HUP "$pid"
    sleep 0.2
    waiters a 1
    kill -TERM "$HOLDER"
    until_true test -e ready
    kill -HUP "$pid"
    touch end
    finish "$pid"
    [ "$code" -eq 4 ]
}

@test "an ignored SIGCHLD does not lose the exit code" {
    run timeout -s KILL 60 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$MORTISE" run a -- sh -c 'exit 6'
    echo "status $status: $output"
    [ "$status" -eq 6 ]
}

@test "the command's signal mask and dispositions are the defaults" {
    run "$MORTISE" run a -- sed -n 's/^Sig\(Blk\|Ign\):\t//p' /proc/self/status
    mask=$(python3 - "${lines[0]}" "${lines[1]}" <<'PY'
import signal, sys
ours = [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
        signal.SIGCHLD, signal.SIGTSTP, signal.SIGTTOU, signal.SIGCONT, signal.SIGWINCH]
bits = int(sys.argv[1], 16)
print([s.name for s in ours if bits >> (s - 1) & 1])
PY
)
    [ "$mask" = "[]" ]
}

@test "survivors of the group hold the lock until they end" {
    start run -v a -- sh -c '(while [ ! -e end ]; do sleep 0.02; done) & exit 3' 2>said
    until_true grep 'others of its process group live on' said
    fails_with 75 "$MORTISE" run -n a true
    kill -0 "$PID"
    touch end
    finish "$PID"
    [ "$code" -eq 3 ]
    is_free a
}

@test "survivors of the group are ended, TERM and then KILL, if mortise is told to end" {
    start run -v --grace 0.2 a -- sh -c '(trap "" TERM INT; touch ready; while :; do sleep 1; done) & exit 3' 2>said
    until_true test -e ready
    until_true grep 'others of its process group live on' said
    kill -INT "$PID"
    finish "$PID"
    [ "$code" -eq 3 ]
    is_free a
}
