#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Stores in modules: what is said where one is missing, and what is not loaded.
load helper

URL=postgresql://127.0.0.1:1/none # nobody listens
MY_URL=mysql://127.0.0.1:1/none

# module [FILE [STORE]]
module() {
    local file
    file="$(dirname "$(readlink -f "$MORTISE")")/${1:-mortise-postgres.so}"
    [ -e "$file" ] || skip "built without the ${2:-PostgreSQL} store"
    echo "$file"
}

# is_missed STORE FILE URL OTHER_URL
is_missed() {
    mkdir empty
    MORTISE_MODULES="$T/empty" fails_with 78 "$MORTISE" run --url "$3" a true
    [[ "${lines[0]}" == *"this installation has no $1 store: $T/empty/$2 is missing" ]]
    MORTISE_MODULES="$T/empty" fails_with 78 "$MORTISE" init --url "$4"
    [[ "${lines[0]}" == *"$2 is missing" ]]
}

@test "an installation without the module says what is missing" {
    is_missed PostgreSQL mortise-postgres.so "$URL" postgres://x/y
}

@test "an installation without MariaDB's module says what is missing" {
    is_missed MariaDB mortise-mariadb.so "$MY_URL" mariadb://x/y
}

@test "an installation without a module works with its other stores" {
    mkdir empty
    MORTISE_MODULES="$T/empty" "$MORTISE" run a true
}

@test "a command on another store loads nothing of the module" {
    "$MORTISE" run a sh -c 'cat /proc/$PPID/maps >maps'
    grep -q libc.so maps
    run -1 grep -E 'libpq|libmariadb|libmysql|mortise-postgres|mortise-mariadb' maps
}

# is_no_module STORE FILE URL LIBRARY
is_no_module() {
    mkdir mine
    echo text >"mine/$2"
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$3" a true
    [[ "${lines[0]}" == *"$1 store cannot be loaded"* ]]
    local other
    other=$(ldd "$(module "$2")" | sed -n "s/.*$4.so.* => \\(.*\\) (.*/\\1/p")
    cp "$other" "mine/$2"
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$3" a true
    [[ "${lines[0]}" == *"was not built for this version"* ]]
}

@test "a file that is no module is not loaded" {
    module
    is_no_module PostgreSQL mortise-postgres.so "$URL" libpq
}

@test "a file that is no module for MariaDB is not loaded" {
    module mortise-mariadb.so MariaDB
    is_no_module MariaDB mortise-mariadb.so "$MY_URL" libmariadb
}

@test "a module that others can write to is not loaded" {
    mkdir mine
    cp "$(module)" mine/
    chmod 777 mine
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$URL" a true
    [[ "${lines[0]}" == *"mortise-postgres.so is not loaded: others"* ]]
    chmod 755 mine
    chmod 666 mine/mortise-postgres.so
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$URL" a true
}

@test "a module below a directory that others can write to is not loaded, by whatever link" {
    mkdir -p open/mine
    cp "$(module)" open/mine/
    MORTISE_MODULES="$T/open/mine" fails_with 69 "$MORTISE" init --url "$URL"
    ln -s open/mine linked
    MORTISE_MODULES="$T/linked" fails_with 69 "$MORTISE" init --url "$URL"
    chmod 777 open
    MORTISE_MODULES="$T/open/mine" fails_with 78 "$MORTISE" init --url "$URL"
    [[ "${lines[0]}" == *"mortise-postgres.so is not loaded: others"* ]]
    MORTISE_MODULES="$T/linked" fails_with 78 "$MORTISE" init --url "$URL"
    chmod 1777 open
    MORTISE_MODULES="$T/open/mine" fails_with 69 "$MORTISE" init --url "$URL"
}

@test "the environment chooses no code for a set-user-ID program" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    run nm "$MORTISE"
    [[ "$output" != *__asan_init* ]] || skip "the sanitizer refuses to run with more rights"
    mkdir mine
    chmod 755 "$T"
    cp "$(module)" mine/
    cp "$MORTISE" raised
    MORTISE_MODULES="$T/mine" fails_with 69 ./raised init --url "$URL"
    chown nobody raised
    chmod 4755 raised
    MORTISE_MODULES="$T/mine" fails_with 78 ./raised init --url "$URL"
    cp mine/mortise-postgres.so .
    fails_with 78 ./raised init --url "$URL"
    [[ "${lines[0]}" != *"$T"* && "${lines[0]}" == *"more rights than its user"* ]]
}

@test "the environment chooses no store and no file for a set-user-ID program" {
    [ "$(id -u)" -eq 0 ] || skip "needs root"
    run nm "$MORTISE"
    [[ "$output" != *__asan_init* ]] || skip "the sanitizer refuses to run with more rights"
    chmod 755 "$T"
    cp "$MORTISE" raised
    mkdir home
    chown nobody raised home
    MORTISE_URL="sqlite://$T/home/locks.db" setpriv --reuid nobody --clear-groups ./raised run a true
    [ -e home/locks.db ]
    rm -r home/*
    chmod 4755 raised
    # The other user's own rights would do for all of these places.
    for variable in MORTISE_URL="sqlite://$T/home/locks.db" XDG_STATE_HOME="$T/home" HOME="$T/home"; do
        env "$variable" ./raised run a true || true
        [ -z "$(ls -A home)" ]
    done
}
