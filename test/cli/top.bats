#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise top: the table, and on a pseudo-terminal (top.py) the live view and its keys.
load helper
load agent

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

teardown() {
    if [ -e "$BATS_TEST_TMPDIR/redis" ]; then python3 "$SERVERS" stop "$BATS_TEST_TMPDIR/redis"; fi
    clean_up
}

# Somebody holds zbusy, with an eye on events, and two wait; somebody holds calm.
busy() {
    start run --json zbusy -- sh -c 'touch busy; exec sleep 600' 2>events
    BUSY=$PID
    until_true test -e busy
    start run zbusy -- sh -c 'touch "next-$$"; exec sleep 600'
    until_true waiters zbusy 1
    start run zbusy -- sh -c 'touch "next-$$"; exec sleep 600'
    until_true waiters zbusy 2
    start_holder calm
}

on_terminal() {
    timeout 120 python3 "$BATS_TEST_DIRNAME/top.py" "$1"
}

@test "top --once: a line a lock, in order, and filtered" {
    run -0 "$MORTISE" top --once
    [ "${#lines[@]}" -eq 1 ]
    busy
    run -0 "$MORTISE" top --once
    [ "${#lines[@]}" -eq 3 ]
    [[ "${lines[0]}" == NAME* ]]
    [[ "${lines[1]}" =~ ^zbusy\ +2\ .*\ [1-9][0-9]*\ .*host.*\ pid\ $BUSY$ ]]
    [[ "${lines[2]}" =~ ^calm\ +0\  ]]
    run -0 "$MORTISE" top --once --sort name
    [[ "${lines[1]}" == calm* && "${lines[2]}" == zbusy* ]]
    run -0 "$MORTISE" top --once --filter alm
    [ "${#lines[@]}" -eq 2 ]
    [[ "${lines[1]}" == calm* ]]
}

@test "top --once: the mode, and how many hold" {
    start run --permits 3 --label $'\xc3\xa9t\xc3\xa9' s sh -c 'touch one; exec sleep 600'
    until_true test -e one
    start run --permits 3 s sh -c 'touch two; exec sleep 600'
    until_true test -e two
    run -0 "$MORTISE" top --once
    [[ "${lines[1]}" =~ ^s\ +2/3\ +0\  ]]
    [[ "${lines[1]}" == *"and 1 more" ]]
    start run --permits 3 --weight 2 s true
    until_true waiters s 1
    run -0 "$MORTISE" top --once
    [[ "${lines[1]}" =~ ^s\ +2/3\ +1\  ]] # what waits is not used
    run -0 "$MORTISE" status s
    [[ "${lines[0]}" == "s: held, semaphore, 2/3 used" ]]
}

@test "top --once: the longest wait comes first, then the oldest holder" {
    start_holder old
    rm holding
    start_holder young
    rm holding
    start_holder patient
    start run patient -- true
    until_true waiters patient 1
    rm holding
    start_holder busy
    start run busy -- true
    until_true waiters busy 1
    start run busy -- true
    until_true waiters busy 2
    run -0 "$MORTISE" top --once
    [ "$(awk '{printf "%s ", $1}' <<<"$output")" = "NAME patient busy old young " ]
    [[ "${lines[0]}" == *" ▾WAIT "* ]]
    [[ "${lines[1]}" =~ ^patient\ +1\ +[0-9.]+\ +[0-9.]+s\ +[0-9.]+s\  ]]
    [[ "${lines[3]}" =~ ^old\ +0\ +[0-9.]+\ +-\ +[0-9.]+s\  ]]
    run -0 "$MORTISE" top --once --sort waiters
    [ "$(awk '{printf "%s ", $1}' <<<"$output")" = "NAME busy patient old young " ]
    [[ "${lines[0]}" == *" ▾QUEUE "* ]]
}

@test "top: names that differ look different, and the holder's pid is there" {
    local name=jobs/nightly-of-all-tenants/shard
    for number in 10 11; do
        start run --label "the worker of the nightly batch" "$name-$number-of-many" sh -c 'touch "holds-$0"; exec sleep 600' "$number"
        until_true test -e "holds-$number"
        export "PID$number=$PID"
    done
    on_terminal names
}

@test "top shows what the agent counts, through which the store is watched" {
    start_agent
    export MORTISE_URL="agent://$T/agent.sock"
    start_holder a
    start run a -- true
    until_true waiters a 1
    on_terminal shows_the_agent
}

@test "top: help, and Escape clears the filter" {
    busy
    on_terminal helps
}

@test "u15 top: changes that looks have seen are at least so many" {
    run -0 "$MORTISE" top --help
    [[ "${output//$'\n'/ }" == *"how many changes of the holder were seen in a second (at least)"* ]]
    busy
    on_terminal counts
}

@test "top: colours on a terminal that has them, unless NO_COLOR" {
    busy
    on_terminal colours
}

@test "top: sorted by keys" {
    busy
    on_terminal sorts
}

@test "top: the mark is moved, and stays with its lock" {
    busy
    on_terminal moves
}

@test "top: how long a lock is held is not how long its holder has waited" {
    busy
    BUSY=$BUSY on_terminal ages
}

@test "top: Ctrl-C ends it while the store does not answer" {
    command -v redis-server || skip "no Redis server"
    MORTISE_URL=$(python3 "$SERVERS" start redis "$BATS_TEST_TMPDIR/redis" 3>&- | cut -d ' ' -f 2)
    export MORTISE_URL
    PAUSE="python3 $SERVERS pause $BATS_TEST_TMPDIR/redis 0" on_terminal hangs
}

@test "top: filtered, and Ctrl-C gives the terminal back" {
    busy
    on_terminal filters
}

@test "top: the queue of a lock, and a waiter is put behind the other" {
    busy
    on_terminal queue
    [ "$(ls next-* 2>/dev/null | wc -l)" -eq 0 ]
    until_true waiters zbusy 2 # the one that was put behind is on its way
}

@test "u19 top: earlier holders are below the queue" {
    busy
    BUSY=$BUSY on_terminal previous
}

@test "top: revoke and break ask first, and hit the one that was shown" {
    busy
    on_terminal operates
    until_true grep '"event": "revoke"' events
    finish "$BUSY"
    [ "$code" -eq 76 ]
    until_true sh -c 'ls next-*'
}

@test "top: bad arguments, no terminal, no store" {
    for words in "name" "--interval 50ms" "--interval x" "--sort size" "--no-such"; do
        fails_with 64 "$MORTISE" top $words
    done
    [ ! -e state ]
    fails_with 64 "$MORTISE" top
    fails_with 69 "$MORTISE" top --once --url redis://127.0.0.1:1/
}
