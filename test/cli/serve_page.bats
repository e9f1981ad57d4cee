#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The page of mortise serve in a headless browser (page.py), on real stores. Pictures of it are left
# in MORTISE_PICTURES, by default beside the command.
load helper
load server
load agent

TOKEN=0123456789abcdef-token

setup_file() {
    start_server zk
}

# hold NAME LABEL FILE: which is there when it is held.
hold() {
    start run --label "$2" "$1" -- sh -c 'touch "$0"; exec sleep 600' "$T/$3"
    until_true test -e "$3"
}

wait_behind() {
    start run --label "$2" "$1" -- sleep 600
    until_true waiters "$1" "$3"
}

has_looked() {
    curl -sf -H "Authorization: Bearer $TOKEN" "$(cat address)api/overview" | grep -v '"seen": null'
}

# On the store of MORTISE_URL; pictures are named after the argument.
use_the_page() {
    MORTISE_SERVE_TOKEN=$TOKEN start serve --listen 127.0.0.1:0 --allow-changes --interval 200ms >address
    SERVE=$PID
    until_true has_looked # so that all that follows has been seen to begin
    hold deploy first first
    holder=$PID
    wait_behind deploy second 1
    wait_behind deploy third 2
    hold "<script>document.title='owned'</script><img src=x>" '"><img src=y onerror=document.title=1>' other
    run timeout 200 python3 "$BATS_TEST_DIRNAME/page.py" "${CHROMIUM:-chromium}" "$(cat address)" \
        "$TOKEN" "${MORTISE_PICTURES:-$(dirname "$MORTISE")/pictures}" "$1" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = OK ]
    finish "$holder"
    [ "$code" -eq 76 ]
    kill -TERM "$SERVE"
    finish "$SERVE"
    [ "$code" -eq 0 ]
}

@test "the page in a browser: SQLite" {
    use_the_page sqlite
}

@test "the page in a browser: ZooKeeper, through an agent" {
    STORE=$(server_url) start_agent
    export MORTISE_URL="agent://$T/agent.sock"
    use_the_page zookeeper
}
