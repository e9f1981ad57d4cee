#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Bad input: one line that names it, the right exit code, and nothing created.
load helper

nothing_created() {
    [ "$(ls -A "$T")" = "" ]
}

@test "names: empty, too long, not UTF-8, control bytes: 64" {
    fails_with 64 "$MORTISE" run '' -- true
    fails_with 64 "$MORTISE" run "$(printf 'a%.0s' $(seq 256))" -- true
    [[ "$output" == *255* ]]
    fails_with 64 "$MORTISE" run $'a\xffb' -- true
    [[ "$output" == *'\xff'* ]]
    fails_with 64 "$MORTISE" run $'a\nb' -- true
    [[ "$output" == *'\x0a'* ]]
    fails_with 64 "$MORTISE" run $'a\x1b[31mb' -- true
    fails_with 64 "$MORTISE" run $'\xc2\x85' -- true
    fails_with 64 "$MORTISE" run $'\xed\xa0\x80' -- true
    fails_with 64 "$MORTISE" ls $'a\tb'
    fails_with 64 "$MORTISE" ls ''
    nothing_created
}

@test "names: the longest, and any other UTF-8" {
    run "$MORTISE" run "$(printf 'a%.0s' $(seq 255))" -- true
    [ "$status" -eq 0 ]
    run "$MORTISE" run 'schlüssel/鍵 %s ../..' -- sh -c 'echo "$MORTISE_NAME"'
    [ "$output" = 'schlüssel/鍵 %s ../..' ]
    run "$MORTISE" run -- -name -- true
    [ "$status" -eq 0 ]
}

@test "missing: subcommand, name, command, argument: 64" {
    fails_with 64 "$MORTISE"
    fails_with 64 "$MORTISE" run
    fails_with 64 "$MORTISE" run a
    fails_with 64 "$MORTISE" run a --
    fails_with 64 "$MORTISE" run -w
    fails_with 64 "$MORTISE" run --timeout
    fails_with 64 "$MORTISE" run a -c
    fails_with 64 "$MORTISE" --url
    nothing_created
}

@test "unknown: subcommand, option: 64, and named" {
    fails_with 64 "$MORTISE" lock
    [[ "$output" == *'"lock"'* ]]
    fails_with 64 "$MORTISE" $'l\x1bck'
    [[ "$output" == *'l\x1bck'* ]]
    fails_with 64 "$MORTISE" --nope
    [[ "$output" == *--nope* ]]
    fails_with 64 "$MORTISE" run -q a -- true
    [[ "$output" == *-q* ]]
    fails_with 64 "$MORTISE" run --verbose=3 a -- true
    [[ "$output" == *--verbose=3* ]]
    fails_with 64 "$MORTISE" ls --nope
    fails_with 64 "$MORTISE" demo --nope
    nothing_created
}

@test "options behind NAME belong to the command if there is one" {
    run -0 "$MORTISE" try a -s
    "$MORTISE" acquire a -n --token-file token 3>&-
    run -0 "$MORTISE" renew a --token-file token
    run -0 "$MORTISE" release a --token-file token
    run -0 "$MORTISE" bench a --seconds 0.01
    run -0 "$MORTISE" run a echo -n said
    [ "$output" = said ]
    run -0 "$MORTISE" run a "$MORTISE" check --fence-file fence echo -n said
    [ "$output" = said ]
}

@test "too many operands: 64" {
    fails_with 64 "$MORTISE" run -c 'true' a -- true
    fails_with 64 "$MORTISE" run a -c true more
    fails_with 64 "$MORTISE" ls a b
    fails_with 64 "$MORTISE" demo a
    nothing_created
}

@test "texts that are no durations: 64" {
    for bad in '' x -1 1x 1m30 30s1m 1e3 inf nan 0x10 ' 1' '1 ' . 99999999999999999999 2000000h 5w 1h2d; do
        fails_with 64 "$MORTISE" run -w "$bad" a -- true
    done
    fails_with 64 "$MORTISE" run --grace soon a -- true
    nothing_created
}

@test "durations with units, also days" {
    for good in 10 0.5 500ms 1m30s 1h 2d 1d12h; do
        "$MORTISE" run -w "$good" a -- true
    done
}

@test "numbers that are no exit codes: 64" {
    for bad in '' x -1 256 1.5 99999999999999999999; do
        fails_with 64 "$MORTISE" run -n -E "$bad" a -- true
    done
    nothing_created
}

@test "URIs: unknown scheme, malformed, empty, unknown parameter: 78" {
    for bad in nosuch://x nothing ':' 'sqlite:x?bogus=1' 'sqlite:x?namespace' \
        $'sqlite:a\nb' 'sqlite:a?namespace=%zz'; do
        fails_with 78 "$MORTISE" --url "$bad" run a -- true
        fails_with 78 "$MORTISE" --url "$bad" ls
    done
    fails_with 78 "$MORTISE" --url '' run a -- true
    fails_with 78 "$MORTISE" --url nosuch://x demo
    [[ "$output" == *nosuch* ]]
    MORTISE_URL=nosuch:x fails_with 78 "$MORTISE" run a -- true
    [[ "$output" == *MORTISE_URL* ]]
    nothing_created
}

@test "a directory in place of the store, or none to put it in: an error, not a lock" {
    mkdir dir
    run "$MORTISE" --url "sqlite://$T/dir" run a -- touch ran
    [ "$status" -eq 78 ] || [ "$status" -eq 69 ] || [ "$status" -eq 77 ]
    run "$MORTISE" --url "sqlite://$T/none/locks.db" run a -- touch ran
    [ "$status" -eq 78 ] || [ "$status" -eq 69 ] || [ "$status" -eq 77 ]
    [ ! -e ran ]
}

@test "--help and --version: standard output, 0" {
    for words in --help 'run --help' 'try --help' 'check --help' 'status --help' 'ls --help' 'revoke --help' 'break --help' \
        'demo --help' 'elect --help' 'top --help' 'serve --help' 'bench --help' 'doctor --help' 'completion --help'; do
        run --separate-stderr "$MORTISE" $words
        [ "$status" -eq 0 ]
        [ -z "$stderr" ]
        [[ "${output,,}" == usage:* ]]
    done
    run "$MORTISE" --version
    [ "$status" -eq 0 ]
    [[ "$output" == "mortise "[0-9]*.[0-9]*.[0-9]* ]]
    nothing_created
}

@test "a full disk under standard output is an error" {
    run "$MORTISE" --version >/dev/full
    sh -c '"$MORTISE" --version > /dev/full' 2>err && return 1
    sh -c '"$MORTISE" run --help > /dev/full' 2>err && return 1
    true
}

@test "init refuses an empty URL, as other subcommands do" {
    run -78 "$MORTISE" init --url ""
    [ "$output" = "mortise: --url is empty" ]
}

@test "u46 init says so where a store needs nothing before its first use" {
    run -0 "$MORTISE" init
    [ "$output" = "this store needs nothing before its first use" ]
    run -0 "$MORTISE" init --print-sql
    [ -z "$output" ]
    sh -c '"$MORTISE" init > /dev/full' 2>err && return 1
    true
}
