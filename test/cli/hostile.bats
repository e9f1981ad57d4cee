#!/usr/bin/env bats
# Servers that answer what no server should: the command ends by itself and never crashes.
load helper

@test "SE-10 MariaDB: rows of fewer columns than were asked for" {
    python3 "$BATS_TEST_DIRNAME/hostile_mariadb.py" >port 3>&- &
    until_true test -s port
    MORTISE_URL="mysql://u@127.0.0.1:$(cat port)/d?connect=300ms"
    export MORTISE_URL
    local words
    for words in "run -w 300ms a true" "run -n a true" "ls" "init" "status a"; do
        run timeout 60 "$MORTISE" $words
        echo "$words: $status $output"
        [ "$status" -lt 124 ]
    done
    for form in get_lock row; do
        MORTISE_URL="$MORTISE_URL&form=$form" run timeout 60 "$MORTISE" run -w 300ms a true
        [ "$status" -lt 124 ]
    done
}
