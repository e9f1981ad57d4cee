#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Three members of one cluster, whose leader is killed or stands still. A file that the holders keep
# locked by the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server

eval "common_$(declare -f setup)"
setup() {
    common_setup
    start_server etcd3
    URL="$(server_url)"
    export MORTISE_URL="$URL?lease=20s" ETCDCTL_API=3
}

teardown() {
    cd /
    clean_up
    python3 "$SERVERS" stop "$PLACE"
}

teardown_file() {
    true
}

# leader: the number of the member that leads, as the others say.
leader() {
    local endpoints="${URL#etcd://}"
    etcdctl --endpoints "$endpoints" --command-timeout 5s endpoint status -w json 2>/dev/null |
        python3 -c '
import json, sys
ports = sys.argv[1].split(",")
status = {s["Endpoint"]: s["Status"] for s in json.load(sys.stdin)}
led = next(s["leader"] for s in status.values() if s.get("leader"))
print(next(i for i, p in enumerate(ports) if status.get(p, {"header": {}})["header"].get("member_id") == led))' "$endpoints"
}

# of_member N: the URL of one member alone.
of_member() {
    python3 "$SERVERS" urls "$PLACE" | cut -d , -f "$(($1 + 1))"
}

# Holders one after another, and each finds the file's kernel lock free.
turns() {
    local i
    for ((i = 0; i < $2; i++)); do
        "$MORTISE" run -w 60s "$1" -- sh -c 'exec 9>>witness; flock -n 9 || echo overlap >>overlaps
            sleep 0.05; echo turn >>made' 3>&- || true
    done
}

contest() {
    local contenders=() i
    for i in 1 2 3 4; do
        turns contest 40 &
        contenders+=($!)
    done
    until_true test -s made
    "$@"
    for i in "${contenders[@]}"; do
        wait "$i" || true
    done
    [ ! -e overlaps ]
}

@test "the leader is killed: holders follow each other, never two at once, and a hold lasts" {
    start_holder lasts
    local led
    led=$(leader)
    contest python3 "$SERVERS" kill "$PLACE" "$led"
    [ "$(wc -l <made)" -ge 120 ]
    kill -0 "$HOLDER"
    run -75 "$MORTISE" run -n lasts true
}

stand_still() {
    python3 "$SERVERS" pause "$PLACE" "$1"
    sleep 4
    python3 "$SERVERS" resume "$PLACE" "$1"
}

@test "the leader stands still and goes on: never two at once, and a hold lasts" {
    start_holder lasts
    contest stand_still "$(leader)"
    [ "$(wc -l <made)" -ge 120 ]
    kill -0 "$HOLDER"
    run -75 "$MORTISE" run -n lasts true
}

@test "a holder that reaches the old leader alone is stopped before the next one begins" {
    local led other
    led=$(leader)
    other=$(of_member $(((led + 1) % 3)))
    MORTISE_URL="$(of_member "$led")?lease=4s" start run cut -- sh -c '
        exec 9>>witness; flock -n 9 || echo overlap >>overlaps; touch first; exec sleep 600'
    until_true test -e first
    python3 "$SERVERS" pause "$PLACE" "$led"
    MORTISE_URL="$other?lease=4s" run -0 "$MORTISE" run -w 60s cut -- sh -c '
        exec 9>>witness; flock -n 9 && touch alone'
    [ -e alone ]
    [ ! -e overlaps ]
    python3 "$SERVERS" resume "$PLACE" "$led"
}
