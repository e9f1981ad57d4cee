#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Servers that are away: nobody listens, or somebody listens and never answers. Commands
# end in time then, and say why.
load helper

# hole WAY: sets $port to that of a server that is away in this way; hole.py has them.
hole() {
    local file
    file="$(mktemp "${TMPDIR:-/tmp}/mortise-hole-XXXXXX")"
    python3 "$BATS_TEST_DIRNAME/hole.py" "$1" >"$file" 3>&- &
    HOLE_PIDS="$HOLE_PIDS $!"
    while [ ! -s "$file" ]; do sleep 0.05; done
    port="$(cat "$file")"
    rm -f "$file"
}

setup_file() {
    local port
    export HOLE_PIDS=""
    hole silent
    export HOLE="$port"
    hole full
    export FULL="$port"
    hole ends
    export ENDS="$port"
    hole talks
    export TALKS="$port"
    hole begins
    export BEGINS="$port"
}

teardown_file() {
    kill $HOLE_PIDS
}

# Of each store at these ports; port 1: refused. An attempt may take $CONNECT, ten minutes if that is
# empty: a command that wrongly waits for one is ended by `timed` after a minute.
urls() {
    local port mark url
    [ $# -gt 0 ] || set -- 1 "$HOLE"
    for port; do
        for url in "zk://127.0.0.1:$port?" "redis://127.0.0.1:$port?" "postgresql://u@127.0.0.1:$port/d?" \
            "postgresql://u@127.0.0.1:$port/d?form=advisory&" "mysql://u@127.0.0.1:$port/d?" \
            "redlock:redis://127.0.0.1:$port?"; do
            echo "${url}connect=${CONNECT:-600s}"
        done
    done
}

# away LEAST CODE ARGUMENTS...: each server's command ends with CODE by itself, after LEAST
# milliseconds or later, all at once.
away() {
    local least="$1" code="$2" url pids=()
    shift 2
    for url in $(urls ${AT:-} | sed "${SED:-}"); do
        timed run --url "$url" "$@" >"$T/out.${#pids[@]}" 2>&1 3>&- &
        pids+=($!)
    done
    for url in "${!pids[@]}"; do
        wait "${pids[$url]}"
        ended "$T/out.$url" "$least" "$code"
    done
}

# Its last line is the exit code and the milliseconds: 124 if it did not end by itself.
timed() {
    local before after code=0
    before=$(date +%s%N)
    timeout 60 "$MORTISE" "$@" || code=$?
    after=$(date +%s%N)
    echo "$code $(((after - before) / 1000000)) $*"
}

# ended FILE LEAST CODE: what `timed` wrote says that the command ended so; $took is how long it took.
ended() {
    local got
    cat "$1"
    read -r got took _ < <(tail -n 1 "$1")
    [ "$got" -eq "$3" ]
    [ "$took" -ge "$2" ]
}

@test "f9 a wait that is over ends, and closing waits for no server that was never reached" {
    away 300 69 -w 300ms x -- true
}

@test "f9 a signal ends a wait for a server that is away" {
    local url
    for url in $(urls); do
        start run --url "$url" x -- true
        sleep 0.3
        kill -TERM "$PID"
        finish "$PID"
        [ "$code" -eq 143 ]
    done
}

@test "f9 give_up: an acquire ends when no server has answered for so long, and says where it asked" {
    away 400 69 --give-up 400ms x -- true
    grep -L 'no answer from the store' "$T"/out.* | while read -r quiet; do
        echo "does not say that nobody answered: $(cat "$quiet")"
        false
    done
    MORTISE_GIVE_UP=300ms away 300 69 x -- true
    AT=$HOLE away 300 69 --give-up 300ms -n x -- true
}

@test "u1 u2 u4 a wait for a store that is away says so, with the reason, and a signal ends it" {
    local url out pids=()
    for url in $(urls 1 "$HOLE" "$FULL" "$ENDS" "$TALKS"); do
        "$MORTISE" run -v --url "$url" job -- true 2>"said.${#pids[@]}" 3>&- &
        pids+=($!)
    done
    for url in "${!pids[@]}"; do
        until_true grep -q '^mortise: job: no answer from the store (.*); trying again$' "said.$url"
    done
    kill "${pids[@]}"
    all_end_with 143 "${pids[@]}"
    for url in "${!pids[@]}"; do
        out="$(cat "said.$url")"
        echo "$url: $out"
        [ "$(wc -l <"said.$url")" -eq 1 ] # and not that somebody holds it, or that it is back
    done
    for url in 0 1 2 3 4 5; do # of port 1
        grep -E "Connection refused|\(111\)" "said.$url"
    done
    [ -z "$(grep -L "127.0.0.1" said.*)" ]
}

# A command that waits says so. The first of several attempts that does not, because a refusal may
# take longer than that on a busy machine.
@test "u3 without waiting a refusal decides, whatever it is" {
    local way try
    for way in 1 "$ENDS" "$TALKS"; do
        for try in 1 2 3 4 5 6; do
            AT=$way away 0 69 -n job -- true
            [ -z "$(grep -L 'no answer from the store while acquiring: ' out.*)" ]
            grep -q "trying again" out.* || break
        done
        run -1 grep "trying again" out.*
    done
}

# each_ended LEAST REASON: each of the commands of pids, whose output is in end.N, ended by itself,
# not before LEAST milliseconds, with 69 and the reason.
each_ended() {
    local said
    for said in "${!pids[@]}"; do
        wait "${pids[$said]}"
        ended "$T/end.$said" "$1" 69
        grep -qE "^mortise: .*$2" "$T/end.$said"
    done
}

begin() {
    MORTISE_URL="$1" timed "${@:2}" >"$T/end.${#pids[@]}" 2>&1 3>&- &
    pids+=($!)
}

# all_end URL...: seven commands on each of them that do not wait, or look, each on all at once: each
# says that the store is away, and names its address.
all_end() {
    local url command pids
    for command in "run -n x -- true" "acquire -n x" "elect -n x -- true" "try x" "ls x" doctor init; do
        pids=()
        for url in "$@"; do
            [[ "$url" =~ form=|redlock ]] && [[ "$command" == elect* ]] && continue # they have none
            [[ "$url" != *sql:* || "$url" == *form=* ]] && [[ "$command" == init ]] && continue # nor this
            begin "$url" $command
        done
        each_ended 0 "(127.0.0.1|slow)"
    done
}

@test "u3 seven commands on every store, away in six ways: each ends at connect= or at a refusal" {
    all_end $(urls 1 "$ENDS" "$TALKS")
    all_end $(CONNECT=300ms urls "$HOLE" "$FULL" "$BEGINS")
}

# The first of several attempts in less than the five seconds that are the default: the machine may be
# busy.
@test "u3 a look at a store whose server is silent ends at connect=" {
    local url try
    for url in $(CONNECT=300ms urls "$HOLE"); do
        for try in 1 2 3 4 5; do
            timed ls --url "$url" x >out 2>&1
            ended out 300 69
            [ "$took" -ge 4500 ] || break
        done
        [ "$took" -lt 4500 ]
    done
}

@test "u1 u3 a name server that does not answer delays nothing beyond the time that was given" {
    [ -n "$SLOW_NAMES" ] || skip "built with a sanitizer: nothing can be preloaded"
    local url pids=()
    export LD_PRELOAD="$SLOW_NAMES"
    all_end $(CONNECT=300ms urls 1 | sed 's/127.0.0.1/slow/g')
    for url in $(urls 1 | sed 's/127.0.0.1/slow/g'); do
        "$MORTISE" run --url "$url" job -- true 2>"said.${#pids[@]}" 3>&- &
        pids+=($!)
    done
    for url in "${!pids[@]}"; do
        until_true grep -q '^mortise: job: no answer from the store (.*slow.*); trying again$' "said.$url"
    done
    kill "${pids[@]}"
    all_end_with 143 "${pids[@]}"
    AT=1 SED=s/127.0.0.1/slow/g away 300 69 -w 300ms x -- true
}

@test "u3 u4 each command of an operator ends when every server has refused, with the reason in words" {
    local url command pids
    for command in "ls x" "status x" "break x --fence 65536" "revoke x --fence 65536" doctor \
        "top --once" "elect --once x" init; do
        pids=()
        for url in $(urls 1); do
            [[ "$url" == redlock* || "$url" == *form=* ]] && [[ "$command" != ls* ]] && continue
            [[ "$command" == init && "$url" != *sql:* ]] && continue # the others have no schema
            begin "$url" $command
        done
        each_ended 0 "127.0.0.1.*Connection refused"
    done
}

@test "u3 several servers that refuse end an operator's call, and it is not the first that decides" {
    local url
    for url in zk://127.0.0.1:1,127.0.0.1:2 postgresql://u@127.0.0.1:1,127.0.0.1:2/d; do
        timed ls --url "$url?connect=600s" x >out 2>&1
        ended out 0 69
        grep "Connection refused" out
    done
    timed ls --url "zk://127.0.0.1:1,127.0.0.1:$HOLE?connect=1500ms" x >out 2>&1
    ended out 1500 69
}

@test "u3 mortise init waits for a name server no longer than connect=" {
    [ -n "$SLOW_NAMES" ] || skip "built with a sanitizer: nothing can be preloaded"
    local url
    for url in "postgresql://u@slow:1/d?connect=500ms" "mysql://u@slow:1/d?connect=500ms"; do
        LD_PRELOAD="$SLOW_NAMES" timed init --url "$url" >out 2>&1
        ended out 500 69
        grep "slow.*no name server has answered" out
    done
}

@test "u3 elect --once and break say why the store is not asked, and nothing that is not known" {
    for _ in 1 2 3 4 5 6; do # the machine may be busy: see above
        run -69 "$MORTISE" elect --url redis://127.0.0.1:1 --once x # and does not try again
        [ "${#lines[@]}" -ne 1 ] || break
    done
    [ "${#lines[@]}" -eq 1 ]
    [[ "${lines[0]}" == "mortise: x: Redis: redis://127.0.0.1:1/0: Connection refused" ]]
    fails_with 69 "$MORTISE" break --url redis://127.0.0.1:1 x --fence 5
    [[ "${lines[0]}" == *"x: Redis: redis://127.0.0.1:1/0: Connection refused" ]]
}

@test "f9 give_up: in the store's address, and bounded" {
    fails_with 69 "$MORTISE" run --url "redis://127.0.0.1:1?give_up=200ms" x -- true
    [[ "${lines[0]}" == *"redis://127.0.0.1:1"* ]]
    fails_with 69 "$MORTISE" elect --give-up 200ms --url "zk://127.0.0.1:$HOLE" x -- true
    for bad in 99ms 3601s 0s 1 -1s x ""; do
        fails_with 78 "$MORTISE" run --url "redis://127.0.0.1:1?give_up=$bad" x -- true
        [[ "${lines[0]}" == *"give_up=$bad is not a duration from 100ms to 3600s"* ]]
    done
    for bad in 0 0.05 2h x; do
        fails_with 64 "$MORTISE" run --give-up "$bad" x -- true
    done
}

@test "h5 f8 how to wait and to repeat is said in the address of every store, and bounded" {
    local url bad mark
    "$MORTISE" run --url "sqlite:$T/locks?recheck=5s&retry=1s..1s&attempts=1" x -- true
    for url in $(urls) "sqlite:$T/locks"; do
        mark="?"
        [[ "$url" == *"?"* ]] && mark="&"
        for bad in recheck=49ms retry=10ms attempts=0; do
            fails_with 78 "$MORTISE" run --url "$url$mark$bad" x -- true
            [[ "${lines[0]}" == *"$bad is not "* ]]
        done
    done
}

# attempts URL NUMBER: a command connects until it has done so fifteen times to a port (PORT in the URL)
# that never answers; into the file attempts.NUMBER how long that took, in milliseconds.
attempts() {
    local file="attempts.$2" command silent
    python3 "$BATS_TEST_DIRNAME/hole.py" 15 >"$file" 3>&- &
    silent=$!
    until_true test -s "$file"
    "$MORTISE" run --url "${1/PORT/$(head -n 1 "$file")}" x -- true 2>/dev/null &
    command=$!
    until_true eval '[ "$(wc -l <"$file")" -eq 2 ]'
    kill "$command" "$silent"
}

# With the five seconds that are the default the attempts would take longer than a minute.
@test "f9 connect= bounds an attempt at an address that never answers, on every store" {
    local url number=0 pids=()
    for url in "zk://127.0.0.1:PORT?session=60s&" "redis://127.0.0.1:PORT?session=60s&" \
        "postgresql://u@127.0.0.1:PORT/d?" "postgresql://u@127.0.0.1:PORT/d?form=advisory&" \
        "mysql://u@127.0.0.1:PORT/d?" "redlock:redis://127.0.0.1:PORT?session=60s&"; do
        attempts "${url}connect=100ms&retry=1ms..10ms" "$number" 3>&- &
        pids+=($!)
        number=$((number + 1))
    done
    for number in "${!pids[@]}"; do
        wait "${pids[$number]}"
        echo "store $number connected 15 times in $(tail -n 1 "attempts.$number") ms"
        [ "$(tail -n 1 "attempts.$number")" -ge 1000 ]
    done
}
