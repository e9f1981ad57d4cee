#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The environment of the command: descriptors (CC-04), variables; and nested runs.
load helper

@test "CC-04: the command has descriptors 0, 1, 2 and MORTISE_LOCK_FD, no others" {
    exec 7<"$MORTISE" 8>other
    run "$MORTISE" run a -- python3 -c '
import os
held = int(os.environ["MORTISE_LOCK_FD"])
def is_open(fd):
    try: os.fstat(fd); return True
    except OSError: return False
print([fd for fd in range(1024) if is_open(fd) and fd != held], is_open(held))'
    [ "$output" = "[0, 1, 2] True" ]
    exec 7<&- 8>&-
}

@test "--inherit-fds: the caller's descriptors are the command's, mortise's are not" {
    echo hello > file
    run "$MORTISE" run --inherit-fds a -- sh -c 'cat <&7; ls -l /proc/self/fd >fds' 7<file
    [ "$output" = hello ]
    grep -F "$T/file" fds
    ! grep -e "$T/state" -e anon_inode -e socket: fds
}

@test "MORTISE_NAME, MORTISE_FENCE, MORTISE_HELD" {
    run "$MORTISE" run 'deploy/web 1' -- sh -c 'echo "$MORTISE_NAME"; echo "$MORTISE_FENCE"; echo "$MORTISE_HELD"'
    [ "${lines[0]}" = 'deploy/web 1' ]
    [ "${lines[1]}" -gt 0 ]
    [ "${lines[2]}" = "${lines[1]}"$'\texclusive\t'"sqlite:$T/state/mortise/locks.db"$'\t''deploy/web 1' ]
}

@test "SE-02: the command does not get MORTISE_ZK_AUTH or MORTISE_REDIS_AUTH, nor does a nested run's" {
    export MORTISE_ZK_AUTH=digest:me:secret
    run "$MORTISE" run a -- env
    [[ "$output" == *MORTISE_FENCE* && "$output" != *secret* ]]
    run "$MORTISE" run a -- sh -c 'MORTISE_ZK_AUTH=digest:me:secret "$MORTISE" run a -- env'
    [[ "$output" == *MORTISE_FENCE* && "$output" != *secret* ]]
    MORTISE_REDIS_AUTH=secret MORTISE_SERVE_TOKEN=secret run "$MORTISE" run a -- env
    [[ "$output" == *MORTISE_FENCE* && "$output" != *secret* ]]
}

@test "SE-02: the command gets no variable in which a store takes a secret" {
    local root="$BATS_TEST_DIRNAME/../.." names name
    names=$(grep -rhoE '"MORTISE_[A-Z]+_AUTH"' "$root/src/store" | tr -d '"' | sort -u)
    [ "$(wc -l <<<"$names")" -ge 4 ]
    for name in $names; do export "$name=hidden"; done
    run "$MORTISE" run a -- env
    [[ "$output" == *MORTISE_FENCE* && "$output" != *hidden* ]]
    run "$MORTISE" doctor
    for name in $names; do [[ "$output" == *"$name"* ]]; done
    [[ "$output" != *hidden$'\n'* ]]
}

@test "the manual has every variable that the source names" {
    local root="$BATS_TEST_DIRNAME/../.." name names
    names=$(grep -rhoE '"MORTISE_[A-Z_]+["=]' --include='*.c' "$root/src" | tr -d '"=' | sort -u)
    [ "$(wc -l <<<"$names")" -ge 10 ]
    for name in $names; do
        echo "$name"
        grep -q "$name" "$root"/man/mortise*.[15]
    done
}

@test "MORTISE_FENCE is what ls shows" {
    run "$MORTISE" run a -- sh -c 'echo $MORTISE_FENCE; $MORTISE ls --json a'
    python3 - "$output" <<'PY'
import json, sys
fence, rows = sys.argv[1].split("\n", 1)
assert json.loads(rows)[0]["fence"] == int(fence), sys.argv[1]
PY
}

@test "MORTISE_LOCK_FD: nothing to read while the lock is held" {
    run "$MORTISE" run a -- python3 -c '
import os, select
print(select.select([int(os.environ["MORTISE_LOCK_FD"])], [], [], 0.1)[0])'
    [ "$output" = "[]" ]
}

