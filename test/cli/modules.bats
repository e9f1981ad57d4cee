#!/usr/bin/env bats
# Stores in modules: what is said where one is missing, and what is not loaded.
load helper

URL=postgresql://127.0.0.1:1/none # nobody listens

module() {
    local file
    file="$(dirname "$(readlink -f "$MORTISE")")/mortise-postgres.so"
    [ -e "$file" ] || skip "built without the PostgreSQL store"
    echo "$file"
}

@test "an installation without the module says what is missing" {
    mkdir empty
    MORTISE_MODULES="$T/empty" fails_with 78 "$MORTISE" run --url "$URL" a true
    [[ "${lines[0]}" == *"this installation has no PostgreSQL store: $T/empty/mortise-postgres.so is missing" ]]
    MORTISE_MODULES="$T/empty" fails_with 78 "$MORTISE" init --url postgres://x/y
}

@test "and works with its other stores" {
    mkdir empty
    MORTISE_MODULES="$T/empty" "$MORTISE" run a true
}

@test "a command on another store loads nothing of it" {
    "$MORTISE" run a sh -c 'cat /proc/$PPID/maps >maps'
    grep -q libc.so maps
    run -1 grep -E 'libpq|mortise-postgres' maps
}

@test "a module that is none is not taken for one" {
    module
    mkdir mine
    echo text >mine/mortise-postgres.so
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$URL" a true
    [[ "${lines[0]}" == *"PostgreSQL store cannot be loaded"* ]]
    local other
    other=$(ldd "$(module)" | sed -n 's/.*libpq.so.* => \(.*\) (.*/\1/p')
    cp "$other" mine/mortise-postgres.so
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$URL" a true
    [[ "${lines[0]}" == *"was not built for this version"* ]]
}

@test "one that others can write to is not loaded" {
    mkdir mine
    cp "$(module)" mine/
    chmod 777 mine
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$URL" a true
    [[ "${lines[0]}" == *"mortise-postgres.so is not loaded: others"* ]]
    chmod 755 mine
    chmod 666 mine/mortise-postgres.so
    MORTISE_MODULES="$T/mine" fails_with 78 "$MORTISE" run --url "$URL" a true
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
    [[ "${lines[0]}" != *"$T"* ]]
}
