# SPDX-License-Identifier: Apache-2.0
# Servers of NATS, as an operator sees them: $URL is theirs.

# operator WORD...: what nats_client.py does.
operator() {
    python3 "$BATS_TEST_DIRNAME/nats_client.py" "$URL" "$@"
}

# operator_as USER:PASSWORD WORD...
operator_as() {
    URL="${URL/\/\//\/\/$1@}" operator "${@:2}"
}

# numbers STREAM [SUBJECT]: the numbers of the messages there.
numbers() {
    operator messages "$@" | cut -d ' ' -f 1
}

# deletes STREAM [SUBJECT]: all messages there, of which some may be replaced meanwhile.
deletes() {
    local number
    for number in $(numbers "$@"); do
        operator delete "$1" "$number" || true
    done
}

# between KIND N: what stands between a client and the server (between_nats.py); $BETWEEN is its URL.
between() {
    rm -f between was_cut
    python3 "$BATS_TEST_DIRNAME/between_nats.py" "$URL" "$@" >between 3>&- &
    until_true test -s between
    BETWEEN="nats://127.0.0.1:$(cat between)"
}
