# SPDX-License-Identifier: Apache-2.0
# Helpers that the tests of the command share. Each test has a directory of its own, with the
# default store in it, and ends every process it started.

bats_require_minimum_version 1.5.0
unset "${!PG@}" "${!MYSQL_@}" REDISCLI_AUTH # of other servers

setup() {
    MORTISE="${MORTISE:-${MORTISE_BIN:?set MORTISE to the path of the command}}"
    T="$(mktemp -d "${TMPDIR:-/tmp}/mortise-cli-XXXXXX")"
    export T MORTISE
    export XDG_STATE_HOME="$T/state" XDG_CONFIG_HOME="$T/config" XDG_CONFIG_DIRS="$T/etc"
    umask 022 # files of settings that others may write are refused
    unset MORTISE_URL MORTISE_HELD MORTISE_NAME MORTISE_FENCE MORTISE_LOCK_FD
    unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY # of who asks serve
    cd "$T"
}

teardown() {
    clean_up
}

clean_up() {
    local job
    for job in $(jobs -p); do kill -KILL "$job" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$T"
}

# Runs mortise in the background, apart from the test runner's own descriptors.
# Job control is off in tests, and with it INT and QUIT are ignored by what is put
# into the background, as HUP is under nohup; so that they arrive, they are set back first.
start() {
    env --default-signal=HUP,INT,QUIT "$MORTISE" "$@" 3>&- &
    PID=$!
    # With -F it is the command before long.
    [ "$2" = -F ] || until_true is_mortise_or_gone "$PID"
}

is_mortise_or_gone() {
    [ "/proc/$1/exe" -ef "$MORTISE" ] || is_gone "$1"
}

# until_true COMMAND...: waits for it to succeed, a minute at most.
until_true() {
    local end=$((SECONDS + 60))
    while ((SECONDS < end)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.02
    done
    echo "never became true: $*" >&2
    return 1
}

# finish PID: waits for a background process, puts its exit code into $code. It fails if the process
# does not end by itself: a code alone would be that of the kill.
finish() {
    local ended=0
    until_true is_gone "$1" || { kill -KILL "$1"; ended=1; }
    code=0
    wait "$1" || code=$?
    return "$ended"
}

# all_end_with CODE PID...: waits for each, which has this exit code.
all_end_with() {
    local expected="$1" pid
    for pid in "${@:2}"; do
        finish "$pid"
        [ "$code" -eq "$expected" ]
    done
}

# A holder of NAME that stays until it is ended, and has begun.
start_holder() {
    rm -f "$T/holding"
    start run "$1" -- sh -c 'touch "$T/holding"; exec sleep 600'
    HOLDER=$PID
    until_true test -e "$T/holding"
}

is_gone() {
    ! kill -0 "$1"
}

# waiters NAME N: whether N are in the queue behind the holder.
waiters() {
    local rows
    rows=$("$MORTISE" ls "$1" --json) || return
    [ "$(grep -o '"holder": false' <<<"$rows" | wc -l)" -eq "$2" ]
}

# takes_and_leaves NAME: who has it is shown, and keeps others out, until he ends.
takes_and_leaves() {
    start_holder "$1"
    run -75 "$MORTISE" run -n "$1" true
    "$MORTISE" ls "$1" | grep holds
    kill "$HOLDER"
    finish "$HOLDER"
    is_free "$1"
}

# costs JSON N N N N: the requests and round trips of an acquire alone, and of a release, as bench
# has them.
costs() {
    python3 -c 'import json, sys
f = json.loads(sys.argv[1])["alone"]
found = [f[a + "_" + b] for a in ("acquire", "release") for b in ("requests", "round_trips")]
assert found == [int(n) for n in sys.argv[2:]], found' "$@"
}

# Fifty of them, of what $MORTISE_URL names, and ten that already use it: one that comes too early is
# told so (78), and the others count one by one.
inits_at_once() {
    local i inits=() users=() ran=0
    echo 0 >counted
    for i in $(seq 50); do
        "$MORTISE" init 3>&- &
        inits+=($!)
        ((i % 5)) && continue
        "$MORTISE" run crowd -- sh -c 'n=$(cat counted); sleep 0.01; echo $((n + 1)) >counted' 3>&- &
        users+=($!)
    done
    for i in "${inits[@]}"; do wait "$i"; done
    for i in "${users[@]}"; do
        finish "$i"
        [ "$code" -eq 0 ] || [ "$code" -eq 78 ]
        ran=$((ran + !code))
    done
    [ "$(cat counted)" -eq "$ran" ]
    echo "# $ran of 10 came late enough" >&3
}

is_free() {
    "$MORTISE" run -n "$1" true
}

# The status and the last line of error output, which is the only one.
fails_with() {
    local expected="$1"
    shift
    run -"$expected" "$@"
    echo "status $status, expected $expected: $output"
    [ "${#lines[@]}" -eq 1 ]
    [[ "${lines[0]}" == "mortise: "* ]]
}

# as_service VARIABLE=VALUE... ARGUMENTS: mortise as a user without a passwd entry, and nothing else
# in its environment.
as_service() {
    setpriv --reuid 54321 --regid 54321 --clear-groups env -i PATH="$PATH" "$@"
}
