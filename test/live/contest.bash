# SPDX-License-Identifier: Apache-2.0
# Holders with a witness: each keeps a file locked by the kernel, which shows whether two ever hold
# at the same time.

WITNESS='exec 9>>witness; flock -n 9 || echo overlap >>overlaps'

# turns NAME N: holders one after another.
turns() {
    local i
    for ((i = 0; i < $2; i++)); do
        "$MORTISE" run -w 60s "$1" -- sh -c "$WITNESS; sleep 0.05; echo turn >>made" 3>&- || true
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

# holds_alone NAME [OPTION...]: a holder, until it is ended: $HOLDER.
holds_alone() {
    rm -f holding
    start run -w 60s "${@:2}" "$1" -- sh -c "$WITNESS; touch holding; exec sleep 600"
    HOLDER=$PID
    until_true test -e holding
}

# waits_behind NAME: a waiter, which leaves the file served: $NEXT.
waits_behind() {
    rm -f served
    start run -w 300s "$1" -- sh -c "$WITNESS; touch served"
    NEXT=$PID
}

next_is_alone() {
    finish "$NEXT"
    [ "$code" -eq 0 ]
    [ -e served ]
    [ ! -e overlaps ]
}

# is_lost: the holder was told, and has ended.
is_lost() {
    finish "$HOLDER"
    [ "$code" -eq 76 ]
}

let_go() {
    kill "$HOLDER"
    finish "$HOLDER"
}
