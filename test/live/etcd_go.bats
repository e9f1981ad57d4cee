#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Go's concurrency.Mutex and Election on one name with us, by the packages of Debian
# (golang-go, golang-etcd-server-dev: 430 MB, so tools/install-deps leaves the second out).
load ../cli/helper
load ../cli/server

PACKAGES=/usr/share/gocode

setup_file() {
    export BUILT="$BATS_FILE_TMPDIR/concurrency"
    command -v go >/dev/null && [ -d "$PACKAGES/src/go.etcd.io/etcd/clientv3/concurrency" ] || return 0
    start_server etcd
    GO111MODULE=off GOPATH="$PACKAGES" GOFLAGS=-p=2 go build -o "$BUILT" "$BATS_TEST_DIRNAME/concurrency.go"
}

teardown_file() {
    [ ! -e "$BUILT" ] || python3 "$SERVERS" stop "$PLACE"
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    [ -e "$BUILT" ] || skip "Go, or its client of etcd, is not installed"
    URL="$(server_url)"
    export MORTISE_URL="$URL?namespace=&lease=60s"
    mkfifo input
}

# theirs WHAT NAME ARGUMENT: Go's, until end_theirs.
theirs() {
    "$BUILT" "${URL#etcd://}" "$@" <input 3>&- &
    THEIRS=$!
    exec 8>input
}

end_theirs() {
    echo >&8
    finish "$THEIRS"
    [ "$code" -eq 0 ]
}

@test "what concurrency.Mutex holds, mortise does not get before it is unlocked" {
    theirs hold shared held
    until_true test -e held
    run -75 "$MORTISE" run -n shared true
    start run -w 60s shared -- touch served
    until_true waiters shared 1
    [ ! -e served ]
    end_theirs
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "what mortise holds, concurrency.Mutex does not get before it is released" {
    start_holder ours
    theirs hold ours held
    until_true waiters ours 1
    [ ! -e held ]
    kill "$HOLDER"
    finish "$HOLDER"
    until_true test -e held
    end_theirs
}

leads() {
    "$MORTISE" elect "$1" --once | grep -qw "$2"
}

@test "a leader by concurrency.Election is seen, and followed; and ours by it" {
    theirs lead post first
    until_true test -e first
    until_true leads post first
    start elect --value ours post -- sh -c 'touch leading; exec sleep 600'
    local candidate=$PID
    until_true eval '[ "$("$MORTISE" ls post --json | grep -c "\"holder\"")" -eq 2 ]'
    [ ! -e leading ]
    end_theirs
    until_true test -e leading
    theirs lead post second
    until_true waiters post 1
    [ ! -e second ]
    kill "$candidate"
    finish "$candidate"
    until_true test -e second
    until_true leads post second
    end_theirs
}
