#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run: shared and exclusive, permits, several locks, and how long they are held.
load helper

# start_held OPTION... NAME: a holder in some mode, that touches $NAME.
start_held() {
    local mark="${!#}"
    start run "$@" -- sh -c "touch '$T/$mark.held'; exec sleep 600"
    HELD=$PID
    until_true test -e "$T/$mark.held"
    rm "$T/$mark.held"
}

# writer_comes_first [OPTION]: a run with this option waits for a reader, and no reader passes it.
writer_comes_first() {
    start_held -s a
    start run "$@" a -- touch written
    writer=$PID
    until_true waiters a 1
    fails_with 75 "$MORTISE" run -n -s a -- true
    kill -TERM "$HELD"
    finish "$writer"
    [ "$code" -eq 0 ]
    [ -e written ]
}

# events FILE EVENT...: these events and no others, each line sound JSON.
events() {
    python3 - "$@" <<'PY'
import datetime, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [l["event"] for l in lines] == sys.argv[2:], lines
for line in lines:
    datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
PY
}

@test "-s: runs beside other -s, not beside -x" {
    start_held -s a
    run -0 "$MORTISE" run -n -s a -- true
    fails_with 75 "$MORTISE" run -n -x a -- true
    fails_with 75 "$MORTISE" run -n --exclusive a -- true
    kill -TERM "$HELD"
    finish "$HELD"
    start_held -x a
    fails_with 75 "$MORTISE" run -n -s a -- true
    fails_with 75 "$MORTISE" run -n --shared a -- true
}

@test "-s and -x: a writer that waits comes before readers that come later" {
    writer_comes_first -x
}

@test "u5 a plain run, -x and -s of one name are one lock, whichever comes first" {
    for held in "" -x -s; do
        start_held $held a
        for wanted in "" -x -s; do
            [ "$held$wanted" != -s-s ] || continue
            fails_with 75 "$MORTISE" run -n $wanted a -- true
            [[ "$output" == "mortise: a: held by sh host "* ]]
            fails_with 75 "$MORTISE" run -w 50ms $wanted a -- true
            run -75 "$MORTISE" try $wanted a
            run -75 "$MORTISE" acquire -n $wanted a
        done
        pids=
        for wanted in "" -x -s; do
            start run $wanted a -- sh -c "echo a >>ran"
            pids="$pids $PID"
        done
        kill -TERM "$HELD"
        finish "$HELD"
        all_end_with 0 $pids
    done
    [ "$(wc -l <ran)" -eq 9 ]
}

@test "u5 a plain run has its place among those that say -s and -x" {
    writer_comes_first
}

@test "u5 a reader that waits for a plain run says so, and a signal ends it" {
    start_held a
    start run -v --status-fd 4 -s a -- touch ran 2>said 4>got
    until_true grep '"queued"' got
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    grep "^mortise: a: waiting, held by sh host .* pid $HELD " said
    events got queued interrupted
    "$MORTISE" acquire k >token
    fails_with 64 "$MORTISE" run -s k -- touch ran # as with a plain run: it would wait for its own script
    [ ! -e ran ]
}

@test "a name in use with another kind: 64, naming both kinds" {
    start_held --permits 2 a
    for wanted in "" -x -s; do
        fails_with 64 "$MORTISE" run -n $wanted a -- true
        [[ "$output" == *semaphore* ]]
        run -64 "$MORTISE" try $wanted a
    done
    start_held b
    fails_with 64 "$MORTISE" run -n --permits 2 b -- true
}

@test "--permits N: so many at a time; --weight takes several" {
    start_held --permits 3 a
    start_held --permits 3 a
    run -0 "$MORTISE" run -n --permits 3 a -- true
    fails_with 75 "$MORTISE" run -n --permits 3 --weight 2 a -- true
    start_held --permits 3 a
    fails_with 75 "$MORTISE" run -n --permits 3 a -- true
    fails_with 64 "$MORTISE" run -n --permits 4 a -- true
    [[ "$output" == *4* && "$output" == *3* ]]
}

@test "--permits, --weight: nonsense is refused" {
    for bad in 0 -1 x "" 1.5 99999999999; do
        fails_with 64 "$MORTISE" run --permits "$bad" a -- true
        fails_with 64 "$MORTISE" run --permits 3 --weight "$bad" a -- true
    done
    fails_with 64 "$MORTISE" run --permits 2 --weight 3 a -- true
    fails_with 64 "$MORTISE" run --weight 2 a -- true
    [ ! -e state ]
}

