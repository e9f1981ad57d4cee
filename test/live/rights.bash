# SPDX-License-Identifier: Apache-2.0
# Uses of the store that $MORTISE_URL names, which a user needs rights for.

is_there_twice() {
    [ "$("$MORTISE" ls "$1" --json | grep -o '"holder":' | wc -l)" -eq 2 ]
}

# takes_each_kind [OPTION...]: of each kind of lock, one is taken, waited for, shown and given back.
takes_each_kind() {
    local kind
    for kind in "" -x -s "--permits 3 --weight 2" "--also y --also z" "$@"; do
        # shellcheck disable=SC2086
        start run $kind "k$kind" -- sh -c 'touch holding; until test -e enough; do sleep 0.05; done'
        until_true test -e holding
        # shellcheck disable=SC2086
        start run $kind "k$kind" -- touch had
        [ "$kind" = -s ] || until_true is_there_twice "k$kind"
        touch enough
        finish "$PID"
        [ "$code" -eq 0 ]
        [ -e had ]
        rm holding enough had
    done
}

# An election, a hold that outlives its process, and what operators do.
elects_and_operates() {
    start elect e -- sh -c 'touch leads; exec sleep 600'
    until_true test -e leads
    "$MORTISE" elect --observe e >seen 3>&- &
    until_true test -s seen
    "$MORTISE" acquire d >token
    "$MORTISE" release d <token
    start_holder r
    "$MORTISE" revoke r
    "$MORTISE" break r --fence "$("$MORTISE" ls r --json | grep -o '"fence": [0-9]*' | tr -dc 0-9)"
}

# passes_suites SUITE...: programs of the build, with their locks there.
passes_suites() {
    local suite
    for suite in "$@"; do
        "$(dirname "$(readlink -f "$MORTISE")")/$suite" "$MORTISE_URL" >"$suite" 2>&1 ||
            { tail "$suite"; false; }
    done
}
