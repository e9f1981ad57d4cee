#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01: the command on a real ZooKeeper server; server, mortise or both stand still.
load helper
load stopped
load keeper
load server

setup_file() {
    # The server also keeps the empty directory of a lock between two commands: to make it again
    # would cost the next command requests.
    start_server zk --property znode.container.checkIntervalMs=3600000
}

# on_server [SESSION]
on_server() {
    MORTISE_URL="$(server_url)?session=${1:-4s}&tick=500ms"
    export MORTISE_URL
}

# freeze: stops the server, and sets began to the time of that, in hundredths of a second since the
# machine came up. A program of ours would read the time later.
freeze() {
    SERVER=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["pids"][0])' \
        "$PLACE/servers.json")
    kill -STOP "$SERVER"
    read -r began _ </proc/uptime
    began=${began/./}
}

# Runs under the lock. TERM makes it end in good order, which takes 0.3 s, a quarter of its grace of
# 1.2 s. If TERM comes late it has no time left for that.
ORDERLY='import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
open("holding", "w")
signal.sigwait([signal.SIGTERM])
time.sleep(0.3)
open("done", "w")'

# Runs under the lock, ignores TERM, and notes the time again and again. It notes nothing after the
# machine has not let it run for long: the machine may have stopped the processes that end it too.
STUBBORN='import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
last = now = time.clock_gettime(time.CLOCK_BOOTTIME)
while True:
    if now - last < 0.1:
        with open("new", "w") as f: f.write(str(int(now * 100)))
        os.replace("new", "alive") # it is killed at any moment, and the file stays whole
    time.sleep(0.01)
    last, now = now, time.clock_gettime(time.CLOCK_BOOTTIME)'

@test "a command on ZooKeeper: its own exit code, and the lock is free at once" {
    on_server
    run -7 "$MORTISE" run a -- sh -c 'exit 7'
    is_free a
}

# requests: how many the server has had, this one included.
requests() {
    python3 -c 'import re, socket, sys
with socket.create_connection(re.search(r"//([^:]+):(\d+)", sys.argv[1]).groups()) as s:
    s.sendall(b"mntr")
    print(re.search(r"zk_packets_received\t(\d+)", s.makefile().read())[1])' "$MORTISE_URL"
}

# How long the command of the run in the file events lived, in milliseconds.
lived() {
    python3 -c 'import datetime, json
at = {e["event"]: datetime.datetime.fromisoformat(e["time"][:-1]) for e in map(json.loads, open("events"))}
print(int((at["child-exit"] - at["started"]).total_seconds() * 1000))'
}

@test "A2 a short command costs the server five requests: session, create, list, release, end" {
    on_server 10s # no sign of life is due meanwhile
    "$MORTISE" run a -- true
    least=99 least_short=5
    for ((round = 0; round < 10; round++)); do
        before=$(requests)
        run -127 "$MORTISE" run a -- nosuchcommand
        cost=$(($(requests) - before - 1))
        least=$((cost < least ? cost : least))
        # On a machine that is slow to run it no command is short.
        before=$(requests)
        "$MORTISE" run --status-fd 4 a -- true 4>events
        cost=$(($(requests) - before - 1))
        if (($(lived) >= 40)); then continue; fi
        if ((cost == 5)); then least_short=5 && break; fi
        least_short=$cost
    done
    echo "least $least, $least_short"
    [ "$least" -eq 5 ]
    [ "$least_short" -eq 5 ]
}

@test "GN-01 the server stalls: TERM in time for the grace, and 76" {
    on_server
    start run --grace 1200ms a -- python3 -c "$ORDERLY" 2>err
    until_true test -e holding
    freeze
    finish "$PID"
    kill -CONT "$SERVER"
    [ "$code" -eq 76 ]
    [ -e done ]
    grep 'mortise: a: .*lost' err
}

@test "GN-01 the server stalls: a command that ignores TERM is dead before the session can end" {
    on_server
    start run --grace 1s a -- python3 -c "$STUBBORN" 2>err
    until_true test -s alive
    freeze
    finish "$PID"
    kill -CONT "$SERVER"
    [ "$code" -eq 76 ]
    echo "frozen at $began, alive at $(cat alive)"
    (($(cat alive) - began <= 400))
    until_true is_free a
}

