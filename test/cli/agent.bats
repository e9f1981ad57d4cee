#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent: the locks of a host by one session, over a local socket.
load helper
load agent

check_client() {
    start_agent
    client "$1"
    kill -0 "$AGENT"
}

@test "a lock is taken, tried, waited for and given back" {
    check_client takes_and_gives_back
}

@test "clients have the lock in the order of their LOCKs" {
    check_client serves_in_order
}

@test "readers share, permits are counted, and a TTL ends a hold" {
    check_client shares_as_asked
}

@test "HELD promises no more than the store keeps if the agent dies" {
    check_client tells_no_more_than_the_store_keeps
}

@test "a connection has a name once, and gives it back by its fence" {
    check_client never_nests_and_wants_the_fence
}

@test "EXTEND sets the end of a hold anew" {
    check_client extends_a_hold
}

@test "BIND PROCESS: a lock ends with its process, and each of its connections has it" {
    start_agent
    client binds_to_the_process
    client two_readers_of_a_process
}

@test "CAMPAIGN, LEADER, RESIGN: one leads, and all may learn its value" {
    check_client elects
}

@test "GET and CAS of cells, under a fence too" {
    check_client reads_and_writes_cells
}

@test "LIST shows whose a lock is, by the kernel's word" {
    check_client lists_what_its_clients_have
}

@test "UNLOCK, HELD and CANCEL overtake a LOCK that waits" {
    check_client overtakes_a_lock_that_waits
}

@test "a killed client's lock passes at once" {
    check_client passes_a_killed_clients_lock
}

@test "a connection that a child inherited keeps its lock until the child ends" {
    check_client lives_as_long_as_its_last_descriptor
}

@test "a client that does not read its replies is ended" {
    check_client withstands_a_client_that_does_not_read
}

@test "a hundred thousand pipelined commands are answered" {
    check_client answers_a_pipeline
}

@test "frames cut at any byte leave no lock behind" {
    check_client survives_frames_cut_anywhere
}

@test "commands sent before a half-close are answered" {
    check_client answers_before_a_half_close
}

@test "each wrong command is refused by one line" {
    check_client refuses_what_is_wrong
}

@test "the commands that client libraries send at connect are answered" {
    check_client knows_what_libraries_send
}

@test "a client that the agent has ended keeps its lock for a lease, unless it closes" {
    start_agent
    client waits_for_a_client_that_it_ended
}

@test "the agent's lock and a command's on the same store exclude each other" {
    start_agent
    exec 9<>/dev/null
    coproc redis-cli -s "$T/agent.sock"
    echo "LOCK deploy 0" >&"${COPROC[1]}"
    read -r fence <&"${COPROC[0]}"
    [ "$fence" -gt 0 ]
    run "$MORTISE" run -n --url "sqlite:$T/locks.db" deploy -- true
    [ "$status" -eq 75 ]
    "$MORTISE" ls --url "sqlite:$T/locks.db" | grep -q "deploy.*agent"
    echo "UNLOCK deploy $fence" >&"${COPROC[1]}"
    read -r reply <&"${COPROC[0]}"
    [ "$reply" = OK ]
    "$MORTISE" run -w 60 --url "sqlite:$T/locks.db" deploy -- \
        redis-cli -s "$T/agent.sock" LOCK deploy 0 | grep -q ^BUSY
}

@test "a lock outlives a killed agent by its lease, and the next agent takes the path" {
    start_agent
    python3 "$BATS_TEST_DIRNAME/agent.py" hold_for_ever >"$T/fence" 3>&- &
    until_true test -s "$T/fence"
    local began=$SECONDS
    kill -KILL "$AGENT"
    wait "$AGENT" || true
    start_agent
    "$MORTISE" run -w 60 --url "sqlite:$T/locks.db" deploy -- true
    [ $((SECONDS - began)) -ge 4 ] # its lease is 5 s
    client takes_and_gives_back
}

@test "no two hold at once while agents and clients are killed and clients stand still" {
    run timeout 100 python3 "$BATS_TEST_DIRNAME/agent_contest.py" "$MORTISE" "$T" "${CONTEST:-12}"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *" 0 overlaps"* ]]
}

@test "at SIGTERM waiters are sent away, holds go on, and the socket is gone" {
    start_agent --drain 60s
    client ends_what_waits_when_it_is_stopped "$AGENT"
    finish "$AGENT"
    [ "$code" -eq 0 ]
    [ ! -e "$T/agent.sock" ]
}

# The first of several attempts below 8 s, because the machine may be busy.
@test "on SQLite a lock that was given back before SIGTERM is free 5 s after it" {
    local try began
    for try in 1 2 3; do
        start_agent
        client takes_and_gives_back
        kill -TERM "$AGENT"
        finish "$AGENT"
        [ "$code" -eq 0 ]
        began=$SECONDS
        "$MORTISE" run -w 60 --url "sqlite:$T/locks.db" deploy -- true
        [ $((SECONDS - began)) -ge 8 ] || break
    done
    [ $((SECONDS - began)) -lt 8 ]
}

@test "at SIGTERM each connection of a process that has a bound lock goes on" {
    start_agent --drain 60s
    client keeps_a_bound_lock_while_the_agent_ends "$AGENT"
    finish "$AGENT"
    [ "$code" -eq 0 ]
}

@test "a second agent on the same path is refused" {
    start_agent
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock"
    [ "$status" -eq 75 ]
    [[ "$output" == *"another agent serves $T/agent.sock"* ]]
    client takes_and_gives_back
}

@test "a directory that others can write, a relative path and a store without memory are refused" {
    mkdir -m 777 "$T/open"
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/open/agent.sock"
    [ "$status" -ne 0 ]
    [[ "$output" == *"other users may write there"* ]]
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket agent.sock
    [[ "$status" -ne 0 && "$output" == *"no absolute path"* ]]
    run "$MORTISE" agent --url memory: --socket "$T/agent.sock"
    [[ "$status" -ne 0 && "$output" == *"memory: keeps nothing"* ]]
}

@test "a store whose locks end with the agent, while clients trust them, is refused" {
    for url in "mysql://u@127.0.0.1:1/d?form=get_lock" "postgresql://u@127.0.0.1:1/d?form=advisory" \
        "postgresql://u@127.0.0.1:1/d?form=row"; do
        run timeout 60 "$MORTISE" agent --url "$url" --socket "$T/agent.sock"
        [ "$status" -ne 0 ]
        [[ "$output" == *"leave form= out"* ]]
    done
}

@test "another user is refused" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    setpriv --reuid nobody --regid nogroup --clear-groups true || skip "no user nobody"
    start_agent
    chmod 755 "$T"
    ls -l "$T/agent.sock" | grep -q ^srw-------
    chmod 666 "$T/agent.sock" # and the agent looks at its peers itself
    T="$T" setpriv --reuid nobody --regid nogroup --clear-groups \
        /usr/bin/python3 "$BATS_TEST_DIRNAME/agent.py" is_refused
    client takes_and_gives_back
}
