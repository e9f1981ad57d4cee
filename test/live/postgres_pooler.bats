#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SQ-10: a real pgbouncer, which gives transactions two connections to a real server; and pgpool.
load ../cli/helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"
FAIR="$BATS_TEST_DIRNAME/postgres_fair_pooler.py"

# The server is another user than the test, if that is root.
setup_file() {
    export PLACE
    PLACE=$(mktemp -d /tmp/mortise-pooler-XXXXXX)
    chmod 755 "$PLACE"
    python3 "$SERVERS" start postgres-pooler "$PLACE/servers" >/dev/null 3>&-
    "${MORTISE:-$MORTISE_BIN}" init --url "$(at 1)"
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE/servers"
    rm -rf "$PLACE"
}

# at NUMBER: the URI of the server (0), or of its pooler (1).
at() {
    python3 -c 'import json, sys
print("postgresql://mortise@127.0.0.1:%d/mortise" % json.load(open(sys.argv[1]))["ports"][int(sys.argv[2])])' \
        "$PLACE/servers/servers.json" "$1"
}

port_of() {
    sed 's|.*:\([0-9]*\)/.*|\1|' <<<"$1"
}

# console COMMAND: the pooler's.
console() {
    psql -X -q -h 127.0.0.1 -p "$(port_of "$(at 1)")" -U mortise -d pgbouncer -c "$1"
}

# Connections of before may show what was left in them.
renew_connections() {
    console RECONNECT
}

# sql COMMAND: at the server itself, as its superuser.
sql() {
    psql -X -q -t -A -h 127.0.0.1 -p "$(port_of "$(at 0)")" -U postgres -d mortise -c "$1"
}

# The numbers of the processes that serve clients of the store.
connections() {
    sql "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity
        WHERE application_name = 'mortise' AND usename = 'mortise'"
}

is_connected_anew() {
    [ -n "$(connections)" ] && [ "$(connections)" != "$1" ]
}

# take_turns URI TURNS: counts under the lock. The kernel's lock shows if another does so too. A
# turn whose lock was lost, or not given, is another try.
take_turns() {
    local turns=0 code
    while ((turns < $2)); do
        code=0
        "$MORTISE" run -w 60s --url "$1" contest -- flock -n -E 33 witness \
            sh -c 'read n <counter; sleep 0.01; echo $((n + 1)) >counter' 2>>refusals || code=$?
        if [ "$code" -eq 33 ]; then
            touch overlapped
            return 1
        elif [ "$code" -eq 0 ]; then
            turns=$((turns + 1))
        fi
        [ "$code" -ne 0 ] || echo >>granted
    done
}

# contest URI...: a process takes eight turns at each.
contest() {
    local url
    CONTENDERS=()
    echo 0 >counter
    touch granted
    for url in "$@"; do
        take_turns "$url" 8 3>&- &
        CONTENDERS+=($!)
    done
}

