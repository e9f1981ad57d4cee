#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run: exit codes and flock's letters.
load helper

@test "exit code: the command's own" {
    run "$MORTISE" run a -- true
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    run "$MORTISE" run a -- sh -c 'exit 7'
    [ "$status" -eq 7 ]
    run "$MORTISE" run a -- sh -c 'exit 255'
    [ "$status" -eq 255 ]
}

@test "exit code: 128 and the signal's number" {
    run "$MORTISE" run a -- sh -c 'kill -TERM $$'
    [ "$status" -eq 143 ]
    run "$MORTISE" run a -- sh -c 'kill -KILL $$'
    [ "$status" -eq 137 ]
}

@test "exit code: 127 not found, 126 cannot be run, and the lock is free again" {
    fails_with 127 "$MORTISE" run a -- no-such-command-anywhere
    echo 'data' > plain
    fails_with 126 "$MORTISE" run a -- ./plain
    fails_with 126 "$MORTISE" run a -- /
    is_free a
}

@test "a script without an interpreter line is run by the shell" {
    if grep -q ld-musl "$MORTISE"; then skip "musl's execvp starts no shell"; fi
    echo 'exit 5' > script
    chmod +x script
    run "$MORTISE" run a -- ./script
    [ "$status" -eq 5 ]
}

@test "standard input, output and error are the command's" {
    run sh -c 'echo in | "$MORTISE" run a -- sh -c "cat; echo err >&2" 2>err'
    [ "$output" = in ]
    [ "$(cat err)" = err ]
}

@test "arguments arrive as they are, also those that look like options" {
    run "$MORTISE" run a -- printf '%s|' -n --url '' 'x y' --
    [ "$output" = '-n|--url||x y|--|' ]
    run "$MORTISE" run a printf '%s|' -v
    [ "$output" = '-v|' ]
}

@test "-n: 75 at once if held, saying by whom" {
    start_holder a
    fails_with 75 "$MORTISE" run -n a -- touch ran
    [[ "$output" == *"a: held by sh host "*" pid "*" for "*s ]]
    fails_with 75 "$MORTISE" run --nonblock a -- touch ran
    [ ! -e ran ]
    run "$MORTISE" run -n other -- true
    [ "$status" -eq 0 ]
}

@test "-w: 75 when the time is up, and nothing stays queued" {
    start_holder a
    before=$(date +%s%N)
    fails_with 75 "$MORTISE" run -w 0.3 a -- touch ran
    took=$((($(date +%s%N) - before) / 1000000))
    [ "$took" -ge 300 ]
    waiters a 0
    [ ! -e ran ]
    fails_with 75 "$MORTISE" run --timeout 50ms a -- touch ran
}

@test "-w 0 does not wait" {
    start_holder a
    fails_with 75 "$MORTISE" run -w 0 a -- true
    run "$MORTISE" run -w 0 other -- true
    [ "$status" -eq 0 ]
}

@test "-w: acquired if it comes free in time" {
    start_holder a
    start run -w 60 a -- touch ran
    waiter=$PID
    until_true waiters a 1
    kill -TERM "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e ran ]
}

@test "-E: another exit code for not acquired, also 0" {
    start_holder a
    fails_with 3 "$MORTISE" run -n -E 3 a -- true
    fails_with 0 "$MORTISE" run -E0 -w 0.05 a -- false
    fails_with 255 "$MORTISE" run --conflict-exit-code=255 -n a -- true
    run "$MORTISE" run -n -E 3 other -- sh -c 'exit 4'
    [ "$status" -eq 4 ]
}

@test "-c: a string for the shell, before or after the name" {
    run "$MORTISE" run -c 'echo $((1+2)); exit 9' a
    [ "$status" -eq 9 ]
    [ "$output" = 3 ]
    run "$MORTISE" run a -c 'echo "$MORTISE_NAME"'
    [ "$output" = a ]
    printf '#!/bin/sh\necho "shell: $*"\n' > sh
    chmod +x sh
    SHELL="$T/sh" run "$MORTISE" run --command 'some thing' a
    [ "$output" = "shell: -c some thing" ]
}

@test "-v says what happens, and nothing is said without it" {
    run "$MORTISE" run -v a -- true
    [[ "${lines[0]}" == "mortise: a: acquired after "*", fence "* ]]
    [ "${lines[1]}" = "mortise: a: released" ]
    start_holder a
    start run -v a -- true 2>said
    until_true grep '^mortise: a: waiting, held by sh host ' said
    kill -TERM "$PID"
    finish "$PID"
    [ "$(wc -l <said)" -eq 1 ]
}

@test "durations: all forms are understood" {
    start_holder a
    for duration in 0 0.01 .01 10ms 0.01s 0.0001m 0m10ms; do
        run "$MORTISE" run -w "$duration" a -- true
        echo "$duration: $output"
        [ "$status" -eq 75 ]
    done
}

@test "20 commands at once: one at a time, none lost" {
    echo 0 > number
    pids=
    for i in $(seq 20); do
        start run count -- sh -c 'flock -n w true || echo overlap >> bad
            flock w sh -c "n=\$(cat number); sleep 0.01; echo \$((n + 1)) > number"'
        pids="$pids $PID"
    done
    all_end_with 0 $pids
    [ "$(cat number)" -eq 20 ]
    [ ! -e bad ]
}

@test "a killed holder's waiter goes on, and the fence rises" {
    first=$("$MORTISE" run a -- sh -c 'echo $MORTISE_FENCE')
    start_holder a
    start run a -- sh -c 'echo $MORTISE_FENCE > fence'
    waiter=$PID
    until_true waiters a 1
    kill -KILL "$HOLDER"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ "$(cat fence)" -gt "$((first + 1))" ]
}

@test "the default store: where, and closed to others" {
    umask 0
    "$MORTISE" run a -- true
    [ -f "$T/state/mortise/locks.db" ]
    [ "$(stat -c %a "$T/state/mortise")" = 700 ]
    [ "$(stat -c %a "$T/state/mortise/locks.db")" = 600 ]
    [ -z "$(find "$T/state/mortise" -type f ! -perm 600)" ]
}

@test "other stores: --url before or after the subcommand, MORTISE_URL" {
    "$MORTISE" --url "sqlite://$T/one.db" run a -- true
    [ -f one.db ]
    "$MORTISE" run --url "sqlite:two.db" a -- true
    [ -f two.db ]
    MORTISE_URL="sqlite:three.db" "$MORTISE" run a -- true
    [ -f three.db ]
    MORTISE_URL="sqlite:four.db" "$MORTISE" run --url sqlite:five.db a -- true
    [ ! -e four.db ]
    [ ! -e state ]
}

@test "an unsafe store is refused: 78" {
    mkdir -p open
    chmod 777 open
    fails_with 78 "$MORTISE" --url "sqlite://$T/open/locks.db" run a -- touch ran
    ln -s "$T/real.db" link.db
    fails_with 78 "$MORTISE" --url "sqlite://$T/link.db" run a -- touch ran
    [ ! -e ran ]
    [ ! -e real.db ]
}

@test "a caller without standard descriptors" {
    "$MORTISE" run a -- sh -c 'echo still > out' <&- >&- 2>&-
    [ "$(cat out)" = still ]
}
