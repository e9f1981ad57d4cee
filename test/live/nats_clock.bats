#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A server of NATS whose wall clock is set while locks are held. A file that the holders keep locked by
# the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server
load clock
load contest

setup_file() {
    start_server nats --clock "$(dirname "$MORTISE")/libset_clock.so"
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    URL="$(server_url)"
    DATED="$(sed -n 's|^http: |http://|p' "$PLACE/0/nats.conf")/varz"
    export MORTISE_URL="$URL?lease=3s"
}

@test "NA-09 the clock steps an hour ahead and back: never two at once, and a hold lasts" {
    lasts_through_steps
}

@test "NA-09 a dead holder's lock is free soon though the clock has stepped an hour ahead, or back" {
    dies_while +3600
    is_served
    set_clock +0
    dies_while -3600
    is_served
}