@test "MORTISE_LOCK_FD: a process that left the group reads end of file when mortise is killed" {
    start run a -- sh -c 'setsid python3 -c "
import os
open(\"ready\", \"w\")
data = os.read(int(os.environ[\"MORTISE_LOCK_FD\"]), 1)
open(\"got\", \"w\").write(repr(data))" & sleep 600'
    until_true test -e ready
    kill -KILL "$PID"
    until_true test -s got
    [ "$(cat got)" = "b''" ]
}

@test "nested: the same name does not wait for itself" {
    run timeout 60 "$MORTISE" run a -- "$MORTISE" run a -- sh -c 'echo "$MORTISE_NAME"; exit 5'
    [ "$status" -eq 5 ]
    [ "$output" = a ]
    run timeout 60 "$MORTISE" run a -- "$MORTISE" run -v a -- sh -c 'echo $MORTISE_FENCE'
    [[ "${lines[0]}" == "mortise: a: held by an outer run already, fence ${lines[1]}" ]]
}

@test "nested: another name in between, and then the first again" {
    run timeout 60 "$MORTISE" run a -- sh -c '
        echo "$MORTISE_FENCE"
        exec "$MORTISE" run b -- "$MORTISE" run a -- sh -c "echo \$MORTISE_NAME \$MORTISE_FENCE"'
    [ "$status" -eq 0 ]
    [ "${lines[1]}" = "a ${lines[0]}" ]
}

@test "nested: another store's lock of the same name is another lock" {
    start run --url sqlite:two.db a -- sh -c 'touch holding; sleep 600'
    until_true test -e holding
    run "$MORTISE" run a -- "$MORTISE" run -n --url sqlite:two.db a -- true
    [ "$status" -eq 75 ]
}

@test "nested: another namespace's lock of the same name is another lock" {
    start run --url 'sqlite:s.db?namespace=two' a -- sh -c 'touch holding; sleep 600'
    until_true test -e holding
    run "$MORTISE" run --url 'sqlite:s.db?namespace=one' a -- \
        "$MORTISE" run -n --url 'sqlite:s.db?namespace=two' a -- true
    [ "$status" -eq 75 ]
}

@test "nested: a stale or invented claim is not believed" {
    start_holder a
    fence=$("$MORTISE" ls --json a | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["fence"])')
    store="sqlite:$T/state/mortise/locks.db"
    for claim in "$((fence - 1))"$'\texclusive\t'"$store"$'\t'a "$fence"$'\texclusive\t'"$store"$'\t'b "$fence" $'\t\t' \
        "$fence"$'\t'"$store"$'\t'a \
        "x$fence"$'\texclusive\t'"$store"$'\t'a "99999999999999999999999"$'\texclusive\t'"$store"$'\t'a; do
        MORTISE_HELD="$claim" run "$MORTISE" run -n a -- true
        [ "$status" -eq 75 ]
    done
    MORTISE_HELD="junk"$'\n'"$fence"$'\texclusive\t'"$store"$'\t'a run "$MORTISE" run -n a -- true
    [ "$status" -eq 0 ]
}

@test "nested: after the outer run has ended its inheritance is not believed" {
    held=$("$MORTISE" run a -- sh -c 'echo "$MORTISE_HELD"')
    start_holder a
    MORTISE_HELD="$held" run "$MORTISE" run -n a -- true
    [ "$status" -eq 75 ]
}

@test "u7 two stores of two users are two: -v names each, and a refusal says what both can use" {
    run -0 "$MORTISE" run -v a -- env XDG_STATE_HOME="$T/other" "$MORTISE" run -n -v a -- true
    [[ "${lines[0]}" == "mortise: a: acquired after "*", at sqlite:$XDG_STATE_HOME/mortise/locks.db" ]]
    [[ "${lines[1]}" == "mortise: a: acquired after "*", at sqlite:$T/other/mortise/locks.db" ]]
    mkdir -m 777 shared
    chmod 777 shared
    fails_with 78 "$MORTISE" run --url "sqlite://$T/shared/locks.db" a -- true
    [[ "${lines[0]}" == *"or a server, if several users share the locks" ]]
}

@test "u8 a user without a home has the place that a service manager names, or is told what to do" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    local advice='make a directory of your own (mkdir -m 700 DIRECTORY), and set XDG_STATE_HOME=DIRECTORY or MORTISE_URL=sqlite:DIRECTORY/locks.db'
    chmod 755 "$T"
    cp "$MORTISE" mortise
    install -d -o 54321 -g 54321 -m 700 state runtime home
    fails_with 77 as_service ./mortise run x -- true
    [ "${lines[0]}" = "mortise: this user has no home directory; $advice" ]
    fails_with 77 as_service HOME="$T" ./mortise run x -- true
    [ "${lines[0]}" = "mortise: $T/.local: Permission denied; $advice" ]
    as_service HOME="$T" STATE_DIRECTORY="$T/state:$T/other" RUNTIME_DIRECTORY="$T/runtime" ./mortise run x -- true
    [ -e state/mortise/locks.db ]
    as_service RUNTIME_DIRECTORY="$T/runtime" ./mortise run x -- true
    [ -e runtime/mortise/locks.db ]
    as_service HOME="$T/home" STATE_DIRECTORY="$T/never" ./mortise run x -- true # one's own goes before
    [ -e home/.local/state/mortise/locks.db ]
    chmod 777 state
    fails_with 78 as_service ./mortise run --url "sqlite://$T/state/mine.db" x -- true
    [[ "${lines[0]}" == *"the directory is writable by all; use one that is yours alone (mkdir -m 700), or a server"* ]]
}
