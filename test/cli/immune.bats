#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A command that runs as another user, as one of sudo(8) does: no signal of ours reaches it.
load helper

setup_file() {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
}

# The effect of sudo, for any user: a command with all of root's user ids.
prepare() {
    chmod 755 "$T"
    mkdir home
    chown nobody home
    cp "$MORTISE" mortise
    install -m 4755 "$(command -v setpriv)" sudo
    export MORTISE_URL="sqlite://$T/home/locks.db"
}

# as_nobody ARGUMENTS: mortise in the background, its errors in the file err.
as_nobody() {
    env --default-signal=HUP,INT,QUIT setpriv --reuid nobody --clear-groups ./mortise "$@" 2>err 3>&- &
    PID=$!
    until_true test -e holding
}

lose() {
    mkdir -p away
    mv home/locks.db* away/
}

is_told() {
    [ "$(grep -c 'cannot be stopped: it runs as another user' err)" -eq 1 ]
}

@test "a lost lock: the command that cannot be stopped is told of while it runs, and the code is 79" {
    prepare
    as_nobody run --status-fd 1 a -- ./sudo --reuid 0 sh -c 'touch holding; until [ -e end ]; do sleep 0.05; done' >events
    grep "warning: ./sudo runs as another user.*sudo mortise run" err
    lose
    until_true is_told
    grep '"event": "cannot-stop"' events
    kill -0 "$PID"
    touch end
    finish "$PID"
    [ "$code" -eq 79 ]
    [[ "$(tail -n 1 err)" == "mortise: a: the lock was lost; the command ran on without it, as another user" ]]
}

@test "one process of the group that cannot be stopped is told of when the others are dead" {
    prepare
    as_nobody run --grace 100ms a -- sh -c './sudo --reuid 0 sh -c "touch holding; until [ -e end ]; do sleep 0.05; done"; true'
    run -1 grep warning err
    lose
    until_true is_told
    touch end
    finish "$PID"
    [ "$code" -eq 79 ]
}

@test "a limit of time: the command that cannot be stopped keeps the lock" {
    prepare
    as_nobody run --max-hold 2s --grace 100ms a -- ./sudo --reuid 0 sh -c 'touch holding; until [ -e end ]; do sleep 0.05; done'
    until_true grep "cannot be stopped.*the lock stays held" err
    run -75 setpriv --reuid nobody --clear-groups ./mortise run -n a true
    touch end
    finish "$PID"
    [ "$code" -eq 124 ]
}

@test "only a command of another user that would be stopped is warned of" {
    prepare
    run -0 setpriv --reuid nobody --clear-groups ./mortise run a true
    [ -z "$output" ]
    run -0 setpriv --reuid nobody --clear-groups ./mortise run --on-lost ignore a ./sudo --reuid 0 true
    [ -z "$output" ]
    PATH="$T:$PATH" run -0 setpriv --reuid nobody --clear-groups ./mortise run a sudo --reuid 0 true
    [[ "$output" == *"warning: sudo runs as another user"* ]]
    unset MORTISE_URL
    run -0 "$MORTISE" run a ./sudo --reuid 0 true
    [ -z "$output" ]
}
