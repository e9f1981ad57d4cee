#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise acquire, renew and release: a lock that a script takes in its midst, kept by a keeper.
load helper
load keeper

@test "acquire: a keeper holds the lock until it is given back" {
    keeper_keeps
}

@test "GN-03 acquire: the lock ends with the script, however that ends" {
    keeper_ends_with_the_script
}

@test "GN-01 GN-03 acquire: the keeper is killed, and the script with it" {
    keeper_is_killed
}

@test "acquire: a command that waits for a lock of its own script is refused" {
    keeper_is_not_waited_for_in_vain
}

@test "GN-06 acquire --lock-delay: the keeper dies, and nobody has the lock for so long" {
    keeper_leaves_a_delay
    fails_with 64 "$MORTISE" acquire --lock-delay 25h a
}

@test "acquire: a keeper that stands still keeps the lock on this machine" {
    start_script a --on-lost term
    kill -STOP "$KEEPER"
    run -75 "$MORTISE" run -w 300ms a true
    kill -CONT "$KEEPER"
    run -0 "$MORTISE" renew a <token.a
    kill -KILL "$KEEPER"
    finish "$SCRIPT"
    [ "$code" -ge 128 ]
}

@test "acquire: in a command substitution the lock is the script's, in each shell" {
    for shell in bash dash zsh; do
        command -v "$shell" || continue
        "$shell" -c 'token=$("$MORTISE" acquire a || echo failed; :)
            ("$MORTISE" run -n a true) && exit 1
            MORTISE_TOKEN=$token "$MORTISE" release a'
        # And ends with it.
        "$shell" -c 'token=$("$MORTISE" acquire a && echo; :); [ -n "$token" ]'
        start run a -- true
        finish "$PID"
        [ "$code" -eq 0 ]
    done
}

@test "u6 acquire: in a subshell the lock is the subshell's, in each shell" {
    cat >loops <<'SH'
for i in 1 2; do (
    token=$("$MORTISE" acquire -w 60 k) || exit 1
    "$MORTISE" run -n k true 2>/dev/null && exit 1 # it is held
    echo "$i" >>rounds
); done
printf '%s\n' 1 2 | while read -r i; do
    token=$("$MORTISE" acquire -n piped || :) || exit 1 # the second time it is held
    "$MORTISE" run -n piped true 2>/dev/null && exit 1
    echo "$i" >>rounds
done
"$MORTISE" run -w 60 piped echo piped >>rounds # the loop has ended, and its lock
( "$MORTISE" acquire -w 60 --token-file t filed; "$MORTISE" run -n filed true 2>/dev/null || echo held >>rounds )
"$MORTISE" run -w 60 filed echo free >>rounds
take() { "$MORTISE" acquire -w 60 "$1"; }
token=$(take mine)
"$MORTISE" run -n mine true 2>/dev/null && exit 1
echo "$token" | "$MORTISE" release mine && echo released >>rounds
SH
    for shell in bash dash; do
        rm -f rounds
        "$shell" loops
        [ "$(xargs <rounds)" = "1 2 1 2 piped held free released" ]
        rm rounds
        "$shell" loops | cat
        [ "$(xargs <rounds)" = "1 2 1 2 piped held free released" ]
    done
}

@test "u45 acquire --pid: another user's process that has not started mortise is refused" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    chmod 755 "$T"
    cp "$MORTISE" mortise
    install -d -o 54321 -g 54321 -m 700 state
    sleep 600 3>&- &
    for pid in 1 $!; do
        fails_with 77 as_service MORTISE_URL="sqlite:$T/state/locks.db" ./mortise acquire k --pid "$pid"
        [[ "$output" == *"process $pid is another user's"* ]]
    done
    as_service MORTISE_URL="sqlite:$T/state/locks.db" sh -c './mortise acquire k --pid $$'
    MORTISE_URL="sqlite:$T/root.db" "$MORTISE" acquire k --pid $!
}

@test "acquire --pid: as long as that process lives" {
    sleep 600 3>&- &
    local owner=$!
    "$MORTISE" acquire --pid $owner a >token
    run -75 "$MORTISE" run -n a true
    kill -KILL $owner
    start run a -- true
    finish "$PID"
    [ "$code" -eq 0 ]
    run -76 "$MORTISE" renew a <token
}

