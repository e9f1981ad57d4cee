#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise try, status and check: what they tell, and by which exit codes.
load helper

@test "try: 0 if free, 75 if not, and nothing is said or left behind" {
    run -0 "$MORTISE" try a
    [ -z "$output" ]
    start_holder a
    run -75 "$MORTISE" try a
    [ -z "$output" ]
    run -75 "$MORTISE" try b a
    run -0 "$MORTISE" try b c
    waiters a 0
    is_free b
    run -75 "$MORTISE" try -- a
}

@test "try: shared, permits" {
    start run -s a -- sh -c 'touch holding; exec sleep 600'
    until_true test -e holding
    run -0 "$MORTISE" try -s a
    run -75 "$MORTISE" try -x a
    start run --permits 2 p -- sh -c 'touch more; exec sleep 600'
    until_true test -e more
    run -0 "$MORTISE" try --permits 2 p
    run -75 "$MORTISE" try --permits 2 --weight 2 p
}

@test "try: an error has its own exit code, not 75" {
    fails_with 64 "$MORTISE" try
    fails_with 64 "$MORTISE" try ''
    fails_with 64 "$MORTISE" try a a
    fails_with 64 "$MORTISE" try --permits x a
    fails_with 64 "$MORTISE" try --weight 2 a
    fails_with 78 "$MORTISE" try --url nosuch:x a
    start_holder a
    fails_with 64 "$MORTISE" try --permits 2 a
}

@test "status: free, held, waited for" {
    run -0 "$MORTISE" status a
    [ "$output" = "a: free" ]
    start_holder a
    start run a -- true
    until_true waiters a 1
    run -0 "$MORTISE" status a
    [ "${lines[0]}" = "a: held, mutex" ]
    [[ "${lines[1]}" =~ ^\ \ holds\ \ fence\ [0-9]+\ \ for\ [0-9.]+s\ \ sh\ host\ .*\ pid\ $HOLDER$ ]]
    [[ "${lines[2]}" =~ ^\ \ 1\ \ \ \ \ \ fence\ [0-9]+\ \ for\ [0-9.]+s\ \ true\ host\ .*\ pid\ $PID$ ]]
    [ "${#lines[@]}" -eq 3 ]
}

@test "status --json: fields and types" {
    name='a"ü'
    run -0 "$MORTISE" status --json "$name"
    python3 -c 'import json, sys; s = json.loads(sys.argv[1])
assert s == {"name": "a\"ü", "state": "free", "kind": None, "holders": [], "waiters": []}, s' "$output"
    start_holder "$name"
    start run "$name" -- true
    until_true waiters "$name" 1
    run -0 "$MORTISE" status "$name" --json
    python3 -c 'import json, sys; s = json.loads(sys.argv[1])
assert s["state"] == "held" and s["kind"] == "mutex", s
(h,), (w,) = s["holders"], s["waiters"]
assert h["place"] == 0 and w["place"] == 1 and 0 < h["fence"] < w["fence"], s
assert h["pid"] == int(sys.argv[2]) and h["since"].endswith("Z"), s' "$output" "$HOLDER"
}

@test "status: bad arguments" {
    fails_with 64 "$MORTISE" status
    fails_with 64 "$MORTISE" status a b
    fails_with 64 "$MORTISE" status ''
    fails_with 78 "$MORTISE" status --url nosuch:x a
}

@test "GN-07 check: a smaller fence than was seen is refused, the same and larger ones run" {
    run -3 "$MORTISE" check --fence 5 --fence-file f -- sh -c 'exit 3'
    [ "$(cat f)" = 00000000000000000005 ]
    [ "$(stat -c %a f)" = 600 ]
    fails_with 76 "$MORTISE" check --fence 4 --fence-file f -- touch ran
    [[ "$output" == *"fence 4 is stale: f has seen 5" ]]
    run -0 "$MORTISE" check --fence 5 --fence-file f true
    run -0 "$MORTISE" check --fence 18446744073709551615 --fence-file f true
    fails_with 76 "$MORTISE" check --fence 18446744073709551614 --fence-file f -- touch ran
    [ ! -e ran ]
}

