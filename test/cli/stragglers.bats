#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run --stragglers: processes that leave the command's process group, as daemons do.
load helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

teardown() {
    if [ "${PLACE:-}" ]; then python3 "$SERVERS" stop "$PLACE"; fi
    [ ! -s "$T/pid" ] || kill -KILL "$(cat "$T/pid")" 2>/dev/null || true
    clean_up
}

# A command that leaves a process behind, in a session of its own, which runs $1 (sh) and has its
# number in the file pid.
leaving() {
    echo "setsid sh -c 'echo \$\$ >pid; ${1:-exec sleep 600}' >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.01; done"
}

straggler_runs() {
    is_running "$(cat pid)"
}

# More than a zombie.
is_running() {
    grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null
}

straggler_is_gone() {
    ! straggler_runs
}

@test "by default stragglers are left alone, the lock is free at once, and -v says so" {
    run -0 "$MORTISE" run -v a -- sh -c "$(leaving)"
    [[ "$output" == *"a: processes that left the command's group live on, without the lock"* ]]
    straggler_runs
    is_free a
    kill "$(cat pid)"
    rm pid
    run -0 "$MORTISE" run --json a -- sh -c "$(leaving)"
    [[ "$output" == *'"event": "stragglers"'* ]]
    run -0 "$MORTISE" run -v a -- true
    [[ "$output" != *"left the command's group"* ]]
}

@test "--stragglers=wait: the lock is not free while one lives" {
    start run -v --stragglers wait a -- sh -c "$(leaving); exit 7" 2>said
    until_true grep "the command has ended, others that descend from it live on" said
    straggler_runs
    run -75 "$MORTISE" run -n a true
    kill "$(cat pid)"
    finish "$PID"
    [ "$code" -eq 7 ]
    is_free a
}

# Of a run in the background whose command leaves one behind: the lock is kept for it.
is_kept_for_it() {
    until_true test -s pid
    sleep 0.3
    run -75 "$MORTISE" run -n a true
    kill "$(cat pid)"
    finish "$PID"
}

@test "--stragglers=wait: also for one that was forked twice, and for one whose parent lives" {
    start run --stragglers wait a -- \
        sh -c "setsid sh -c 'setsid sh -c \"echo \\\$\\\$ >pid; exec sleep 600\" & exit' & wait"
    is_kept_for_it
    rm pid
    start run --stragglers wait a -- \
        sh -c "setsid sh -c 'setsid sh -c \"echo \\\$\\\$ >pid; exec sleep 600\" & wait' & true"
    is_kept_for_it
    [ "$code" -eq 0 ]
}

@test "--stragglers=wait: a signal for mortise ends them" {
    start run -v --stragglers wait --grace 0.3 a -- \
        sh -c "$(leaving "trap : TERM; while :; do sleep 1; done")" 2>said
    until_true grep "the command has ended, others that descend from it live on" said
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 0 ] # the command had ended before
    straggler_is_gone
}

@test "--stragglers=end: they are dead before the lock is free, also one that ignores TERM" {
    run -7 "$MORTISE" run --stragglers end a -- sh -c "$(leaving); exit 7"
    straggler_is_gone
    rm pid
    run -0 "$MORTISE" run --stragglers end --grace 0.3 a -- \
        sh -c "$(leaving "trap : TERM; while :; do sleep 1; done")"
    straggler_is_gone
}

@test "--stragglers=end: one that goes on forking is caught" {
    run -0 "$MORTISE" run --stragglers end --grace 0.2 a -- sh -c "$(leaving \
        "trap : TERM; while :; do setsid sleep 600.25 & sleep 0.02; done")"
    straggler_is_gone
    run -1 pgrep -f '^sleep 600.25'
}

@test "--stragglers=end: a child that mortise had before the command is not touched" {
    sh -c 'setsid sleep 600 3>&- & echo $! >before; sleep 0.1
           exec "$MORTISE" run --stragglers end a -- true'
    is_running "$(cat before)"
    kill "$(cat before)"
}

@test "stragglers are ended when the lock is lost, and the command of --on-lost is not" {
    local what
    for what in end wait; do
        rm -f pid told
        start run --stragglers "$what" --grace 0.3 \
            --on-lost 'exec:kill -TERM -$MORTISE_GROUP; sleep 1; touch told' a -- \
            sh -c "$(leaving); exec sleep 600"
        until_true test -s pid
        "$MORTISE" break a --fence "$("$MORTISE" ls a --json | sed -n 's/.*"fence": \([0-9]*\).*/\1/p')"
        finish "$PID"
        [ "$code" -eq 76 ]
        straggler_is_gone
        until_true test -e told
    done
}

@test "stragglers are killed by the guard before the lease ends while mortise is stopped" {
    local what holder
    export -f straggler_is_gone straggler_runs is_running
    command -v redis-server || skip "no Redis server"
    PLACE=$(mktemp -d /tmp/mortise-cli-XXXXXX)
    MORTISE_URL="$(python3 "$SERVERS" start redis "$PLACE" 3>&- | cut -d ' ' -f 2)?session=3s"
    export MORTISE_URL
    for what in end wait; do
        rm -f pid
        start run --stragglers "$what" a -- sh -c "$(leaving); exec sleep 600"
        holder=$PID
        until_true test -s pid
        kill -STOP "$holder"
        run -0 "$MORTISE" run -w 60 a -- bash -c straggler_is_gone # the next one has come by its end
        kill -CONT "$holder"
        finish "$holder"
        [ "$code" -eq 76 ]
    done
}

@test "--stragglers: --max-hold ends them too; bad arguments; not with -F" {
    run -124 "$MORTISE" run --stragglers wait --max-hold 0.5 a -- sh -c "$(leaving); exec sleep 600"
    straggler_is_gone
    fails_with 64 "$MORTISE" run --stragglers kill a true
    fails_with 64 "$MORTISE" run --stragglers end -F a true
    [[ "${lines[0]}" == *"--stragglers and -F do not go together"* ]]
    MORTISE_STRAGGLERS=none fails_with 78 "$MORTISE" run a true
}