@test "--also: all locks or none" {
    start_held b
    fails_with 75 "$MORTISE" run -n --also a --also b c -- touch ran
    [[ "$output" == "mortise: b: held by "* ]]
    for name in a c; do is_free "$name"; done
    kill -TERM "$HELD"
    finish "$HELD"
    start_held --also b --also c a
    for name in a b c; do fails_with 75 "$MORTISE" run -n "$name" -- true; done
    kill -TERM "$HELD"
    finish "$HELD"
    for name in a b c; do is_free "$name"; done
    [ ! -e ran ]
}

@test "--also: while one is waited for, a signal gives back the others" {
    start_held b
    start run --also b a -- touch ran
    both=$PID
    until_true waiters b 1
    fails_with 75 "$MORTISE" run -n a -- true
    kill -TERM "$both"
    finish "$both"
    [ "$code" -eq 143 ]
    is_free a
    waiters b 0
    [ ! -e ran ]
}

@test "--also: in whatever order they are named, nobody waits for a circle" {
    pids=
    for i in $(seq 10); do
        start run --also a b -- true
        pids="$pids $PID"
        start run --also b a -- true
        pids="$pids $PID"
    done
    all_end_with 0 $pids
}

@test "--also: the same name twice is refused; MORTISE_NAME and fence are those of NAME" {
    fails_with 64 "$MORTISE" run --also a a -- true
    run -0 "$MORTISE" run --also a b -- sh -c 'echo "$MORTISE_NAME $MORTISE_FENCE"; echo "$MORTISE_HELD"'
    fence="${lines[0]#b }"
    [[ "$output" == *"$fence"$'\texclusive\t'*$'\tb'* ]]
    [ "$(grep -c exclusive <<<"$output")" -eq 2 ]
}

@test "nested: locks that an outer run holds are not waited for, others are acquired" {
    run -0 timeout 60 "$MORTISE" run --also b a -- "$MORTISE" run --also c b -- \
        sh -c 'grep -c exclusive <<X
$MORTISE_HELD
X'
    [ "$output" = 3 ]
    run -0 timeout 60 "$MORTISE" run -x a -- "$MORTISE" run -s a -- "$MORTISE" run -x a -- true
    run -0 timeout 60 "$MORTISE" run --permits 1 a -- "$MORTISE" run --permits 1 a -- true
}

@test "nested: exclusive inside shared would wait for itself: 64 at once" {
    fails_with 64 timeout 60 "$MORTISE" run -s a -- "$MORTISE" run -x a -- true
    fails_with 64 timeout 60 "$MORTISE" run -s a -- "$MORTISE" run a -- true
}

@test "--min-hold: the lock stays held, mortise with it" {
    before=$(date +%s%N)
    run -3 "$MORTISE" run --min-hold 500ms a -- sh -c 'exit 3'
    [ $((($(date +%s%N) - before) / 1000000)) -ge 500 ]
    start run --min-hold 60s a -- touch ran
    until_true test -e ran
    sleep 0.2
    fails_with 75 "$MORTISE" run -n a -- true
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 0 ]
    is_free a
}

@test "--max-hold: TERM, then KILL after the grace, and 124" {
    # TERM waits until the command is ready for it.
    run -124 timeout 60 env --block-signal=TERM "$MORTISE" run --max-hold 100ms --grace 60s a -- python3 -c '
import signal
signal.sigwait([signal.SIGTERM])
open("told", "w")'
    [ -e told ]
    [[ "$output" == *"mortise: a: --max-hold is over"* ]]
    run -124 timeout 60 "$MORTISE" run --max-hold 100ms --grace 100ms a -- \
        bash -c 'exec 9>w; flock 9; trap "" TERM; sleep 600 & while :; do sleep 0.1; done'
    flock -n w true
    is_free a
    run -5 "$MORTISE" run --max-hold 60s a -- sh -c 'exit 5'
}

@test "--quiet-conflict: 0 and nothing said, but other errors are" {
    start_held a
    run -0 "$MORTISE" run -n --quiet-conflict a -- false
    [ -z "$output" ]
    run -9 "$MORTISE" run -w 50ms --quiet-conflict -E 9 a -- false
    [ -z "$output" ]
    run -1 "$MORTISE" run -n --quiet-conflict b -- false
    fails_with 64 "$MORTISE" run -n --quiet-conflict --permits 2 a -- true
}