@test "GN-07 check: under run the fence is known, and an older run's is stale" {
    old=$("$MORTISE" run a -- sh -c 'echo $MORTISE_FENCE')
    run -0 "$MORTISE" run a -- "$MORTISE" check --fence-file f -- echo in
    [ "$output" = in ]
    MORTISE_FENCE="$old" fails_with 76 "$MORTISE" check --fence-file f -- touch ran
    [ ! -e ran ]
}

@test "GN-07 check: a command with a smaller fence ends before one with a larger begins" {
    start check --fence 1 --fence-file f -- sh -c 'touch begun; (sleep 0.5; touch last) & :'
    until_true test -e begun
    run -0 "$MORTISE" check --fence 2 --fence-file f -- test -e last
}

@test "check: a file of fences that others could change is refused" {
    "$MORTISE" check --fence 5 --fence-file f true
    for mode in 620 602 666; do
        chmod "$mode" f
        fails_with 78 "$MORTISE" check --fence 6 --fence-file f -- touch ran
        [[ "${lines[0]}" == *"can be written by others"* ]]
    done
    chmod 644 f
    run -0 "$MORTISE" check --fence 6 --fence-file f true
    ln f other
    fails_with 78 "$MORTISE" check --fence 7 --fence-file f -- touch ran
    rm other
    if [ "$(id -u)" -eq 0 ]; then
        chown nobody f
        fails_with 78 "$MORTISE" check --fence 7 --fence-file f -- touch ran
        [[ "${lines[0]}" == *"belongs to another user"* ]]
    fi
    [ ! -e ran ]
}

@test "check: bad arguments and files" {
    fails_with 78 "$MORTISE" check --fence 0 --fence-file f -- true
    for bad in -1 x '' 18446744073709551616 1.5; do
        fails_with 64 "$MORTISE" check --fence "$bad" --fence-file f -- true
    done
    fails_with 64 "$MORTISE" check --fence 1 -- true
    fails_with 64 "$MORTISE" check --fence-file f -- true
    fails_with 64 "$MORTISE" check --fence 1 --fence-file f
    [ ! -e f ]
    MORTISE_FENCE=x fails_with 78 "$MORTISE" check --fence-file f -- true
    for text in x 5 00000000000000000000 '0000000000000000000x' 000000000000000000055; do
        echo "$text" >f
        fails_with 78 "$MORTISE" check --fence 9 --fence-file f -- touch ran
    done
    mkdir d
    fails_with 78 "$MORTISE" check --fence 9 --fence-file d -- touch ran
    fails_with 78 "$MORTISE" check --fence 9 --fence-file none/f -- touch ran
    ln -s elsewhere link
    fails_with 78 "$MORTISE" check --fence 9 --fence-file link -- touch ran
    rm f
    fails_with 127 "$MORTISE" check --fence 9 --fence-file f -- no-such-command-anywhere
    [ ! -e ran ]
}

@test "revoke: run reports the request and goes on; 1 if the lock is free" {
    start run --status-fd 1 a -- sh -c 'touch holding; exec sleep 600' >events
    until_true test -e holding
    run -0 "$MORTISE" revoke a
    [ -z "$output" ]
    until_true grep '"event": "revoke"' events
    fails_with 75 "$MORTISE" run -n a -- true
    fails_with 1 "$MORTISE" revoke b
    fails_with 1 "$MORTISE" revoke a --fence 999999
}

@test "break: the holder's command is ended with 76, and the next waiter has the lock" {
    start_holder a
    start run a -- touch ran
    waiter=$PID
    until_true waiters a 1
    fence=$("$MORTISE" status --json a | python3 -c 'import json, sys; print(json.load(sys.stdin)["holders"][0]["fence"])')
    fails_with 1 "$MORTISE" break a --fence 999999
    MORTISE_FENCE="$fence" fails_with 64 "$MORTISE" break a
    run -0 "$MORTISE" break a --fence "$fence"
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e ran ]
    finish "$HOLDER"
    [ "$code" -eq 76 ]
    fails_with 1 "$MORTISE" break a --fence "$fence"
}

@test "revoke, break: bad arguments" {
    for bad in 0 -1 x "" 18446744073709551616; do
        fails_with 64 "$MORTISE" break a --fence "$bad"
        fails_with 64 "$MORTISE" revoke a --fence "$bad"
    done
    fails_with 64 "$MORTISE" revoke
    fails_with 64 "$MORTISE" revoke a b
    fails_with 64 "$MORTISE" break --fence 1
    fails_with 64 "$MORTISE" revoke ''
}