@test "a short stall costs no lock" {
    on_server 10s
    start run --grace 500ms a -- sh -c 'touch holding; sleep 2; exit 5'
    until_true test -e holding
    freeze
    sleep 0.7
    kill -CONT "$SERVER"
    finish "$PID"
    [ "$code" -eq 5 ]
}

@test "GN-01 mortise is stopped at any moment: its command is dead before the lock goes on" {
    on_server 2s
    mortise_stands_still
}

@test "GN-01 the server stands still at any moment, for any time: never two at once" {
    on_server 2s
    server_stands_still
}

@test "GN-01 mortise is stopped: the command gets TERM in time for the grace, then 76" {
    on_server 4s
    start run --grace 1200ms a -- python3 -c "$ORDERLY" 2>err
    until_true test -e holding
    kill -STOP "$PID"
    until_true test -e done
    until_true is_free a
    kill -CONT "$PID"
    finish "$PID"
    [ "$code" -eq 76 ]
    grep 'mortise: a: .*lost' err
}

@test "doctor: the session granted, what the server promises, and a warning of open access" {
    on_server 3s
    run -1 "$MORTISE" doctor
    [[ "$output" =~ session\ granted\ +3.0s ]]
    [[ "$output" =~ across\ hosts\ +yes ]]
    [[ "$output" =~ server\ +ZooKeeper\ 3\.[0-9.]+,\ standalone ]]
    [[ "$output" == *"warning: ZooKeeper: no credentials"* ]]
    MORTISE_URL="$MORTISE_URL&acl=open" run -0 "$MORTISE" doctor
    MORTISE_URL="$MORTISE_URL&acl=open" MORTISE_GRACE=2900ms run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: MORTISE_GRACE: the grace is too long for the lease: "*"ms at most"* ]]
}

@test "GN-01 --on-lost ignore: the command goes on, also while mortise is stopped" {
    on_server 2s
    start run --on-lost ignore --grace 300ms a -- sh -c 'touch holding; while [ ! -e end ]; do sleep 0.02; done; exit 5' 2>err
    until_true test -e holding
    kill -STOP "$PID"
    until_true is_free a
    kill -CONT "$PID"
    until_true grep 'mortise: a: .*lost; the command goes on' err
    touch end
    finish "$PID"
    [ "$code" -eq 5 ]
}

@test "a command under a short session whose tick is not told runs to its end" {
    local try
    on_server
    for try in 1 2 3 4; do # a machine that stands still for half of the session ends it
        MORTISE_URL="${MORTISE_URL/&tick=500ms/}" run "$MORTISE" run a -- sleep 6
        [ "$status" -eq 76 ] || break
    done
    [ "$status" -eq 0 ]
}

@test "G3 the leader and its mortise are killed: the next one leads within the session" {
    on_server 2s
    start elect e --value one -- sh -c 'touch leads; exec sleep 600'
    first=$PID
    until_true test -e leads
    start elect e --value two -c '"$MORTISE" elect e --once >next'
    second=$PID
    until_true waiters e 1
    kill -KILL "$first"
    finish "$second"
    [ "$code" -eq 0 ]
    grep '^[1-9][0-9]* two$' next
}

@test "C12 --lease: the session that is asked for, and the address may not say another" {
    MORTISE_URL="$(server_url)"
    export MORTISE_URL
    fails_with 64 "$MORTISE" run --lease 3s --grace 2s a true
    [[ "$output" == *"too long for a lease of 3.0s: make it "*"ms at most"* ]]
    MORTISE_LEASE=6s run -7 "$MORTISE" run --grace 2s a -- sh -c 'exit 7'
    on_server 4s
    fails_with 78 "$MORTISE" run --lease 3s a true
    # And what this store cannot do.
    fails_with 78 "$MORTISE" run --lock-delay 1s a true
    fails_with 78 "$MORTISE" acquire --lock-delay 1s a
}

@test "F18: a server that does not answer is 69, not a lock that is held" {
    MORTISE_URL="zk://127.0.0.1:1/a?session=4s&connect=1s"
    export MORTISE_URL
    local words pids=()
    for words in "run -n a true" "run -w 300ms a true" "try a" "bench a"; do
        "$MORTISE" $words 2>>said 3>&- &
        pids+=($!)
    done
    all_end_with 69 "${pids[@]}"
    cat said
    [ "$(grep -cv 'trying again$' said)" -eq 4 ] # -w may say that first, on a busy machine
    run -1 grep "held by" said
}

