#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A user with the rights of init --print-acl: it can use every kind of lock, and nothing else.
load ../cli/helper
load rights

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    export PLACE="$BATS_FILE_TMPDIR/redis" URL
    python3 "$SERVERS" start redis "$PLACE" >/dev/null 3>&-
    URL=$(python3 "$SERVERS" url "$PLACE")
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE"
}

server() {
    redis-cli -s "$PLACE/0/socket" "$@"
}

# as_user USER [PARAMETERS]: from here on, with the printed rights.
as_user() {
    export MORTISE_URL="${URL/\/\//\/\/$1@}$2" MORTISE_REDIS_AUTH=word
    "$MORTISE" init --print-acl >command
    [ "$(wc -l <command)" -eq 1 ]
    [ "$(server <command)" = OK ]
    server acl setuser "${1//%20/ }" ">$MORTISE_REDIS_AUTH"
    server acl log reset
}

# Whether the server has refused nothing but CLIENT ID, which exclusive locks do without, and what
# doctor tries.
nothing_was_refused() {
    server --json acl log | python3 -c 'import json, sys
objects = {entry["object"] if isinstance(entry, dict) else entry[entry.index("object") + 1]
           for entry in json.load(sys.stdin)}
print(objects)
assert objects <= {"client|id", "config|get", "a key of somebody else\x27s"}'
}

@test "each kind of lock is taken, waited for, shown and given back" {
    as_user alice "/0?session=2s"
    takes_each_kind "--lock-delay 1s"
    nothing_was_refused
}

@test "elections, holds that outlive their process, revoke and break" {
    as_user alice "/0?session=2s"
    elects_and_operates
    nothing_was_refused
}

@test "the suites pass for that user: operators, detached holds, cells" {
    as_user alice "/3?session=2s"
    passes_suites test_api_operator test_api_detach test_api_cell
    nothing_was_refused
}

# may_not COMMAND...: as alice.
may_not() {
    run redis-cli -s "$PLACE/0/socket" --user alice --pass word --no-auth-warning "$@"
    echo "$* : $output"
    [[ "$output" == NOPERM* || "$output" == *"No permissions"* ]]
}

@test "nothing else is allowed" {
    as_user alice
    server set other 1
    may_not get other
    may_not set mortise 1
    may_not eval 'return redis.call("GET", KEYS[1])' 1 other
    may_not hgetall '{other/}s:x'
    may_not subscribe other
    may_not publish other x
    local command
    for command in "keys *" "scan 0" "config get maxmemory" "client list" "client kill type normal" \
        "flushall" "flushdb" "acl list" "debug sleep 0" "monitor" "shutdown" "save" "replicaof no one" \
        "script flush" "function list" "module list" "select 3" "swapdb 0 1" "dbsize" "randomkey" \
        "psubscribe *" "migrate h 1 k 0 1" "slowlog get" "latency latest" "cluster info" "wait 1 1"; do
        # shellcheck disable=SC2086
        may_not $command
    done
}

@test "a namespace with the letters of patterns, or with a space and quotes, is itself" {
    server set '{a*b/}s:x' 1
    server set '{aab/}s:x' 1
    as_user alice "?namespace=a*b&session=2s"
    "$MORTISE" run x true
    nothing_was_refused
    may_not get '{aab/}s:x'
    may_not get '{mortise/}s:x'
    as_user alice "?namespace=it%20%22s%22&session=2s"
    "$MORTISE" run x true
    "$MORTISE" run -x x true
    nothing_was_refused
    may_not get '{a*b/}s:x'
}

@test "replicas=, and the stores that have no such users" {
    MORTISE_URL="redis://alice@h?replicas=1" run -0 "$MORTISE" init --print-acl
    [[ "$output" == *" +wait"* && "$output" != *"+select"* ]]
    MORTISE_URL="redis://alice@h/2" run -0 "$MORTISE" init --print-acl
    [[ "$output" == *" +select"* && "$output" != *"+wait"* ]]
    MORTISE_URL="redis://h" fails_with 78 "$MORTISE" init --print-acl
    [[ "$output" == *"the URI names the user who gets the rights: redis://USER@..." ]]
    MORTISE_URL="" fails_with 78 "$MORTISE" init --print-acl
    MORTISE_URL="sqlite:$T/locks" fails_with 78 "$MORTISE" init --print-acl
    [[ "$output" == *"only Redis, etcd and Kubernetes have rights"* ]]
}
