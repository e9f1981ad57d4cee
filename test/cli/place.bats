#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run -F: the command takes the place of mortise, and a keeper holds the lock. The keeper
# is killed or stands still: keeper.bash.
load helper
load keeper

# ticks_of PID: the processor time that it has used.
ticks_of() {
    awk '{sub(/.*\) /, ""); print $12 + $13}' "/proc/$1/stat"
}

@test "run -F: the process is the command's, with its exit code and its environment" {
    start run -F a -- sh -c 'echo $$ "$MORTISE_NAME" "$MORTISE_FENCE" >got; echo "$MORTISE_HELD" >held
        echo "$PPID" >parent; "$MORTISE" run a -- "$MORTISE" run -F a -- touch nested; exit 7' >out
    finish "$PID"
    [ "$code" -eq 7 ]
    read -r pid name fence <got
    [ "$pid $name" = "$PID a" ]
    [ "$fence" -gt 0 ]
    [ "$(cat held)" = "$fence"$'\texclusive\t'"sqlite:$T/state/mortise/locks.db"$'\t'a ]
    [ "$(cat parent)" = $$ ]
    [ -e nested ]
    [ ! -s out ]
    start run a -- true
    finish "$PID"
    [ "$code" -eq 0 ]
    MORTISE_NO_FORK=1 run -5 "$MORTISE" run a -- sh -c 'exit 5'
}

@test "CC-04 run -F: descriptors 0, 1, 2 and MORTISE_LOCK_FD, no child, no secret" {
    exec 7<"$MORTISE"
    MORTISE_REDIS_AUTH=hidden run "$MORTISE" run -F a -- python3 -c '
import os
held = int(os.environ["MORTISE_LOCK_FD"])
def is_open(fd):
    try: os.fstat(fd); return True
    except OSError: return False
try: os.waitpid(-1, 0)
except ChildProcessError: print("no child")
print([fd for fd in range(1024) if is_open(fd) and fd != held], is_open(held), os.getpid() == os.getpgrp())
print("hidden" in str(os.environ))'
    exec 7<&-
    echo "$output"
    [ "$output" = $'no child\n[0, 1, 2] True True\nFalse' ]
}

@test "run -F: not acquired, not executable or not due: no command, and nothing stays held" {
    start_holder a
    run -75 "$MORTISE" run -F -n a touch ran
    [[ "$output" == "mortise: a: held by sh host "* ]]
    run -75 "$MORTISE" run -F --also b -w 10ms a touch ran
    run -0 "$MORTISE" run -n b true
    run -127 "$MORTISE" run -F c nosuchcommand
    start run c true
    finish "$PID"
    run -0 "$MORTISE" run -F --every 240000h c touch once
    rm once
    run -0 "$MORTISE" run -F --every 240000h c touch once
    [ ! -e once ]
    [ ! -e ran ]
    start run -F a touch ran
    until_true waiters a 1
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    until_true waiters a 0
}

@test "run -F: the lock is held until the whole process group has ended" {
    start_in_place a
    group=$PID
    start_next a
    next=$PID
    until_true waiters a 1
    touch end.a
    finish "$group"
    [ "$code" -eq 0 ]
    run -75 "$MORTISE" run -w 100ms a true
    before=$(ticks_of "$KEEPER")
    sleep 1
    (($(ticks_of "$KEEPER") - before <= 20)) # of 100: it looks now and then
    kill -KILL -- "-$group"
    wait_for_next a "$next"
    until_true has_ended "$KEEPER"
}

@test "GN-01 run -F: the lock is lost: TERM, KILL after the grace, and MORTISE_LOCK_FD tells" {
    start run -F --grace 60s a -- python3 -c '
import os, select, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
open("holding", "w")
fd = int(os.environ["MORTISE_LOCK_FD"])
got = select.select([fd], [], [], 60)[0]
signal.sigwait([signal.SIGTERM])
sys.exit(9 if got else 1)'
    until_true test -e holding
    run -0 "$MORTISE" break a --fence "$(fence_of a)"
    finish "$PID"
    [ "$code" -eq 9 ]
    start run -F --grace 100ms b -- sh -c 'trap "" TERM; touch hard; while :; do sleep 0.02; done'
    until_true test -e hard
    run -0 "$MORTISE" break b --fence "$(fence_of b)"
    finish "$PID"
    [ "$code" -eq 137 ]
}

@test "run -F --max-hold, --min-hold and --status-fd" {
    # TERM is ignored from the start, because it may come before the command has begun to.
    (trap '' TERM; exec "$MORTISE" run -F --max-hold 1s --grace 100ms --status-fd 5 a -- \
        sh -c 'while :; do sleep 0.02; done' 5>events) 3>&- &
    PID=$!
    finish "$PID"
    [ "$code" -eq 137 ]
    until_true grep '"released"' events
    [ "$(sed 's/{"event": "\([a-z-]*\)".*/\1/' events | xargs)" = "acquired started time-is-up released" ]
    "$MORTISE" run -F --min-hold 60s a true 2>err
    run -75 "$MORTISE" run -n a true
    kill -TERM "$(holder a)"
    start run a true
    finish "$PID"
    [ "$code" -eq 0 ]
}

@test "run -F --min-hold: a signal to the keeper ends the command and gives the lock back" {
    start run -F --min-hold 1h a sleep 600
    until_true eval '[ -n "$(holder a)" ]'
    kill -TERM "$(holder a)"
    finish "$PID"
    [ "$code" -eq 143 ]
    start run a true
    finish "$PID"
    [ "$code" -eq 0 ]
}

@test "run -F on a terminal: refused where nobody would take it back" {
    run -64 script -qec 'sh -c "\"$MORTISE\" run -F a touch ran; exit \$?"' /dev/null
    [[ "$output" == *"begin with exec"* ]]
    [ ! -e ran ]
    run -3 script -qec 'exec sh -c "exec \"$MORTISE\" run -F a sh -c \"exit 3\""' /dev/null
}