# A count may be one more than turns that were reported: its report may have been lost.
ends_well() {
    all_end_with 0 "${CONTENDERS[@]}"
    [ ! -e overlapped ]
    [ "$(cat counter)" -ge $((8 * ${#CONTENDERS[@]})) ]
}

has_granted() {
    [ "$(wc -l <granted)" -ge "$1" ]
}

@test "SQ-10 doctor shows the pooler, how waiters are woken, and how often they look" {
    run "$MORTISE" doctor --url "$(at 1)"
    [[ "$output" == *"pooler               yes"* ]]
    [[ "$output" == *"waiters              look, the next in line every 25 ms"* ]]
    [[ "$output" == *"waiters are told     no"* ]]
    run "$MORTISE" doctor --url "$(at 0)"
    [[ "$output" == *"pooler               none was seen"* ]]
    [[ "$output" == *"waiters              are notified"* ]]
}

@test "SQ-10 pooler= has four values, and a form none that is a pooler" {
    run -0 "$MORTISE" run --url "$(at 1)?pooler=transaction" a -- true
    run -0 "$MORTISE" run --url "$(at 0)?pooler=no" a -- true
    run ! "$MORTISE" run --url "$(at 1)?pooler=no" a -- true
    [[ "$output" == *"which pooler=no excludes"* ]]
    run ! "$MORTISE" run --url "$(at 1)?pooler=statement" a -- true
    [[ "$output" == *"is not auto, no, session or transaction"* ]]
    for pooler in session transaction; do
        run ! "$MORTISE" run --url "$(at 0)?pooler=$pooler&form=row" a -- true
        [[ "$output" == *"connect to the server itself"* ]]
    done
}

# fence_of NAME: the holder's, as the pooler shows it.
fence_of() {
    "$MORTISE" ls --url "$(at 1)" "$1" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["fence"])'
}

@test "SQ-10 init, ls, revoke and break go through the pooler" {
    run -0 "$MORTISE" init --url "$(at 1)"
    start run --json --url "$(at 1)" shown -- sh -c 'touch holding; exec sleep 600' 2>events
    until_true test -e holding
    run -0 "$MORTISE" ls --url "$(at 1)" shown
    [[ "$output" == *"pid $PID"* ]]
    run -0 "$MORTISE" revoke --url "$(at 1)" shown
    run -0 "$MORTISE" break --url "$(at 1)" shown --fence "$(fence_of shown)"
    finish "$PID"
    [ "$code" -ne 0 ]
    grep '"event": "lost"' events
    run -0 "$MORTISE" run -n --url "$(at 0)" shown -- true
}

@test "SQ-10 one holds at a time while the pooler restarts, pauses, and loses connections" {
    contest "$(at 1)?lease=4s" "$(at 1)?lease=4s" "$(at 1)?lease=4s" "$(at 1)?lease=4s" \
        "$(at 0)?lease=4s"
    until_true has_granted 4
    renew_connections
    until_true has_granted 8
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mortise'" >/dev/null
    until_true has_granted 12
    console PAUSE 3>&- &
    sleep 0.3
    until_true console RESUME # once it has paused
    until_true has_granted 16
    python3 "$SERVERS" kill "$PLACE/servers" 1
    python3 "$SERVERS" restart "$PLACE/servers" 1 3>&-
    until_true has_granted 20
    ends_well
}

# has_clients COUNT: as many connections have been made to the pooler with a fair face.
has_clients() {
    [ "$(grep -c client fair)" -ge "$1" ]
}

@test "SQ-10 a pooler that does not show at first is found by a renewal" {
    renew_connections
    backend=$(psql -X -q -t -A -c 'SELECT pg_backend_pid()' "$(at 1)")
    python3 "$FAIR" "$(port_of "$(at 1)")" "$backend" >fair 3>&- &
    until_true test -s fair
    fair="postgresql://mortise@127.0.0.1:$(head -n 1 fair)/mortise?sslmode=disable&gssencmode=disable&lease=3s"
    start run --url "$fair" hidden -- sh -c 'touch holding; while [ ! -e over ]; do sleep 0.02; done'
    holder=$PID
    until_true test -e holding
    # It took the process for its own: it has prepared statements there.
    run -0 psql -X -q -t -A -c 'SELECT count(*) > 0 FROM pg_prepared_statements' "$(at 1)"
    [ "$output" = t ]
    start run -w 60s --url "$fair" hidden -- touch served
    until_true sh -c '"$MORTISE" ls --url "$0" hidden | grep -q "^hidden *1 "' "$(at 0)"
    sql "SELECT pg_terminate_backend($backend)" >/dev/null
    until_true has_clients 3 # a renewal in another process makes the holder connect anew
    touch over
    all_end_with 0 "$holder" "$PID"
    [ -e served ]
}

@test "SQ-10 an answer that is another client's ends the connection, and no lock" {
    python3 "$FAIR" "$(port_of "$(at 0)")" 1 "$T/mix" >fair 3>&- &
    until_true test -s fair
    mixed="postgresql://mortise@127.0.0.1:$(head -n 1 fair)/mortise?sslmode=disable&gssencmode=disable&lease=3s"
    start run --url "$mixed" mixed -- sh -c 'touch holding; while [ ! -e over ]; do sleep 0.02; done'
    until_true test -e holding
    before=$(connections)
    touch mix
    until_true test ! -e mix
    until_true is_connected_anew "$before"
    touch over
    all_end_with 0 "$PID"
}

@test "SQ-10 a server that says it is CockroachDB has no form" {
    GREETING=crdb_version=23.1 python3 "$FAIR" "$(port_of "$(at 0)")" 1 >fair 3>&- &
    until_true test -s fair
    said="postgresql://mortise@127.0.0.1:$(head -n 1 fair)/mortise?sslmode=disable&gssencmode=disable"
    for form in advisory row; do
        run ! "$MORTISE" run -w 20s --url "$said&form=$form" a -- true
        [[ "$output" == *"the server is CockroachDB"* ]]
    done
}

@test "SQ-10 pgpool, which splits transactions, is refused where it does so" {
    command -v pgpool >/dev/null || skip "no pgpool"
    port=$(python3 "$SERVERS" port)
    cat >pgpool.conf <<END
backend_clustering_mode = 'raw'
listen_addresses = '127.0.0.1'
port = $port
pcp_port = $(python3 "$SERVERS" port)
unix_socket_directories = '$T'
pcp_socket_dir = '$T'
wd_ipc_socket_dir = '$T'
backend_hostname0 = '127.0.0.1'
backend_port0 = $(port_of "$(at 0)")
enable_pool_hba = off
num_init_children = 4
pid_file_name = '$T/pgpool.pid'
logdir = '$T'
END
    touch pool_hba.conf pcp.conf pool_passwd
    pgpool -n -f pgpool.conf -a pool_hba.conf -F pcp.conf >log 2>&1 3>&- &
    url="postgresql://mortise@127.0.0.1:$port/mortise?lease=4s"
    until_true psql -X -q -c 'SELECT 1' "postgresql://mortise@127.0.0.1:$port/mortise"
    echo 0 >counter
    for i in {1..12}; do
        "$MORTISE" run -w 20s --url "$url" "pgpool/$((i / 4))" -- true 2>>refusals || true
    done
    grep "splits transactions" refusals
}
