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
    rm -f between was_cut go went
    python3 "$BATS_TEST_DIRNAME/between_nats.py" "$URL" "$@" >between 3>&- &
    until_true test -s between
    BETWEEN="nats://127.0.0.1:$(cat between)"
}

# turns NAME N: holders one after another, and each finds the file's kernel lock free.
turns() {
    local i
    for ((i = 0; i < $2; i++)); do
        "$MORTISE" run -w 60s "$1" -- sh -c 'exec 9>>witness; flock -n 9 || echo overlap >>overlaps
            sleep 0.05; echo turn >>made' 3>&- || true
    done
}

# contest CLIENTS N COMMAND...: so many clients take N turns each while the command runs, and never
# two at once.
contest() {
    local contenders=() i
    for ((i = 0; i < $1; i++)); do
        turns contest "$2" &
        contenders+=($!)
    done
    until_true test -s made
    "${@:3}"
    for i in "${contenders[@]}"; do
        wait "$i" || true
    done
    [ ! -e overlaps ]
}

# A command that says with a kernel lock whether another has it at the same time.
WITNESS='exec 9>>witness; flock -n 9 || echo overlap >>overlaps; touch "$0"; exec sleep 600'

# holds_alone NAME: a holder with that witness, until it is ended: $PID.
holds_alone() {
    rm -f first
    start run -w 60s "$1" -- sh -c "$WITNESS" first
    until_true test -e first
}

# next_is_alone NAME: a waiter for the lock, which must find the kernel lock free: $PID.
next_is_alone() {
    start run -w 60s "$1" -- sh -c 'exec 9>>witness; flock -n 9 || echo overlap >>overlaps
        touch next'
    until_true waiters "$1" 1
}
