#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A member of etcd whose wall clock is set while locks are held. A file that the holders keep locked
# by the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server
load clock
load contest

setup_file() {
    start_server etcd --clock "$(dirname "$MORTISE")/libset_clock.so"
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    URL="$(server_url)"
    DATED="http://${URL#etcd://}/version"
    export MORTISE_URL="$URL?lease=2s"
}

@test "ET-11 the clock steps an hour ahead and back: never two at once, and a hold lasts" {
    lasts_through_steps
}

@test "ET-11 a dead holder's lock is free soon though the clock has stepped an hour ahead" {
    dies_while +3600
    is_served
}

# Before that it may not be: doc/etcd.md.
@test "ET-11 a dead holder's lock is free once a clock that was an hour behind is right, or by break" {
    dies_while -3600
    set_clock +0
    is_served
    dies_while -3600
    run "$MORTISE" break dies --fence "$("$MORTISE" ls dies --json |
        sed -n 's/.*"holder": true.*"fence": \([0-9]*\).*/\1/p')"
    is_served
}
