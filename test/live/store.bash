# SPDX-License-Identifier: Apache-2.0
# Scenes of the command that are alike on each store. $URL is the server's.

# serves_in_turn NAME: a holder, one that is refused meanwhile, and a waiter that is served next.
serves_in_turn() {
    start_holder "$1"
    start run -w 60s "$1" -- touch served
    until_true waiters "$1" 1
    run -75 "$MORTISE" run -n "$1" true
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

# outlasts_a_restart: a hold does, and while the server is away nobody gets the lock.
outlasts_a_restart() {
    start_holder lasts
    server kill
    run "$MORTISE" run -w 100ms lasts true
    [ "$status" -ne 0 ]
    server restart
    run -75 "$MORTISE" run -n lasts true
    kill "$HOLDER"
    finish "$HOLDER"
    run -0 "$MORTISE" run -w 60s lasts true
}

# tries_another_host HOST: of the URL, which has this one; one that is away is named.
tries_another_host() {
    local away
    away="127.0.0.1:$(python3 "$SERVERS" port)"
    run "$MORTISE" run -w 1s --url "${URL/"$1"/$away}" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"$away"* ]]
    run -0 "$MORTISE" run -w 60s --url "${URL/"$1"/$away,$1}" a true
}

# refuses_wrong_uris SCHEME VARIABLE: what is wrong is said, and no password; VARIABLE has one.
refuses_wrong_uris() {
    local rest
    MORTISE_URL="$1://user:secret@127.0.0.1" fails_with 78 "$MORTISE" run a true
    [[ "$output" == *"credentials="* && "$output" != *secret* ]]
    for rest in 127.0.0.1/path 127.0.0.1:0 "127.0.0.1?lease=10ms" \
        "a@192.0.2.1?credentials=/dev/null"; do
        fails_with 78 "$MORTISE" run --url "$1://$rest" a true
    done
    export "$2=a"
    fails_with 78 "$MORTISE" run -w 1s --url "$1://a@127.example.com" a true
    [[ "$output" == *"unencrypted"* ]]
}