@test "acquire: a keeper holds the lock until it is given back" {
    on_server 2s
    keeper_keeps
}

@test "GN-03 acquire: the lock ends with the script, however that ends" {
    on_server 2s
    keeper_ends_with_the_script
}

@test "GN-01 GN-03 acquire: the keeper is killed, and the script with it" {
    on_server 2s
    keeper_is_killed
}

@test "acquire: a command that waits for a lock of its own script is refused" {
    on_server
    keeper_is_not_waited_for_in_vain
}

@test "GN-01 acquire: the keeper stands still: its script is dead before the lock goes on" {
    on_server 2s
    keeper_stands_still
}

@test "D1 H8 ls --node and --json: the path of each node, with its sequence" {
    on_server
    "$MORTISE" run node -- sh -c '"$0" ls --node node > seen; "$0" ls --json node > seen.json' "$MORTISE"
    grep -Eq ' /mortise/node/_c_[0-9a-f-]{36}-lock-[0-9]{10}$' seen
    grep -q NODE seen
    python3 -c 'import json; r, = json.load(open("seen.json"))
assert r["node"].startswith("/") and r["node"][-10:].isdigit(), r'
}

# node_of FAMILY NAME: a node of another program in the lock NAME, as long as PID lives.
# Names are as Curator makes them.
node_of() {
    /usr/bin/python3 - "${MORTISE_URL#zk://}" "/mortise/$2" "$1" <<'PY' 3>&- &
import signal, sys, uuid
from kazoo.client import KazooClient
address, path, family = sys.argv[1:]
client = KazooClient(address.split("?")[0])
client.start()
client.create(f"{path}/_c_{uuid.uuid4()}-{family}", b"", ephemeral=True, sequence=True, makepath=True)
open("made", "w")
signal.pause()
PY
    PID=$!
    until_true test -e made
    rm made
}

# has_nodes NAME FAMILY N
has_nodes() {
    [ "$(/usr/bin/python3 - "${MORTISE_URL#zk://}" "/mortise/$1" "$2" <<'PY'
import sys
from kazoo.client import KazooClient
address, path, family = sys.argv[1:]
client = KazooClient(address.split("?")[0])
client.start()
print(sum(family in name for name in client.get_children(path)))
client.stop()
PY
)" -eq "$3" ]
}

@test "u5 on ZooKeeper a lock is of the kind that other programs on its path can see" {
    /usr/bin/python3 -c 'import kazoo' || skip "no kazoo"
    on_server 6s
    node_of lock- theirs
    run -75 "$MORTISE" run -n theirs -- true
    run -75 "$MORTISE" run -n -x theirs -- true
    fails_with 64 "$MORTISE" run -s theirs -- true
    [[ "$output" == *": held as a mutex by a program that sees no readers; leave -s out, or use another name" ]]
    start run -x theirs -- true
    until_true has_nodes theirs -lock- 2
    kill "$PID"
    node_of __READ__ sides
    run -75 "$MORTISE" run -n sides -- true
    run -0 "$MORTISE" run -n -s sides -- true
    start run sides -- true
    until_true has_nodes sides __WRIT__ 1
}

# doc/security.md: the client library asserts that each reply answers a request. A library that
# survives this makes the test fail: then the document is wrong.
@test "SE-10 a reply to no request ends the process by the library, and the guard its command" {
    on_server
    direct="$MORTISE_URL"
    port=${direct##*:}
    python3 "$BATS_TEST_DIRNAME/hostile_zookeeper.py" "${port%%[/?]*}" >port 3>&- &
    until_true test -s port
    MORTISE_URL="zk://127.0.0.1:$(cat port)/?session=4s&tick=500ms"
    start run a -- sh -c 'echo $$ >pid; touch holding; exec sleep 600'
    until_true test -e holding
    touch strike
    finish "$PID"
    rm strike
    [ "$code" -eq 134 ]
    until_true is_gone "$(cat pid)"
    MORTISE_URL="$direct" run -0 "$MORTISE" run -w 60s a true
}