@test "acquire --pid: a number of no process, or of a process younger than mortise, is refused" {
    fails_with 64 "$MORTISE" acquire --pid 0 a
    fails_with 64 "$MORTISE" acquire --pid x a
    fails_with 64 "$MORTISE" acquire --pid 2147483647 a
    fails_with 64 "$MORTISE" acquire --pid $$ --durable a
    # The number may be another's by now: who has it has started after us.
    mkfifo number
    sh -c 'read -r pid <number; exec "$MORTISE" acquire --pid "$pid" a 2>err' 3>&- &
    local waiting=$!
    sleep 0.1
    sleep 600 3>&- &
    echo $! >number
    finish $waiting
    [ "$code" -eq 64 ]
    grep 'younger' err
    run -0 "$MORTISE" run -n a true
}

@test "GN-02 acquire: an interrupt while it waits leaves nothing behind" {
    start_holder a
    for signal in INT TERM KILL; do
        start acquire a
        until_true waiters a 1
        kill -$signal "$PID"
        finish "$PID"
        [ "$code" -gt 128 ]
        until_true waiters a 0
    done
    run -75 "$MORTISE" acquire -n a
    [[ "$output" == "mortise: a: held by sh host "* ]]
    run -75 "$MORTISE" acquire -w 10ms a
}

@test "acquire: the script ends while it waits" {
    start_holder a
    sleep 600 3>&- &
    local owner=$!
    start acquire --pid $owner a 2>err
    until_true waiters a 1
    kill -KILL $owner
    finish "$PID"
    [ "$code" -eq 1 ]
    grep 'has ended' err
    run -0 waiters a 0
}

@test "acquire: a token that cannot be printed keeps no lock" {
    run -1 sh -c '"$MORTISE" acquire a >/dev/full'
    run -0 "$MORTISE" run -n a -- true
    run -1 "$MORTISE" acquire --token-file nowhere/token a
    run -0 "$MORTISE" run -n a -- true
}

