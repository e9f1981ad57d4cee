#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Servers that answer what no server should: the command ends by itself and never crashes.
load helper

# mariadb_is_survived KIND COMMAND...: each command against such a server, and run on its own locks
# too, ends by itself and never crashes.
mariadb_is_survived() {
    local words form
    python3 "$BATS_TEST_DIRNAME/hostile_mariadb.py" $1 >port 3>&- &
    until_true test -s port
    MORTISE_URL="mysql://u@127.0.0.1:$(cat port)/d?connect=300ms"
    export MORTISE_URL
    for words in "${@:2}"; do
        run timeout 60 "$MORTISE" $words
        echo "$words: $status $output"
        [ "$status" -lt 124 ]
    done
    for form in get_lock row; do
        MORTISE_URL="$MORTISE_URL&form=$form" run timeout 60 "$MORTISE" run -w 300ms a true
        [ "$status" -lt 124 ]
    done
}

@test "SE-10 MariaDB: rows of fewer columns than were asked for" {
    mariadb_is_survived "" "run -w 300ms a true" "run -n a true" "ls" "init" "status a"
}

@test "SE-10 MariaDB: a report of progress before the greeting" {
    mariadb_is_survived progress "run -w 300ms a true" "run -n a true" "ls" "init" "doctor"
}

@test "SE-10 MariaDB: a reply without an end is refused after 64 MiB" {
    local kind words
    for kind in rows columns; do
        rm -f port taken
        python3 "$BATS_TEST_DIRNAME/hostile_mariadb.py" "$kind" taken >port 3>&- &
        until_true test -s port
        MORTISE_URL="mysql://u@127.0.0.1:$(cat port)/d?connect=300ms"
        export MORTISE_URL
        for words in "ls" "run -w 1s a true" "init"; do
            run timeout 60 "$MORTISE" $words
            echo "$kind, $words: $status $output; MiB: $(cat taken)"
            [ "$status" -ne 0 ]
            [ "$status" -lt 124 ]
            [ "$(cat taken)" -le 96 ] # and what the sockets hold
        done
    done
}

@test "SE-10 PostgreSQL: a reply without an end is refused after 64 MiB" {
    local kind words
    for kind in rows row; do
        rm -f port taken
        python3 "$BATS_TEST_DIRNAME/hostile_postgres.py" "$kind" taken >port 3>&- &
        until_true test -s port
        export MORTISE_URL="postgresql://u@127.0.0.1:$(cat port)/d?connect=20s"
        for words in "ls" "run -n a true" "init" "doctor"; do
            run timeout 60 "$MORTISE" $words
            echo "$kind, $words: $status $output; MiB: $(cat taken)"
            [ "$status" -ne 0 ]
            [ "$status" -lt 124 ]
            [ "$(cat taken)" -le 160 ] # and what the sockets hold, and the library reads ahead
            [ "$words" = doctor ] || [[ "$output" == *"PostgreSQL: "*"a reply of more than 64 MiB"* ]]
        done
    done
}

@test "SE-10 PostgreSQL: a connection that ends is no reply that is too long" {
    local words
    python3 "$BATS_TEST_DIRNAME/hostile_postgres.py" cut taken >port 3>&- &
    until_true test -s port
    export MORTISE_URL="postgresql://u@127.0.0.1:$(cat port)/d?connect=2s"
    for words in "run -n a true" "ls" "init"; do
        run timeout 60 "$MORTISE" $words
        echo "$words: $status $output"
        [ "$status" -ne 0 ]
        [ "$status" -lt 124 ]
        [[ "$output" != *"64 MiB"* ]]
        [[ "$output" != *"NULL"* ]]
    done
}

@test "SE-02 MariaDB: a password is not sent in the clear to a server that asks for it, nor a file" {
    local plugin
    for plugin in mysql_clear_password dialog; do
        rm -f port got
        python3 "$BATS_TEST_DIRNAME/hostile_mariadb.py" "$plugin" got >port 3>&- &
        until_true test -s port
        MORTISE_URL="mysql://u:Tr0ub4dor@127.0.0.1:$(cat port)/d?connect=10s"
        export MORTISE_URL
        for tls in "" "&tls=required" "&tls=verify"; do
            for words in "run -w 300ms a true" "init" "doctor"; do
                MORTISE_URL="$MORTISE_URL$tls" run timeout 60 "$MORTISE" $words
                echo "$plugin, $words, $tls: $status $output"
                [ "$status" -lt 124 ]
                [ "$status" -ne 0 ]
            done
        done
        cat got
        grep -q "asked, no files" got
        run -1 grep -a "asked, files" got
        run -1 grep -a Tr0ub4dor got
    done
}

@test "SE-10 Redis: a reply without an end is refused after 32 MiB" {
    local kind words
    for kind in bulk array; do
        rm -f port taken
        python3 "$BATS_TEST_DIRNAME/hostile_redis.py" "$kind" taken >port 3>&- &
        until_true test -s port
        MORTISE_URL="redis://127.0.0.1:$(cat port)/"
        export MORTISE_URL
        for words in "ls" "run -w 1s a true"; do
            run timeout 60 "$MORTISE" $words
            echo "$kind, $words: $status $output; MiB: $(cat taken)"
            [ "$status" -ne 0 ]
            [ "$status" -lt 124 ]
            [ "$(cat taken)" -le 48 ] # and what the sockets hold
            [ "$words" != ls ] || [[ "$output" == *"a reply of more than 32 MiB"* ]]
        done
    done
}
