#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Servers that answer what no server should: the command ends by itself and never crashes.
load helper

# hostile SERVER ARGUMENTS...: starts hostile_SERVER.py; $port is its port.
hostile() {
    rm -f port
    python3 "$BATS_TEST_DIRNAME/hostile_$1.py" "${@:2}" >port 3>&- &
    until_true test -s port
    port=$(cat port)
}

# is_refused MIB COMMAND...: each command fails by itself, and the server's greediest client has taken
# so many MiB at most; the file `said` has what the commands said, each in a line.
is_refused() {
    local words
    for words in "${@:2}"; do
        run timeout 60 "$MORTISE" $words
        until_true test -s taken # the server may write it after the command has ended
        echo "$words: $status ${output//$'\n'/ }; MiB: $(cat taken)" | tee -a said
        [ "$status" -ne 0 ]
        [ "$status" -lt 124 ]
        [ "$(cat taken)" -le "$1" ]
    done
}

# mariadb_is_survived KIND COMMAND...: each command against such a server, and run on its own locks
# too, ends by itself and never crashes.
mariadb_is_survived() {
    local words form
    hostile mariadb $1
    export MORTISE_URL="mysql://u@127.0.0.1:$port/d?connect=300ms"
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
    mariadb_is_survived "" "run -w 300ms a true" "run -n a true" "ls" "init" "status a" "doctor"
}

@test "SE-10 MariaDB: a report of progress before the greeting" {
    mariadb_is_survived progress "run -w 300ms a true" "run -n a true" "ls" "init" "doctor"
}

@test "SE-10 MariaDB: a reply without an end is refused after 64 MiB" {
    local kind
    for kind in rows columns; do
        rm -f taken
        hostile mariadb "$kind" taken
        export MORTISE_URL="mysql://u@127.0.0.1:$port/d?connect=300ms"
        is_refused 96 "ls" "run -w 1s a true" "init" # 64, and what the sockets hold
    done
}

@test "SE-10 PostgreSQL: a reply without an end is refused after 64 MiB" {
    local kind
    for kind in rows row; do
        rm -f taken
        hostile postgres "$kind" taken
        export MORTISE_URL="postgresql://u@127.0.0.1:$port/d?connect=20s"
        # 64, and what the sockets hold, and the library reads ahead
        is_refused 160 "ls" "run -n a true" "init" "doctor"
    done
    [ "$(grep -c 'PostgreSQL: .*a reply of more than 64 MiB' <(grep -v ^doctor: said))" -eq 6 ]
}

@test "SE-10 PostgreSQL: rows without columns" {
    local words
    hostile postgres void
    export MORTISE_URL="postgresql://u@127.0.0.1:$port/d?connect=300ms"
    for words in "run -n a true" "ls" "doctor"; do
        run timeout 60 "$MORTISE" $words
        echo "$words: $status $output"
        [ "$status" -lt 124 ]
    done
}

@test "SE-10 PostgreSQL: a connection that ends is no reply that is too long" {
    local words
    hostile postgres cut taken
    export MORTISE_URL="postgresql://u@127.0.0.1:$port/d?connect=2s"
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
        rm -f got
        hostile mariadb "$plugin" got
        export MORTISE_URL="mysql://u:Tr0ub4dor@127.0.0.1:$port/d?connect=10s"
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
    local kind
    for kind in bulk array; do
        rm -f taken
        hostile redis "$kind" taken
        export MORTISE_URL="redis://127.0.0.1:$port/"
        is_refused 48 "ls" "run -w 1s a true" # 32, and what the sockets hold
    done
    [ "$(grep -c '^ls: .*a reply of more than 32 MiB' said)" -eq 2 ]
}

@test "SE-10 etcd: a reply without an end is refused after 16 MiB" {
    local kind
    for kind in chunks length; do
        rm -f taken
        hostile etcd "$kind" taken
        export MORTISE_URL="etcd://127.0.0.1:$port"
        is_refused 32 "ls" "run -w 1s a true" # 16, and what the sockets hold
    done
    [ "$(grep -c '^ls: .*the reply is too large' said)" -eq 2 ]
}

@test "SE-10 NATS: a greeting without an end is refused" {
    hostile nats info taken
    export MORTISE_URL="nats://127.0.0.1:$port?connect=2s"
    is_refused 32 "ls" "run -w 1s a true"
}

@test "SE-10 NATS: a line or a message without an end, or too long a one, is refused" {
    local kind
    for kind in line message size; do
        rm -f said taken
        hostile nats "$kind" taken
        echo 0 >taken
        export MORTISE_URL="nats://127.0.0.1:$port?connect=2s"
        is_refused 8 "ls" "run -w 300ms a true" # 64 KiB, and what the sockets hold
        grep '^ls: .*what is no message of NATS, or too long a one' said
    done
}

@test "SE-10 NATS: a server that takes nothing is left" {
    hostile nats pings taken
    export MORTISE_URL="nats://127.0.0.1:$port?connect=30s"
    is_refused 64 "ls"
    grep '^ls: .*the server takes nothing' said
}

@test "SE-10 NATS: a list without an end is refused after 64 MiB" {
    hostile nats tickets taken
    MORTISE_URL="nats://127.0.0.1:$port" run timeout 60 "$MORTISE" ls
    echo "$status $output"
    [ "$status" -ne 0 ]
    [[ $output == *"a list of more than 64 MiB"* ]]
}

@test "SE-10 NATS: a server that begins with TLS and says nothing more is left for the next" {
    hostile nats tls taken
    local first=$port
    rm -f taken
    hostile nats pings taken # the next takes note of a client
    MORTISE_URL="nats://127.0.0.1:$first,127.0.0.1:$port?connect=300ms" \
        run timeout 60 "$MORTISE" run -w 5s a true
    echo "$status $output"
    [ "$status" -ne 0 ]
    [ -s taken ]
}

@test "SE-10 NATS: answers that are not JetStream's are survived" {
    local words
    hostile nats junk taken
    export MORTISE_URL="nats://127.0.0.1:$port?connect=1s"
    for _ in {1..7}; do
        for words in "ls" "run -w 300ms a true" "run -n a true" "init" "status a" "doctor"; do
            run timeout 60 "$MORTISE" $words
            echo "$words: $status $output"
            [ "$status" -lt 124 ]
        done
    done
}
