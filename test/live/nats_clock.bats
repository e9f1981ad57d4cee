#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A server of NATS whose wall clock is set while locks are held. A file that the holders keep locked by
# the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server
load nats

setup_file() {
    start_server nats --clock "$(dirname "$MORTISE")/libset_clock.so"
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    URL="$(server_url)"
    MONITOR=$(sed -n 's|^http: |http://|p' "$PLACE/0/nats.conf")
    export MORTISE_URL="$URL?lease=3s"
}

teardown() {
    set_clock +0
    clean_up
}

# set_clock TIME: "+3600" seconds from the true time; the server has that time then.
set_clock() {
    python3 "$SERVERS" clock "$PLACE" 0 "$1"
    until_true shows_time "$1"
}

# The date of an answer is the server's.
shows_time() {
    local date
    date=$(curl -sS -o /dev/null -D - "$MONITOR/varz" | sed -n 's/^Date: //ip' | tr -d '\r')
    local off=$(($(date -d "$date" +%s) - $(date +%s) - $1))
    ((off > -60 && off < 60))
}

steps() {
    local to
    for to in +3600 +0 -3600 +0; do
        set_clock "$to"
        sleep 1
    done
}

@test "NA-09 the clock steps an hour ahead and back: never two at once, and a hold lasts" {
    start_holder lasts
    contest 3 20 steps
    [ "$(wc -l <made)" -ge 50 ]
    kill -0 "$HOLDER"
    run -75 "$MORTISE" run -n lasts true
}

# dies_while CLOCK: a holder is killed once the clock is set, and another waits and gets the lock.
dies_while() {
    rm -f served
    start_holder dies
    start run -w 60s dies -- touch served
    until_true waiters dies 1
    set_clock "$1"
    kill -KILL "$HOLDER"
    finish "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "NA-09 a dead holder's lock is free soon though the clock has stepped an hour ahead, or back" {
    dies_while +3600
    set_clock +0
    dies_while -3600
}
