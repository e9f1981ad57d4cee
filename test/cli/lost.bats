#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01: the lock is lost while the command runs. Here: its file is taken away.
load helper

lose() {
    mkdir -p away
    mv state/mortise/locks.db* away/
}

@test "GN-01 lost: the command gets TERM, mortise says so and ends with 76" {
    start run a -- bash -c 'exec 2>/dev/null
        trap "touch told; exit 0" TERM; touch holding; while :; do sleep 0.02; done' 2>err
    until_true test -e holding
    lose
    finish "$PID"
    [ "$code" -eq 76 ]
    [ -e told ]
    [ "$(wc -l < err)" -eq 1 ]
    grep 'mortise: a: .*lost' err
}

@test "GN-01 lost: a group that ignores TERM gets KILL after the grace" {
    start run --grace 200ms a -- bash -c 'exec 9>w; flock 9; trap "" TERM
        (trap "" TERM; sleep 600) & touch holding; while :; do sleep 0.1; done'
    until_true test -e holding
    lose
    finish "$PID"
    [ "$code" -eq 76 ]
    flock -n w true
}

@test "GN-01 lost: MORTISE_LOCK_FD becomes readable" {
    start run --grace 60s a -- python3 -c '
import os, select, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("holding", "w")
fd = int(os.environ["MORTISE_LOCK_FD"])
open("got", "w").write(repr(bool(select.select([fd], [], [], 20)[0])) + str(len(os.read(fd, 9))))'
    until_true test -e holding
    lose
    finish "$PID"
    [ "$code" -eq 76 ]
    [ "$(cat got)" = True1 ]
}

@test "GN-01 lost: a stopped command is continued, and gets TERM" {
    start run --grace 60s a -- bash -c 'exec 2>/dev/null; trap "touch told; exit" TERM; echo $$ >holding; kill -STOP $$
        while :; do sleep 0.02; done'
    until_true test -s holding
    until_true grep '^State:.T' "/proc/$(cat holding)/status"
    lose
    finish "$PID"
    [ "$code" -eq 76 ]
    [ -e told ]
}

@test "GN-01 --on-lost kill: no TERM before KILL" {
    start run --on-lost kill --grace 60s a -- bash -c 'trap "touch told" TERM; touch holding
        while :; do sleep 0.02; done'
    until_true test -e holding
    lose
    finish "$PID"
    [ "$code" -eq 76 ]
    [ ! -e told ]
}

@test "GN-01 --on-lost exec: the command given is told which group, and KILL comes all the same" {
    start run --on-lost 'exec:echo "$MORTISE_NAME $MORTISE_GROUP" >got' --grace 500ms a -- \
        bash -c 'trap "touch told" TERM; echo $$ >holding; while :; do sleep 0.02; done'
    until_true test -s holding
    lose
    finish "$PID"
    [ "$code" -eq 76 ]
    until_true test -s got # nobody waits for its end
    [ "$(cat got)" = "a $(cat holding)" ]
    [ ! -e told ]
}

@test "--on-lost: values that are refused" {
    for bad in "" x exec: TERM; do
        fails_with 64 "$MORTISE" run --on-lost "$bad" a -- true
    done
}
