#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise acquire and release: a lock that no process holds (C11).
load helper

@test "C11: acquire --durable, and release by the token" {
    token=$("$MORTISE" acquire --durable deploy)
    [[ "$token" =~ ^[0-9a-f]{32}-[0-9]+$ ]]
    run -75 "$MORTISE" run -n deploy -- true
    run -75 "$MORTISE" acquire -n deploy
    [[ "$output" == *deploy* ]]
    run -75 "$MORTISE" acquire -w 10ms deploy
    run -0 "$MORTISE" ls deploy
    [[ "${lines[1]}" =~ ^deploy\ +holds\ .*\ nobody:\ detached$ ]]
    run -0 "$MORTISE" ls --json deploy
    [[ "$output" == *'"detached": true'* ]]
    MORTISE_TOKEN=$token run -0 "$MORTISE" release deploy
    [ -z "$output" ]
    run -0 "$MORTISE" run -n deploy -- true
    MORTISE_TOKEN=$token run -1 "$MORTISE" release deploy
}

@test "C11: release reads the token on standard input, and the next waiter has the lock" {
    "$MORTISE" acquire --durable deploy >token
    start run deploy -- touch ran
    until_true waiters deploy 1
    "$MORTISE" release deploy <token
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e ran ]
}

@test "C11: an operator breaks a lock that acquire --durable left" {
    "$MORTISE" acquire --durable deploy >token
    fence=$("$MORTISE" ls --json deploy | python3 -c 'import json,sys; print(json.load(sys.stdin)[0]["fence"])')
    run -0 "$MORTISE" break deploy --fence "$fence"
    run -0 "$MORTISE" run -n deploy -- true
    run -1 "$MORTISE" release deploy <token
}

@test "acquire: shared, permits and several locks" {
    "$MORTISE" acquire --durable -s data >reader
    run -0 "$MORTISE" run -n -s data -- true
    run -75 "$MORTISE" run -n -x data -- true
    run -64 "$MORTISE" release -x data <reader
    run -0 "$MORTISE" release -s data <reader
    run -0 "$MORTISE" run -n -x data -- true
    "$MORTISE" acquire --durable --permits 3 --weight 2 builders >two
    run -75 "$MORTISE" run -n --permits 3 --weight 2 builders -- true
    run -0 "$MORTISE" run -n --permits 3 builders -- true
    run -0 "$MORTISE" release --permits 3 --weight 2 builders <two
}

@test "release: a text that is no token is refused" {
    "$MORTISE" acquire --durable deploy >token
    for wrong in nonsense 0123456789abcdef0123456789abcdef- \
        0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-1; do
        MORTISE_TOKEN=$wrong run -64 "$MORTISE" release deploy
    done
    run -64 "$MORTISE" release deploy </dev/null
    run -64 "$MORTISE" release </dev/null
    run -64 "$MORTISE" acquire
    run -64 "$MORTISE" acquire a b
    run -64 "$MORTISE" acquire -w soon a
    MORTISE_TOKEN=0123456789abcdef0123456789abcdef-1 run -1 "$MORTISE" release deploy
    run -0 "$MORTISE" release deploy <token
}

@test "C11: a token that cannot be printed keeps no lock" {
    run -1 sh -c '"$MORTISE" acquire --durable deploy >/dev/full'
    run -0 "$MORTISE" run -n deploy -- true
}
