#!/usr/bin/env bats
# GN-01: the command on a real ZooKeeper server; server, mortise or both stand still.
load helper
load stopped
load keeper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    # BATS_FILE_TMPDIR is removed at the end, and the server's directory with it.
    python3 "$SERVERS" start zk "$BATS_FILE_TMPDIR/zk" >/dev/null 3>&-
}

teardown_file() {
    python3 "$SERVERS" stop "$BATS_FILE_TMPDIR/zk"
}

server() {
    python3 "$SERVERS" "$1" "$BATS_FILE_TMPDIR/zk" 0
}

# on_server [SESSION]
on_server() {
    MORTISE_URL="$(python3 "$SERVERS" url "$BATS_FILE_TMPDIR/zk")?session=${1:-4s}"
    export MORTISE_URL
}

# What runs under the lock: notes the time again and again, and what it is told.
witness() {
    cat >witness.py <<'PY'
import os, signal, sys, time
def told(number, frame):
    open("told", "w").write(str(time.clock_gettime(time.CLOCK_BOOTTIME)))
    if sys.argv[1] == "obeys": sys.exit(0)
signal.signal(signal.SIGTERM, told)
while True:
    with open("new", "w") as f: f.write(str(time.clock_gettime(time.CLOCK_BOOTTIME)))
    os.replace("new", "alive") # it is killed at any moment, and the file stays whole
    time.sleep(0.01)
PY
}

now() {
    python3 -c 'import time; print(time.clock_gettime(time.CLOCK_BOOTTIME))'
}

# within FILE BEGIN SECONDS: the time in the file is so close to the beginning.
within() {
    python3 -c 'import sys; a, b, c = open(sys.argv[1]).read(), *sys.argv[2:]
print(float(a) - float(b)); sys.exit(float(a) - float(b) > float(c))' "$@"
}

# stall_under GRACE WHAT: the server stalls, from $began on, until the witness's run has ended.
stall_under() {
    on_server
    witness
    start run --grace "$1" a -- python3 witness.py "$2" 2>err
    until_true test -s alive
    began="$(now)"
    server pause
    finish "$PID"
    server resume
    [ "$code" -eq 76 ]
}

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

@test "A2 a short command costs the server five requests: session, create, list, release, end" {
    on_server
    "$MORTISE" run a -- true
    least=99
    for ((round = 0; round < 10; round++)); do
        before=$(requests)
        "$MORTISE" run a -- true
        cost=$(($(requests) - before - 1))
        least=$((cost < least ? cost : least))
    done
    [ "$least" -eq 5 ]
}

@test "GN-01 the server stalls: TERM in time for the grace, and 76" {
    stall_under 1s obeys
    within told "$began" 3
    grep 'mortise: a: .*lost' err
}

@test "GN-01 the server stalls: who ignores TERM is dead before the session can end" {
    stall_under 1s ignores
    within alive "$began" 4
    until_true is_free a
}

@test "a short stall is slept through" {
    on_server
    witness
    start run --grace 500ms a -- sh -c 'touch holding; sleep 2; exit 5'
    until_true test -e holding
    server pause
    sleep 0.7
    server resume
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
    witness
    start run --grace 1s a -- python3 witness.py obeys 2>err
    until_true test -s alive
    began="$(now)"
    kill -STOP "$PID"
    until_true test -s told
    within told "$began" 4
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
    MORTISE_URL="$MORTISE_URL&acl=open" MORTISE_GRACE=2s run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: MORTISE_GRACE: the grace is not less than half of the lease"* ]]
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

@test "G3 the leader and its mortise are killed: the next one leads within the session" {
    on_server 2s
    start elect e --value one -- sh -c 'touch leads; exec sleep 60'
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
    MORTISE_URL="$(python3 "$SERVERS" url "$BATS_FILE_TMPDIR/zk")"
    export MORTISE_URL
    fails_with 64 "$MORTISE" run --lease 3s --grace 2s a true
    [[ "$output" == *"half of the lease, 3.0s"* ]]
    MORTISE_LEASE=6s run -7 "$MORTISE" run --grace 2s a -- sh -c 'exit 7'
    on_server 4s
    fails_with 78 "$MORTISE" run --lease 3s a true
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
    [ "$(wc -l <said)" -eq 4 ]
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

@test "GN-01 acquire: the keeper stands still: its script is dead before the lock goes on" {
    on_server 2s
    keeper_stands_still
}
