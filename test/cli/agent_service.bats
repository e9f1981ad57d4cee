#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent as a service: systemd's readiness and sockets, the units, INFO and doctor.
load helper
load agent

UNITS="$BATS_TEST_DIRNAME/../../dist/systemd"

service() {
    timeout 60 python3 "$BATS_TEST_DIRNAME/service.py" "$@"
}

@test "an agent says that it is ready once it serves" {
    run -0 service "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock"
    [[ "$output" == *ready* ]]
}

@test "an agent takes over the socket that systemd has opened, and leaves it there" {
    local agent="$MORTISE agent --url sqlite:$T/locks.db"
    # shellcheck disable=SC2086
    python3 "$BATS_TEST_DIRNAME/service.py" --listen "$T/agent.sock" -- $agent 3>&- >"$T/agent.out" &
    AGENT=$!
    until_true grep -q "at $T/agent.sock" "$T/agent.out"
    client takes_and_gives_back
    run -75 "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock"
    kill -TERM "$AGENT"
    finish "$AGENT"
    [ "$code" -eq 0 ]
    [ -S "$T/agent.sock" ]
    # shellcheck disable=SC2086
    run -78 service --listen "$T/a.sock" "$T/b.sock" -- $agent
    [[ "$output" == *"several sockets"* ]]
    # shellcheck disable=SC2086
    run -78 service --listen "$T/c.sock" -- $agent --socket "$T/d.sock"
    [[ "$output" == *"the socket of systemd is $T/c.sock"* ]]
}

@test "the units are well formed, and the agent's is confined" {
    command -v systemd-analyze >/dev/null || skip "no systemd"
    mkdir units
    sed "s|^ExecStart=/usr/bin/mortise|ExecStart=$MORTISE|; s|^User=.*|User=games|" \
        "$UNITS/mortise-agent.service" >units/mortise-agent.service
    sed 's|^SocketUser=.*|SocketUser=games|' "$UNITS/mortise-agent.socket" >units/mortise-agent.socket
    run systemd-analyze verify --man=no "$T/units/mortise-agent.service" "$T/units/mortise-agent.socket"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -cE 'mortise-agent\.(service|socket):' <<<"$output")" -eq 0 ]
    run systemd-analyze security --offline=true --threshold=30 "$T/units/mortise-agent.service"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "INFO counts each wait and each hold" {
    start_agent
    client counts_exactly
}

# A directory of the test's own, for a user that has no agent elsewhere.
@test "doctor knows the agent: whether it answers, and on which store it is" {
    [ "$(id -u)" -ne 0 ] || setpriv --reuid games --clear-groups true || skip "no user games"
    mkdir -m 700 run
    [ "$(id -u)" -ne 0 ] || chown games run .
    local as_games=(env XDG_RUNTIME_DIR="$T/run" XDG_STATE_HOME="$T/state" HOME="$T")
    [ "$(id -u)" -ne 0 ] || as_games=(setpriv --reuid games --regid games --clear-groups "${as_games[@]}")
    run -0 "${as_games[@]}" "$MORTISE" doctor --url "sqlite:$T/locks.db"
    [[ "$output" != *$'\nagent\n'* ]]
    "${as_games[@]}" "$MORTISE" agent --url "sqlite:$T/locks.db" 3>&- >"$T/agent.out" 2>&1 &
    AGENT=$!
    until_true grep -q agent.sock "$T/agent.out"
    run -0 "${as_games[@]}" "$MORTISE" doctor --url "sqlite:$T/locks.db"
    echo "$output"
    [[ "$output" == *$'\nagent\n  socket               '"$T/run/mortise/agent.sock"$'\n  answers              yes, version '* ]]
    [[ "$output" != *"another one"* ]]
    run -0 "${as_games[@]}" "$MORTISE" doctor --url "sqlite:$T/other.db"
    [[ "$output" == *"sqlite:$T/locks.db: another one, and their locks do not exclude each other"* ]]
    kill -STOP "$AGENT"
    run -1 "${as_games[@]}" "$MORTISE" doctor --url "sqlite:$T/locks.db"
    [[ "$output" == *"warning: the agent at $T/run/mortise/agent.sock does not answer"* ]]
    kill -KILL "$AGENT"
}

# The doctor of the user games beside an agent of root with these options, in a /run of the test's own.
beside_hosts_agent() {
    unshare --mount sh -ec '
        mount -t tmpfs -o mode=755 run /run
        mkdir /run/mortise
        rm -f "$T/agent.out" # that of the agent before says so too
        "$MORTISE" agent --url "sqlite:$T/locks.db" "$@" 3>&- >"$T/agent.out" 2>&1 &
        for _ in $(seq 600); do ! grep -q agent.sock "$T/agent.out" || break; sleep 0.1; done
        code=0
        setpriv --reuid games --regid games --clear-groups env -u XDG_RUNTIME_DIR HOME="$T/games" \
            XDG_STATE_HOME="$T/games" "$MORTISE" doctor --url "sqlite:$T/games/locks.db" || code=$?
        kill $!
        wait
        exit $code' host "$@"
}

@test "doctor of an ordinary user shows the host's agent, which agent: is, and whether it serves him" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    setpriv --reuid games --clear-groups unshare --version >out || skip "no user games"
    unshare --mount mount -t tmpfs run /run || skip "no mounts"
    chmod 755 .
    mkdir -m 700 games
    chown games games
    run -0 beside_hosts_agent
    [[ "$output" == *$'\nagent\n  socket               /run/mortise/agent.sock\n  serves               not this user\n'* ]]
    echo "allow user games acquire on games/" >policy
    chmod 600 policy
    run -0 beside_hosts_agent --policy "$T/policy"
    echo "$output"
    [[ "$output" == *$'\nagent\n  socket               /run/mortise/agent.sock\n  answers              yes, version '* ]]
    [[ "$output" == *"sqlite:$T/locks.db: another one, and their locks do not exclude each other"* ]]
}
