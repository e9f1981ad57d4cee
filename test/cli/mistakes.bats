#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Mistakes of whoever types: each is answered by one line that names what was typed and what would be
# right.
load helper

# says TEXT CODE ARGUMENTS...: ends with this code, and its one line has the text.
says() {
    local text="$1"
    fails_with "$2" "$MORTISE" "${@:3}"
    [ "${#lines[@]}" -eq 1 ]
    [[ "${lines[0]}" == *"$text"* ]]
}

@test "u25 a mistyped subcommand or option is answered by the nearest one" {
    says 'unknown subcommand "statsu": did you mean "status"? see mortise --help' 64 statsu
    says 'unknown subcommand "acqiure": did you mean "acquire"?' 64 acqiure x
    says 'unknown subcommand "zzz"; see mortise --help' 64 zzz
    says 'unknown subcommand "zzz"; see' 64 help zzz
    says 'option --tiemout is unknown: did you mean --timeout? see mortise run --help' 64 run --tiemout 5 x -- true
    says 'option --jsno is unknown: did you mean --json? see mortise ls --help' 64 ls --jsno
    says 'option --foo=3 is unknown; see mortise run --help' 64 run --foo=3 x
    says 'option -q is unknown; see mortise ls --help' 64 ls -q
    says 'option --verbose is unknown; see mortise --help' 64 --verbose
    says "$(printf 'unknown subcommand "%064d"' 0)" 64 "$(printf '%0500d' 0)"
}

@test "u25 -h, help and version are what they are elsewhere" {
    "$MORTISE" run --help >expected
    "$MORTISE" run -h | cmp - expected
    "$MORTISE" help run | cmp - expected
    "$MORTISE" --help >expected
    "$MORTISE" -h | cmp - expected
    "$MORTISE" help | cmp - expected
    "$MORTISE" --version >expected
    "$MORTISE" version | cmp - expected
}

@test "u28 an unknown key of a settings file is named" {
    echo 'lable = x' >settings
    says 'settings:1: the line names no option: "lable" is unknown; did you mean "label"?' 78 \
        --config settings run x -- true
    echo 'zzzz = x' >settings
    says 'settings:1: the line names no option: "zzzz" is unknown' 78 --config settings run x -- true
}

@test "u29 break and revoke name the holder that has another fence" {
    says 'a: nobody holds it' 1 break a --fence 5
    says 'a: nobody holds it' 1 revoke a
    start_holder a
    fence=$("$MORTISE" ls a --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["fence"])')
    says "a: nobody has fence 5; the holder has $fence" 1 break a --fence 5
    "$MORTISE" break a --fence "$fence"
}

@test "u43 u44 options that contradict each other, and options behind the name" {
    says '-s and -x are of a read/write lock, and --permits is of a semaphore' 64 run -s --permits 3 x -- true
    says '-s and -x are of a read/write lock, and --permits is of a semaphore' 64 run --permits 3 -x x -- true
    MORTISE_PERMITS=3 "$MORTISE" run -s x -- true
    "$MORTISE" run -s -x y -- true
    says '"-w" stands behind the name: options stand before it' 64 run x -w 10 true
    run -127 "$MORTISE" run x -- -w
    "$MORTISE" run x -c true
}

@test "u31 a port that is no port is told from an address that is none" {
    says 'the port of localhost is not from 1 to 65535' 78 --url redis://localhost:99999 ls
    says 'the port of ::1 is not from 1 to 65535' 78 --url 'redis://[::1]:4294967297' ls
    says 'the port of b is not from 1 to 65535' 78 --url zk://a:1,b:0/x ls
    says 'host 1 in a redis: URI is not of the form host:port' 78 --url redis://localhost:1x ls
    says 'host 2 in a zk: URI is not of the form host:port' 78 --url zk://a:1,b:/x ls
}

@test "the error of a file that cannot be the store says what to do" {
    umask 077
    touch plain && mkdir link.dir && ln -s plain link && printf 'no database, but long enough' >text
    chmod 644 plain
    local rows=(
        'link|name the file itself'
        'link.dir|name a file of your own'
        'plain|make its mode 0600'
        'text|name a file that does not exist yet'
    )
    for row in "${rows[@]}"; do
        run "$MORTISE" --url "sqlite:$T/${row%|*}" ls
        [ "$status" -ne 0 ]
        [[ "$output" == *"${row%|*}"*"${row#*|}"* ]]
    done
    run "$MORTISE" --url "sqlite:$T/missing/locks.db" ls
    [[ "$output" == *"missing: "*"make the directory first"* ]]
    run "$MORTISE" --url nothing:x ls
    [ "$status" -eq 78 ]
    [[ "$output" == *'known are '*'sqlite:'* ]]
}
