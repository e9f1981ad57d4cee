#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise run through an agent (MORTISE_URL=agent:...) over the embedded store. Where safety is
# tested, a lock of the kernel is the witness (stopped.bash).
load helper
load agent
load stopped

through_agent() {
    start_agent "$@"
    export MORTISE_URL="agent://$T/agent.sock"
}

# A holder that is hard to end, through the agent, and the next one, who has its store from $1.
holder_and_next() {
    start run --grace 300ms a -- bash -c "$WITNESS"
    HOLDER=$PID
    until_true test -e holding
    "${@:2}"
    MORTISE_URL="$1" start run a -- bash -c "$NEXT"
    NEXT_ONE=$PID
}

@test "a lock is taken through the agent, shown with its holder, and given back" {
    through_agent
    takes_and_leaves a
    start_holder b
    "$MORTISE" ls b | grep "pid $HOLDER"
}

@test "clients of the agent and of its store exclude each other" {
    through_agent
    start_holder a
    MORTISE_URL="sqlite:$T/locks.db" run -75 "$MORTISE" run -n a true
    kill "$HOLDER"
    finish "$HOLDER"
    export MORTISE_URL="sqlite:$T/locks.db"
    start_holder a
    MORTISE_URL="agent://$T/agent.sock" run -75 "$MORTISE" run -n a true
}

@test "a killed holder's lock passes when its command is dead" {
    through_agent
    holder_and_next "$MORTISE_URL" true
    end_round
}

@test "a holder that stands still keeps its lock for its lease, and its command ends first" {
    through_agent
    holder_and_next "$MORTISE_URL" true
    kill -STOP "$HOLDER"
    until_true test -e granted
    kill -CONT "$HOLDER"
    end_round
}

@test "an agent is killed while a holder stands still: a client of the store waits" {
    through_agent
    holder_and_next "sqlite:$T/locks.db" true
    kill -STOP "$HOLDER"
    kill -KILL "$AGENT"
    until_true test -e granted
    [ ! -e bad ]
    end_round
}

@test "an agent is killed and started again: who waits queues again" {
    through_agent
    holder_and_next "$MORTISE_URL" true
    until_true waiters a 1
    kill -KILL "$AGENT"
    wait "$AGENT" || true
    start_agent
    until_true test -e granted
    end_round
}

@test "an agent ends once the last hold was given back, and its successor serves who waits" {
    through_agent --drain 60s
    start_holder a
    MORTISE_URL="agent://$T/agent.sock" start run a -- touch granted
    NEXT_ONE=$PID
    until_true waiters a 1
    kill -TERM "$AGENT"
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$AGENT"
    [ "$code" -eq 0 ]
    start_agent
    finish "$NEXT_ONE"
    [ "$code" -eq 0 ]
    [ -e granted ]
}

@test "an agent on another store is no successor" {
    through_agent
    start_holder a
    start run a -- true 2>err
    NEXT_ONE=$PID
    until_true waiters a 1
    kill -KILL "$AGENT"
    wait "$AGENT" || true
    STORE="sqlite:$T/other.db" start_agent
    finish "$NEXT_ONE"
    [ "$code" -ne 0 ]
    grep "another store" err
}

# The file is another program's until $T/go is there.
occupy_store() {
    python3 - "$T" 3>&- <<'END' &
import os, sqlite3, sys, time
file = sqlite3.connect(sys.argv[1] + "/locks.db", isolation_level=None, timeout=60)
file.execute("BEGIN EXCLUSIVE")
open(sys.argv[1] + "/occupied", "w").close()
while not os.path.exists(sys.argv[1] + "/go"):
    time.sleep(0.02)
END
    OCCUPIER=$!
    until_true test -e "$T/occupied"
}

@test "a mutex passes from one program to the next while the store answers nobody" {
    through_agent
    start_holder a
    start run a -- touch "$T/next"
    until_true waiters a 1
    occupy_store
    kill "$HOLDER"
    until_true test -e "$T/next"
    [ -e "/proc/$OCCUPIER" ]
    touch "$T/go"
    all_end_with 0 "$OCCUPIER" "$PID"
    is_free a
}

@test "programs and LOCKs of one name have it in the order in which they came" {
    through_agent
    start_holder a
    coproc redis-cli -s "$T/agent.sock"
    echo "LOCK a 60000" >&"${COPROC[1]}"
    until_true sh -c 'redis-cli -s "$T/agent.sock" LIST a | grep waits'
    start run a -- touch "$T/last"
    until_true waiters a 1
    "$MORTISE" ls a | grep "pid $PID"
    kill "$HOLDER"
    read -r fence <&"${COPROC[0]}"
    [ ! -e "$T/last" ]
    waiters a 1
    echo "UNLOCK a $fence" >&"${COPROC[1]}"
    until_true test -e "$T/last"
    all_end_with 0 "$PID"
}

