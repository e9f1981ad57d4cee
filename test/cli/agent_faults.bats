#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent and faults: bad input, namespaces between client and agent, agents that stand still,
# are killed or restarted, a socket that is gone, a disk that is full, and clients that are killed at
# each point of their life. A lock of the kernel is the witness.
load helper
load agent

faults() {
    timeout "${2:-60}" python3 "$BATS_TEST_DIRNAME/agent_faults.py" "$1" "${@:3}"
}

@test "bad input ends its own connection with one line, and hurts nobody else" {
    start_agent
    faults bad_input
    kill -0 "$AGENT"
}

@test "a client that is killed at any point of its life leaves nothing behind" {
    start_agent
    faults killed_at_each_point 120
}

@test "a client that forks with the connection open, and is killed, holds until its child ends" {
    start_agent
    faults forked_and_killed
}

@test "clients in other namespaces of time, processes, users and networks have the same lock" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    unshare --time --pid --net --fork true || skip "no namespaces"
    start_agent
    faults across_namespaces 120
}

@test "an agent in a namespace of processes of its own does not see who is outside" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    unshare --pid --fork --mount-proc true || skip "no namespaces"
    unshare --pid --fork --kill-child "$MORTISE" agent --url "sqlite:$T/locks.db" \
        --socket "$T/agent.sock" 3>&- >"$T/agent.out" 2>&1 &
    AGENT=$!
    until_true grep -q agent.sock "$T/agent.out"
    faults not_seen
}

@test "a holder's lock is nobody else's while the agent stands still" {
    start_agent
    faults agent_stands_still 60 "$AGENT"
}

@test "a socket that was removed: clients that are connected go on, and a restart mends it" {
    start_agent
    faults socket_removed 60 "$AGENT"
    finish "$AGENT"
    start_agent
    client takes_and_gives_back
}

@test "a full disk is an error of the store, and the agent goes on when there is room" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    mkdir small
    mount -t tmpfs -o size=2m,mode=700 small "$T/small" || skip "no mounts"
    STORE="sqlite:$T/small/locks.db" start_agent
    run faults disk_full 60 "$T/small"
    umount -l "$T/small"
    echo "$output"
    [ "$status" -eq 0 ]
}

needs_namespaces() {
    unshare --fork --pid --mount-proc true 2>/dev/null || skip "no PID namespaces"
}

@test "agent: a killed client's lock passes although its child has the connection, if it asked for it" {
    start_agent
    port ends_with_its_process
    port ends_with_its_connection
}

@test "agent: a client whose process the agent does not see ends with its connection" {
    needs_namespaces
    AGENT_WITHIN=(unshare --fork --pid --mount-proc --kill-child)
    start_agent
    port ends_with_its_connection e
}

@test "agent: a client whose process the agent has no descriptor to watch is refused" {
    AGENT_WITHIN=(prlimit --nofile=200)
    start_agent
    port is_refused_without_a_descriptor
}

# numbers NAME PRELOADED: beside an agent, where numbers of processes can be chosen.
numbers() {
    needs_namespaces
    unshare --fork --pid --mount-proc --kill-child bash -c '
        LD_PRELOAD="$2" "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock" \
            >"$T/agent.out" 3>&- &
        until [ -s "$T/agent.out" ]; do sleep 0.02; done
        timeout 100 python3 "$0" "$1" "$!"
    ' "$BATS_TEST_DIRNAME/agent_port.py" "$1" "$2"
}

@test "agent: a client that was killed before it was read ends, also if its number is used again" {
    numbers ends_with_a_process_whose_number_is_used_again ""
    rm -f "$T/agent.out"
    numbers ends_with_a_process_that_ended_before_it_asked ""
}

@test "agent: on an older kernel a process is known by its number and its beginning" {
    [ -n "$OLD_KERNEL" ] || skip "built with a sanitizer: nothing can be preloaded"
    numbers ends_with_a_process_that_ended_before_it_asked "$OLD_KERNEL"
    AGENT_WITHIN=(env LD_PRELOAD="$OLD_KERNEL")
    start_agent
    port ends_with_its_process
    port ends_with_its_connection
    client binds_to_the_process
}

# The library's client, in the package for Python.
@test "agent: a killed program with the library loses its lock, a short-lived one keeps it for its child" {
    export MORTISE_LIBRARY="${MORTISE%/*}/libmortise.so" MORTISE_URL="agent://$T/agent.sock"
    [ -e "$MORTISE_LIBRARY" ] || skip "no shared library is built"
    run grep -q __asan_init "$MORTISE_LIBRARY"
    [ "$status" -ne 0 ] || skip "built with a sanitizer: Python cannot load the library"
    export PYTHONPATH="$BATS_TEST_DIRNAME/../../lang/python" PYTHONDONTWRITEBYTECODE=1
    start_agent
    port library_ends_with_its_process
    port library_keeps_for_its_child
}