@test "-o: accepted, as flock does" {
    run -7 "$MORTISE" run -o a -- sh -c 'exit 7'
}

@test "--label: what ls shows" {
    start_held --label 'the nightly one' a
    run -0 "$MORTISE" ls a
    [[ "${lines[1]}" == *"the nightly one host "*" pid $HELD" ]]
    fails_with 75 "$MORTISE" run -n a -- true
    [[ "$output" == *"held by the nightly one host "*" pid $HELD for "* ]]
    fails_with 64 "$MORTISE" run --label "$(printf 'a%.0s' $(seq 128))" a -- true
}

@test "--status-fd: each event a line of JSON" {
    run -4 sh -c '"$MORTISE" run --status-fd 3 "a\"b" -- sh -c "exit 4" 3>got'
    events got acquired started child-exit released
    python3 -c 'import json; l = [json.loads(x) for x in open("got")]
assert l[0]["name"] == "a\"b" and l[0]["fence"] == l[3]["fence"] > 0 and l[0]["waited_ms"] >= 0, l
assert l[0]["fence_text"] == l[3]["fence_text"] == str(l[0]["fence"]), l
assert l[1]["pid"] > 1 and l[2]["code"] == 4, l'
    start_held a
    start run --status-fd 4 a -- true 4>got
    until_true grep '"queued"' got
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    events got queued interrupted
    run -75 sh -c '"$MORTISE" run -w 50ms --status-fd 3 a -- true 3>got'
    sed -i '/"queued"/d' got # but who is slow to start has no time to queue
    events got not-acquired
    run -75 sh -c '"$MORTISE" run -n --json a -- true 2>got'
    grep -v ^mortise: got > lines
    events lines not-acquired
}

@test "--status-fd: the descriptor is not the command's; one that is not open is refused" {
    run -0 sh -c '"$MORTISE" run --status-fd 7 a -- sh -c "ls /proc/self/fd >fds" 7>got'
    run -1 grep -x 7 fds
    for bad in 77 -1 x ""; do
        fails_with 64 "$MORTISE" run --status-fd "$bad" a -- true
    done
    run -0 "$MORTISE" run --status-fd 1 a -- true
    [ "${#lines[@]}" -eq 4 ]
}

@test "--status-fd: a reader that is gone is no error" {
    run -0 bash -c '"$MORTISE" run --status-fd 1 a -- sh -c "sleep 0.2; touch ran" | true; exit ${PIPESTATUS[0]}'
    [ -e ran ]
}

@test "--lease: the store's lease where it has one, 64 where it has none" {
    fails_with 64 "$MORTISE" run --lease 3s a touch ran
    fails_with 64 "$MORTISE" run --lease 3s --url sqlite:x a touch ran
    # By each name that a store has; that nobody answers there comes later than 64 would.
    pids=()
    for url in zk://127.0.0.1:1/a redis://127.0.0.1:1/ redis+unix:///nothing/here \
        postgresql://127.0.0.1:1/d postgres://127.0.0.1:1/d mysql://u@127.0.0.1:1/d \
        mariadb://u@127.0.0.1:1/d; do
        timeout 60 "$MORTISE" run -n --lease 3s --url "$url" a touch ran 3>&- &
        pids+=($!)
    done
    all_end_with 69 "${pids[@]}"
    export MORTISE_URL=redis://127.0.0.1:1/ # where nobody answers: 69 is said of what is right
    for bad in 0 x -1; do
        fails_with 64 "$MORTISE" run --lease "$bad" a touch ran
    done
    fails_with 64 "$MORTISE" run --lease 3s --grace 2s a touch ran
    [[ "$output" == *"make it 1710ms at most"* ]]
    run -69 "$MORTISE" run -n --lease 3s --grace 1710ms a touch ran
    run -69 "$MORTISE" run -n --lease 3s a touch ran
    fails_with 64 "$MORTISE" run --lease 300ms --grace 1ms a touch ran
    [[ "$output" == *"make it 0ms at most"* ]]
    [ ! -e ran ]
    [ ! -e x ]
}

@test "u24 memory: is no store for commands: 78, saying so" {
    for words in "run x touch ran" "run -F x touch ran" "elect x touch ran" "acquire x" \
        "acquire --durable x" "try x"; do
        MORTISE_URL=memory:m fails_with 78 "$MORTISE" $words
        [[ "$output" == *"memory: is a store inside one process"* ]]
    done
    [ ! -e ran ]
}
