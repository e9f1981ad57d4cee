#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01: the command on a real Redis server; mortise stands still, and the server does.
load helper
load stopped
load keeper
load server

setup_file() {
    start_server redis
}

on_server() {
    export MORTISE_URL
    MORTISE_URL="$(server_url)?session=2s"
}

@test "GN-01 mortise is stopped at any moment: its command is dead before the lock goes on" {
    on_server
    mortise_stands_still
}

@test "GN-01 the server stands still at any moment, for any time: never two at once" {
    on_server
    server_stands_still
}

# With --on-lost kill mortise and its guard act at the same instant: of sixteen commands the guard is
# the first at some.
@test "GN-01 a command that the guard ends ends with the code of a lost lock" {
    local i all=()
    on_server
    for i in {1..16}; do
        MORTISE_URL=${MORTISE_URL/=2s/=4s} start run --on-lost kill "k$i" -- \
            sh -c "echo \$\$ >began$i; exec sleep 600"
        all+=("$PID")
    done
    for i in {1..16}; do until_true test -s "began$i"; done
    server pause
    for i in {1..16}; do until_true is_gone "$(cat "began$i")"; done
    server resume
    all_end_with 76 "${all[@]}"
}

# The store's grant arrives, and the renewal of the lease does not: 3.25 s after it began, a lease of
# 9 s is too old by 0.25 s, and a command would be ended 0.3 s later.
@test "GN-01 no command starts on a lease whose renewal is late: it starts after the renewal" {
    local port waiter
    on_server
    MORTISE_URL=${MORTISE_URL%\?*}
    start_holder a
    port=${MORTISE_URL##*:}
    python3 "$BATS_TEST_DIRNAME/stall.py" "${port%%/*}" >port 3>&- &
    until_true test -s port
    MORTISE_URL="redis://127.0.0.1:$(cat port)?session=9s" \
        start run --status-fd 4 a -- sh -c 'touch began; sleep 0.5' 4>events
    waiter=$PID
    until_true grep -q queued events
    touch stalled
    sleep 3.25
    kill -TERM "$HOLDER"
    until_true grep -q acquired events
    sleep 0.2
    [ ! -e began ]
    rm stalled
    finish "$waiter"
    [ "$code" -eq 0 ]
    [ -e began ]
}

@test "a command on Redis: its own exit code, once a period, a leader" {
    on_server
    command_counts_and_leads
}

@test "acquire: a keeper holds the lock until it is given back" {
    on_server
    keeper_keeps
}

@test "GN-03 acquire: the lock ends with the script, however that ends" {
    on_server
    keeper_ends_with_the_script
}

@test "GN-01 GN-03 acquire: the keeper is killed, and the script with it" {
    on_server
    keeper_is_killed
}

@test "GN-06 acquire --lock-delay: the keeper dies, and nobody has the lock for so long" {
    on_server
    keeper_leaves_a_delay
}

@test "acquire: a command that waits for a lock of its own script is refused" {
    on_server
    keeper_is_not_waited_for_in_vain
}

@test "GN-01 acquire: the keeper stands still: its script is dead before the lock goes on" {
    on_server
    keeper_stands_still
}

@test "doctor: the server, and the session that it grants" {
    on_server
    run -0 "$MORTISE" doctor
    [[ "$output" =~ server\ +Redis\ [0-9]+\.[0-9.]+ ]]
    [[ "$output" =~ session\ granted\ +2.0s ]]
    [[ "$output" =~ across\ hosts\ +yes ]]
}

redis_cli() {
    (cd "$PLACE/0" && redis-cli -s socket "$@") >said
    if grep -i err said; then return 1; fi
}

@test "doctor: a server that is open to others, and a user who may do more than init --print-acl allows" {
    local acl address
    on_server
    address=${MORTISE_URL#redis://}
    redis_cli CONFIG SET protected-mode no
    run -0 "$MORTISE" doctor
    redis_cli CONFIG SET bind 0.0.0.0
    run -1 "$MORTISE" doctor
    redis_cli CONFIG SET bind 127.0.0.1
    redis_cli CONFIG SET protected-mode yes
    [[ "$output" == *"warning: Redis: no password: anyone who reaches the server"* ]]
    acl="$(MORTISE_URL="redis://alice@$address" "$MORTISE" init --print-acl) >hidden"
    export MORTISE_REDIS_AUTH=hidden
    redis_cli $acl
    MORTISE_URL="redis://alice@$address" run -0 "$MORTISE" doctor
    redis_cli ${acl/alice/bob} '~*'
    MORTISE_URL="redis://bob@$address" run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: Redis: this user may use keys that are not of these locks"* ]]
    redis_cli ACL SETUSER carol on ">hidden" "~*" "&*" +@all
    MORTISE_URL="redis://carol@$address" run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: Redis: this user may configure the server"* ]]
    [[ "$output" != *hidden* ]]
}

@test "H6 a release that the server denies at the end: run and release say why" {
    on_server
    MORTISE_URL=${MORTISE_URL/=2s/=9s}
    redis_cli ACL SETUSER dora on ">hidden" "~*" "&*" +@all
    export MORTISE_REDIS_AUTH=hidden MORTISE_URL="redis://dora@${MORTISE_URL#redis://}"
    "$MORTISE" acquire --token-file kept b
    start run a -- sh -c 'touch holding; while [ ! -e end ]; do sleep 0.02; done' 2>ran
    until_true test -e holding
    redis_cli ACL SETUSER dora -@all
    touch end
    MORTISE_TOKEN=$(cat kept) run -69 "$MORTISE" release b
    [[ "$output" == *"b: the outcome is not known: Redis: NOPERM "* ]]
    finish "$PID"
    [ "$code" -eq 0 ]
    [[ "$(cat ran)" == *"warning: at the end: the outcome is not known: Redis: NOPERM "* ]]
}