@test "a program that waits for a mutex is killed: the next one has it" {
    through_agent
    start_holder a
    start run a -- true
    local killed=$PID
    until_true waiters a 1
    start run a -- touch "$T/next"
    until_true waiters a 2
    kill -KILL "$killed"
    until_true waiters a 1
    kill "$HOLDER"
    until_true test -e "$T/next"
    all_end_with 0 "$PID"
}

@test "an operator breaks a mutex: its holder loses it, and who waits gets it" {
    through_agent
    start_holder a
    start run a -- touch "$T/next"
    until_true waiters a 1
    local fence
    fence=$("$MORTISE" ls a --json | python3 -c 'import json, sys
rows = json.load(sys.stdin)
print(next(row["fence"] for row in rows if row["holder"]))')
    "$MORTISE" break a --fence "$fence"
    finish "$HOLDER"
    [ "$code" -eq 76 ]
    until_true test -e "$T/next"
    all_end_with 0 "$PID"
}

# rows NAME: label and fence of each, in the queue's order.
rows() {
    "$MORTISE" ls "$1" --json | python3 -c 'import json, sys
for row in json.load(sys.stdin):
    print(row["label"], row["place"], row["fence_text"])'
}

# wait_as LABEL: the next one that waits for a; it notes its fence, and ends.
wait_as() {
    start run --label "$1" a -- sh -c 'echo "$MORTISE_FENCE" >"$T/$0"' "$1"
    until_true sh -c '"$MORTISE" ls a | grep -qw "$0"' "$1"
}

@test "those who wait in the agent are listed once, by the fences that they get" {
    through_agent
    start_holder a
    wait_as one
    local one=$PID
    wait_as two
    local listed fences
    listed=$(rows a)
    [ "$(cut -d ' ' -f 1,2 <<<"$listed" | tail -2 | tr '\n' ' ')" = "one 1 two 2 " ]
    [ "$(wc -l <<<"$listed")" -eq 3 ]
    fences=$(sed 's/.* //' <<<"$listed")
    [ "$(sort -nu <<<"$fences")" = "$fences" ]
    [ "$(rows a)" = "$listed" ]
    kill "$HOLDER"
    all_end_with 0 "$one" "$PID"
    [ "$(cat one two)" = "$(tail -2 <<<"$fences")" ]
}

@test "an operator puts one who waits in the agent behind the others" {
    through_agent
    start_holder a
    wait_as one
    local one=$PID
    wait_as two
    "$MORTISE" break a --fence "$(rows a | sed -n 's/^one 1 //p')"
    until_true sh -c '"$MORTISE" ls a | grep -q " 2 .*one"'
    [ "$(rows a | cut -d ' ' -f 1,2 | tail -2 | tr '\n' ' ')" = "two 1 one 2 " ]
    kill "$HOLDER"
    all_end_with 0 "$one" "$PID"
    [ "$(cat two)" -lt "$(cat one)" ]
    is_free a
}

@test "those who wait in the agent for another host's client have numbers, which are no fences" {
    through_agent
    MORTISE_URL="sqlite:$T/locks.db" start_holder a
    wait_as one
    local one=$PID number
    wait_as two
    [ "$(rows a | cut -d ' ' -f 1,2 | tail -2 | tr '\n' ' ')" = "one 1 two 2 " ]
    [ "$(rows a | wc -l)" -eq 3 ]
    number=$(rows a | sed -n 's/^two 2 //p')
    [ "$(python3 -c "print($number >= 2**62)")" = True ]
    [ "$(MORTISE_URL="sqlite:$T/locks.db" rows a | wc -l)" -eq 2 ]
    run -1 "$MORTISE" revoke a --fence "$number"
    "$MORTISE" break a --fence "$number"
    until_true sh -c '"$MORTISE" ls a | grep -q " 2 .*two"'
    run -1 "$MORTISE" break a --fence "$number"
    kill "$HOLDER"
    all_end_with 0 "$one" "$PID"
    [ "$(cat one)" -lt "$(cat two)" ]
    [ "$(python3 -c "print($(cat two) < 2**62)")" = True ]
    is_free a
}

@test "without an agent the error says what to start" {
    MORTISE_URL="agent://$T/agent.sock" run -69 "$MORTISE" run a -- true
    [[ $output == *"start mortise agent"* ]]
}
