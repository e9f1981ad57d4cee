#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# TLS by tunnel, as doc/zookeeper.md has it: stunnel at both ends, certificates of the
# test's own making, a real server behind.
bats_require_minimum_version 1.5.0

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

# authority NAME; certificate AUTHORITY NAME: NAME.pem with key and certificate
authority() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.crt"
}

certificate() {
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$2.key" -out "$2.csr"
    printf 'subjectAltName=DNS:%s\n' "$2" > "$2.ext"
    openssl x509 -req -in "$2.csr" -CA "$1.crt" -CAkey "$1.key" -CAcreateserial -days 2 \
        -extfile "$2.ext" -out "$2.crt"
    cat "$2.key" "$2.crt" > "$2.pem"
}

# tunnel NAME PORT LINE...: a stunnel of one service, that listens on this port by the end
tunnel() {
    local name="$1" port="$2"
    shift 2
    printf '%s\n' "foreground = yes" "pid =" "[$name]" "accept = 127.0.0.1:$port" "$@" > "$name.conf"
    "$(command -v stunnel4 || command -v stunnel)" "$name.conf" > "$name.log" 2>&1 3>&- &
    echo $! >> tunnels
    until [ -n "$(ss -Hltn "sport = :$port")" ]; do sleep 0.02; done
}

client_tunnel() { # NAME PORT AUTHORITY HOST
    tunnel "$1" "$2" "client = yes" "connect = 127.0.0.1:$TLS_PORT" \
        "CAfile = $3.crt" "verifyChain = yes" "checkHost = $4" "cert = client.pem"
}

setup_file() {
    T="$(mktemp -d /tmp/mortise-tunnel-XXXXXX)"
    export T XDG_STATE_HOME="$T/state"
    cd "$T"
    { authority ours && authority strangers && certificate ours server.test &&
        certificate ours client; } > openssl.log 2>&1
    read -r DIRECTORY URL < <("$SERVERS" start zk)
    TLS_PORT=$("$SERVERS" port)
    export DIRECTORY TLS_PORT
    tunnel server "$TLS_PORT" "connect = ${URL#zk://}" "cert = server.test.pem" \
        "CAfile = ours.crt" "verifyChain = yes"
}

teardown_file() {
    local pid
    for pid in $(cat "$T/tunnels"); do kill "$pid" 2>/dev/null || true; done
    "$SERVERS" stop "$DIRECTORY"
    rm -rf "$T"
}

@test "CC-02: a lock through a tunnel, on a verified server" {
    cd "$T"
    port=$("$SERVERS" port)
    client_tunnel good "$port" ours server.test
    export MORTISE_URL="zk://127.0.0.1:$port/tunnelled?session=4s&connect=60s"
    run -0 "$MORTISE" run a -- sh -c '"$MORTISE" ls; echo "fence $MORTISE_FENCE"'
    [[ "$output" == *a*fence\ [1-9]* ]]
    run -0 "$MORTISE" run a -- "$MORTISE" run --timeout 60s b -- true
}

@test "CC-02: a tunnel that does not know the server's authority, or expects another name" {
    cd "$T"
    port=$("$SERVERS" port)
    client_tunnel stranger "$port" strangers server.test
    run -69 "$MORTISE" run --url "zk://127.0.0.1:$port?session=4s&connect=1s" --timeout 2s a -- true
    port=$("$SERVERS" port)
    client_tunnel misnamed "$port" ours other.test
    run -69 "$MORTISE" run --url "zk://127.0.0.1:$port?session=4s&connect=1s" --timeout 2s a -- true
    for name in stranger misnamed; do
        until grep -q "certificate verify failed" "$name.log"; do sleep 0.02; done
    done
}

@test "CC-02: TLS that this build does not have is an error, not plain text" {
    run -78 "$MORTISE" run --url "zks://127.0.0.1:$TLS_PORT" a -- true
    [[ "$output" == *"no TLS"* ]]
}
