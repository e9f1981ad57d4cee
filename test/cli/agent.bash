# SPDX-License-Identifier: Apache-2.0
# An agent in the background, at $T/agent.sock, and its clients (agent.py, agent_port.py).

AGENT_CLIENTS="${BASH_SOURCE[0]%/*}"

# On the store $STORE, or a file of the test's own; by the command AGENT_WITHIN, if there is one.
start_agent() {
    rm -f "$T/agent.out"
    "${AGENT_WITHIN[@]}" "$MORTISE" agent --url "${STORE:-sqlite:$T/locks.db}" --socket "$T/agent.sock" "$@" \
        3>&- >"$T/agent.out" 2>&1 &
    AGENT=$!
    until_true grep -q agent.sock "$T/agent.out"
}

# With the policy of its input; clients reach it by $MORTISE_URL.
start_with_policy() {
    cat >"$T/policy"
    chmod 644 "$T/policy"
    chmod 755 "$T"
    start_agent --policy "$T/policy"
    export MORTISE_URL="agent://$T/agent.sock"
}

needs_users() {
    local user
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    for user in www-data games backup daemon sync nobody; do
        getent passwd "$user" >/dev/null || skip "no user $user"
    done
}

# client NAME ARGUMENTS...: a test of agent.py
client() {
    timeout 100 python3 "$AGENT_CLIENTS/agent.py" "$@"
}

# port NAME ARGUMENTS...: a test of agent_port.py
port() {
    timeout 100 python3 "$AGENT_CLIENTS/agent_port.py" "$@"
}