@test "SE-02 the token: in a file or a descriptor, for its owner alone, and nowhere else" {
    echo old >token
    chmod 666 token
    ln token other
    "$MORTISE" acquire --token-file token a
    [ "$(stat -c %a token)" = 600 ]
    [ "$(cat other)" = old ]
    local token secret pid
    token=$(cat token)
    secret=${token##*-}
    [[ "$token" =~ ^keeper-[0-9a-f]{16}-[0-9a-f]{32}$ ]]
    pid=$(holder a)
    MORTISE_TOKEN_FILE=token run -0 "$MORTISE" renew a
    cat /proc/[0-9]*/cmdline "/proc/$pid/environ" /proc/net/unix >seen 2>/dev/null || true
    grep -a "@mortise-keeper-${token:7:16}" seen
    run -1 grep -a "$secret" seen
    run -1 grep -a -r "$secret" state
    run -0 "$MORTISE" ls --json
    [[ "$output" != *"$secret"* ]]
    MORTISE_TOKEN=$token run -64 "$MORTISE" release b
    [[ "$output" != *"$secret"* ]]
    MORTISE_TOKEN="${token%-*}-0123456789abcdef0123456789abcdef" run -76 "$MORTISE" release a
    MORTISE_TOKEN=${token%?} run -64 "$MORTISE" release a
    [[ "$output" != *"${secret%?}"* ]]
    MORTISE_TOKEN_FILE=token run -0 "$MORTISE" release a
    "$MORTISE" acquire --token-fd 5 a 5>five
    run -0 "$MORTISE" release a <five
    fails_with 64 "$MORTISE" acquire --token-fd 99 a
    run -64 "$MORTISE" release --token-file nowhere a
    run -64 "$MORTISE" release a </dev/null
}

@test "SE-02 acquire: the keeper has none of the caller's descriptors, nor its secrets" {
    exec 7<"$MORTISE"
    MORTISE_ZK_AUTH=digest:u:hidden "$MORTISE" acquire a >token
    exec 7<&-
    pid=$(holder a)
    run -1 grep -a hidden "/proc/$pid/environ"
    # It lets go of them when it has heard that the token has arrived.
    until_true test "/proc/$pid/fd/2" -ef /dev/null
    for fd in 0 1; do [ "$(readlink "/proc/$pid/fd/$fd")" = /dev/null ]; done
    ls -l "/proc/$pid/fd" >fds
    run -1 grep -F "$MORTISE" fds
    run -1 grep pipe: fds
    [ "$(ps -o sid= -p "$pid")" -ne "$(ps -o sid= -p $$)" ]
    # A reader of a script's output is not kept waiting by its keeper.
    timeout 60 sh -c '("$MORTISE" acquire b 2>&1; exit 0) | cat' >other
    run -0 "$MORTISE" release a <token
}

@test "acquire: the lock is broken: the script is told, or ended" {
    start_script a
    start_script b --on-lost term --grace 200ms
    start_script c --on-lost 'exec:echo "$MORTISE_NAME $MORTISE_GROUP" >told' --grace 200ms
    for name in a b c; do
        run -0 "$MORTISE" break $name --fence "$(fence_of $name)"
    done
    until_true test -s told
    [ "$(cat told)" = "c $SCRIPT" ]
    finish "$SCRIPT"
    [ "$code" -eq 137 ]
    run -76 "$MORTISE" renew a <token.a
    run -76 "$MORTISE" release a <token.a
    touch end.a
    until_true flock -n w.b true
    until_true flock -n w.c true
}

@test "acquire --max-hold: over unless renewed, and renew says for how long" {
    start_script a --max-hold 1h
    run -0 "$MORTISE" renew --max-hold 10ms a <token.a
    until_true has_ended "$KEEPER"
    run -76 "$MORTISE" renew a <token.a
    run -0 "$MORTISE" run -n a true
    touch end.a
    start_script b --max-hold 1h --on-lost term --grace 100ms
    start_next b
    until_true waiters b 1
    run -0 "$MORTISE" renew --max-hold 10ms b <token.b
    wait_for_next b "$PID"
    "$MORTISE" acquire --max-hold 10ms --pid $$ c >token || [ $? -eq 76 ] # over already
    start run c true
    finish "$PID"
    [ "$code" -eq 0 ]
    run -76 "$MORTISE" renew c <token
    fails_with 64 "$MORTISE" acquire --max-hold soon a
}

@test "acquire: a keeper that is told to end gives the lock back" {
    start_script a
    kill -TERM "$KEEPER"
    until_true has_ended "$KEEPER"
    run -0 "$MORTISE" run -n a true
    touch end.a
}

@test "acquire: modes, and an option that is none" {
    "$MORTISE" acquire -s a >reader
    run -0 "$MORTISE" run -n -s a -- true
    run -75 "$MORTISE" run -n -x a -- true
    run -0 "$MORTISE" release a <reader
    run -0 "$MORTISE" run -n -x a -- true
    "$MORTISE" acquire --permits 3 --weight 2 b >two
    run -75 "$MORTISE" run -n --permits 3 --weight 2 b -- true
    run -0 "$MORTISE" release b <two
    fails_with 64 "$MORTISE" acquire
    fails_with 64 "$MORTISE" acquire a b
    fails_with 64 "$MORTISE" acquire -w soon a
    fails_with 64 "$MORTISE" renew
    fails_with 64 "$MORTISE" acquire --on-lost nothing a
}

# strangers PID: forty sockets that listen as keepers of the script PID do, with full queues of
# calls or with room in them, and never answer.
strangers() {
    python3 - "$1" <<'END' 3>&- &
import os, signal, socket, sys
minded = os.pidfd_open(int(sys.argv[1]))
sockets = []
for number in range(240):
    address = f"\0mortise-keeper-{os.getpid():08x}{number:08x}"
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(address)
    server.listen(0 if number % 2 else 64)
    sockets.append(server)
    while number % 2:
        call = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        sockets.append(call)
        try:
            call.connect(address)
        except BlockingIOError:
            break
open("listening", "w")
signal.pause()
END
    until_true test -e listening
}

@test "strangers that listen as keepers do delay a wait by half a second in all" {
    strangers $$
    start_holder a
    kill -STOP "$HOLDER"
    kill "$HOLDER" # it ends as soon as it goes on, and the wait with it
    start run a -- true
    sleep 1.5 # the wait has begun to look for its holder
    kill -CONT "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ] # half a second for each of them would be two minutes
}
