#!/usr/bin/env bats
# Servers that are away: nobody listens, or somebody listens and never answers. What a command
# says then, and how long it takes.
load helper

setup_file() {
    PORTS="$(mktemp "${TMPDIR:-/tmp}/mortise-hole-XXXXXX")"
    python3 "$BATS_TEST_DIRNAME/hole.py" >"$PORTS" 3>&- &
    export HOLE_PID=$! PORTS
    while [ ! -s "$PORTS" ]; do sleep 0.05; done
    HOLE="$(cat "$PORTS")"
    export HOLE
}

teardown_file() {
    kill "$HOLE_PID"
    rm -f "$PORTS"
}

# Port 1: refused.
urls() {
    local port
    for port in 1 "$HOLE"; do
        echo "zk://127.0.0.1:$port" "redis://127.0.0.1:$port" "postgresql://u@127.0.0.1:$port/d" \
            "postgresql://u@127.0.0.1:$port/d?form=advisory" "mysql://u@127.0.0.1:$port/d" \
            "redlock:redis://127.0.0.1:$port"
    done
}

# away LEAST MOST CODE ARGUMENTS...: each server's command ends with CODE after LEAST to MOST
# milliseconds, all at once.
away() {
    local least="$1" most="$2" code="$3" url pids=()
    shift 3
    for url in $(urls); do
        timed "$url" "$@" >"$T/out.${#pids[@]}" 2>&1 3>&- &
        pids+=($!)
    done
    for url in "${!pids[@]}"; do
        wait "${pids[$url]}"
        cat "$T/out.$url"
        read -r got took _ < <(tail -n 1 "$T/out.$url")
        [ "$got" -eq "$code" ]
        [ "$took" -ge "$least" ]
        [ "$took" -le "$most" ]
    done
}

# Its last line is the exit code and the milliseconds.
timed() {
    local before after code=0
    before=$(date +%s%N)
    "$MORTISE" run --url "$@" || code=$?
    after=$(date +%s%N)
    echo "$code $(((after - before) / 1000000)) $1"
}

@test "f9 a wait that is over ends, and closing waits for no server that was never reached" {
    away 300 3000 69 -w 300ms x -- true
}

@test "f9 a signal ends a wait for a server that is away" {
    local url before
    for url in $(urls); do
        start run --url "$url" x -- true
        sleep 0.3
        before=$(date +%s%N)
        kill -TERM "$PID"
        finish "$PID"
        [ "$code" -eq 143 ]
        [ $((($(date +%s%N) - before) / 1000000)) -lt 2500 ]
    done
}
