#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Three members of one cluster, whose leader is killed or stands still. A file that the holders keep
# locked by the kernel shows whether two ever hold at the same time.
load ../cli/helper
load ../cli/server
load cluster
load contest

eval "common_$(declare -f setup)"
setup() {
    common_setup
    start_server etcd3
    URL="$(server_url)"
    export MORTISE_URL="$URL?lease=20s" ETCDCTL_API=3
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

@test "the leader is killed: holders follow each other, never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through 40 python3 "$SERVERS" kill "$PLACE" "$(leader)"
}

@test "the leader stands still and goes on: never two at once, and a hold lasts" {
    start_holder lasts
    lasts_through 40 stand_still "$(leader)" 4
}

@test "a holder that reaches the old leader alone is stopped before the next one begins" {
    local led
    led=$(leader)
    MORTISE_URL="$(of_server "$led")?lease=4s" holds_alone cut
    python3 "$SERVERS" pause "$PLACE" "$led"
    MORTISE_URL="$(of_server $(((led + 1) % 3)))?lease=4s" waits_behind cut
    next_is_alone
    python3 "$SERVERS" resume "$PLACE" "$led"
}
