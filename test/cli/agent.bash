# SPDX-License-Identifier: Apache-2.0
# An agent in the background, at $T/agent.sock, and its clients (agent.py).

# On the store $STORE, or a file of the test's own; by the command AGENT_WITHIN, if there is one.
start_agent() {
    rm -f "$T/agent.out"
    "${AGENT_WITHIN[@]}" "$MORTISE" agent --url "${STORE:-sqlite:$T/locks.db}" --socket "$T/agent.sock" "$@" \
        3>&- >"$T/agent.out" 2>&1 &
    AGENT=$!
    until_true grep -q agent.sock "$T/agent.out"
}

# client NAME ARGUMENTS...: a test of agent.py
client() {
    timeout 100 python3 "$BATS_TEST_DIRNAME/agent.py" "$@"
}
