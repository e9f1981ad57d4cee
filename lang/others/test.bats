#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The same program in each language whose compiler or interpreter is there, all of them on one agent
# and one file at the same time: no update is lost.

load ../../test/cli/helper
load ../../test/cli/agent

TIMES=100

# A language that is there, and the command that runs its program.
language() {
    PROGRAM["$1"]="$2"
}

compile() {
    declare -gA PROGRAM=()
    local here=$BATS_TEST_DIRNAME
    language shell "$here/shell/counter.sh"
    if command -v go >/dev/null; then
        GOCACHE=$T/cache GOFLAGS=-mod=mod go build -o "$T/go" "$here/go/counter.go"
        language go "$T/go"
    fi
    if command -v rustc >/dev/null; then
        rustc -O -o "$T/rust" "$here/rust/counter.rs"
        language rust "$T/rust"
    fi
    if command -v javac >/dev/null; then
        javac -d "$T" "$here/java/Counter.java"
        language java "java -cp $T Counter"
    fi
    if command -v ruby >/dev/null; then
        language ruby "ruby $here/ruby/counter.rb"
    fi
}

@test "programs in all languages that are here count together, and lose nothing" {
    compile
    echo "# languages: ${!PROGRAM[*]}" >&3
    start_agent
    declare -A pids=()
    for name in "${!PROGRAM[@]}"; do
        # shellcheck disable=SC2086
        ${PROGRAM[$name]} "$T/agent.sock" "$T/number" $TIMES 3>&- &
        pids[$name]=$!
    done
    for name in "${!pids[@]}"; do
        wait "${pids[$name]}" || { echo "$name ended with $?" >&2; return 1; }
    done
    [ "$(cat "$T/number")" -eq $((TIMES * ${#PROGRAM[@]})) ]
}

@test "a program in each language ends with an error if there is no agent" {
    compile
    for name in "${!PROGRAM[@]}"; do
        # shellcheck disable=SC2086
        run timeout 60 ${PROGRAM[$name]} "$T/none.sock" "$T/number" 1
        [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
    done
    [ ! -e "$T/number" ]
}
