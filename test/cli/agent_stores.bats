#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent on a store of the network that forgets, and that outlives the agent.
load helper
load agent
load server

setup_file() {
    start_server redis
}

on_server() {
    STORE="$(server_url)?session=4s"
}

@test "a store that forgets: nobody else gets the lock while a client trusts what it was told" {
    on_server
    start_agent
    client keeps_what_it_has_told "${STORE%\?*}"
}

@test "at SIGTERM the session goes on while a client that stands still trusts its hold" {
    on_server
    start_agent --drain 1s
    python3 "$BATS_TEST_DIRNAME/agent.py" stands_still_while_it_holds >"$T/until" 3>&- &
    until_true test -s "$T/until"
    kill -TERM "$AGENT"
    sleep 0.2
    kill -TERM "$AGENT" # holds are ended now, and the client does not see it
    "$MORTISE" run -w 60 --url "$STORE" deploy -- \
        python3 -c 'import sys, time; sys.exit(time.monotonic() < float(sys.argv[1]))' \
        "$(cat "$T/until")"
    finish "$AGENT"
    [ "$code" -eq 0 ]
}
