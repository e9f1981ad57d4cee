#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# TLS together with sentinels, and with a cluster: real servers, which speak nothing else. Each is
# checked by the name by which it is called. The rules of TLS alone are in redis_tls.bats.
load ../cli/helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    export PLACE
    PLACE=$(mktemp -d /tmp/mortise-rediss-XXXXXX)
    python3 "$SERVERS" --tls start redis-cluster4 "$PLACE/cluster" >/dev/null 3>&- &
    python3 "$SERVERS" --tls start redis-sentinel "$PLACE/sentinels" >/dev/null 3>&-
    wait
    certify sentinels
    certify cluster
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE/cluster"
    python3 "$SERVERS" stop "$PLACE/sentinels"
    rmdir "$PLACE"
}

# certify PLACE: localhost.pem, by the servers' CA, which is not of their address.
certify() {
    (
        cd "$PLACE/$1"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=127.0.0.1" \
            -keyout localhost.key -out localhost.csr
        openssl x509 -req -in localhost.csr -CA ca.pem -CAkey ca.key -days 2 -set_serial 7 \
            -extfile <(echo "subjectAltName=DNS:localhost") -out localhost.pem
    ) >/dev/null 2>&1
}

# server PLACE NUMBER WORD...: on its socket, which has no TLS.
server() {
    redis-cli -s "$PLACE/$1/$2/socket" "${@:3}"
}

# shows PLACE NUMBER NAME: the server shows this certificate from now on.
shows() {
    server "$1" "$2" config set tls-cert-file "$PLACE/$1/$3.pem" tls-key-file "$PLACE/$1/$3.key"
}

# at PLACE NUMBER: host:port.
at() {
    python3 "$SERVERS" urls "$PLACE/$1" | cut -d , -f "$(($2 + 1))" | sed 's,.*//,,'
}

# with PLACE ADDRESS: the URL of what is at this address.
with() {
    echo "$2?session=${SESSION:-60s}&connect=9s&tls_ca=$PLACE/$1/ca.pem"
}

# says URL TEXT [BEFORE]: why an operator gets no answer, and why a lock is not had; of which there is
# also said before whose fault it is.
says() {
    run -69 "$MORTISE" ls --url "$1"
    echo "$output"
    [[ "$output" == *"$2"* ]]
    run -69 "$MORTISE" run -n --url "$1" a true
    echo "$output"
    [[ "$output" == *"$3$2"* ]]
}

# encrypted: what doctor says of the connection.
encrypted() {
    "$MORTISE" doctor | sed -n 's/^  encrypted  *//p'
}

is_refused() {
    "$MORTISE" run -n "$1" touch entered
    [ $? -eq 75 ]
}

is_shown() {
    "$MORTISE" ls "$1" | grep holds
}

# goes_on COMMAND...: a hold outlasts what the command does; an operator sees it there, and nobody else
# is let in before its end.
goes_on() {
    rm -f holding enough served
    start run long -- sh -c 'touch holding; until test -e enough; do sleep 0.05; done; exit 7'
    local holder=$PID
    until_true test -e holding
    "$@"
    until_true is_refused long # the next server may not grant yet
    [ ! -e entered ]
    until_true is_shown long
    start run -w 60s long -- touch served
    [ ! -e served ]
    touch enough
    finish "$holder"
    [ "$code" -eq 7 ]
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

is_master() {
    [ "$(server "$1" "$2" role | head -1)" = master ]
}

@test "sentinels and the master that they name are encrypted and checked" {
    export MORTISE_URL
    MORTISE_URL=$(with sentinels "$(python3 "$SERVERS" url "$PLACE/sentinels")")
    [[ "$MORTISE_URL" == rediss+sentinel://* ]]
    [ "$(encrypted)" = "yes, checked" ]
    takes_and_leaves a
    SSL_CERT_FILE="$PLACE/sentinels/ca.pem" "$MORTISE" run -w 60s --url "${MORTISE_URL%&*}" a true
    MORTISE_URL="${MORTISE_URL%&*}&tls=required"
    [ "$(encrypted)" = "yes, certificate not checked" ]
}

@test "a sentinel is checked by its name in the URL, and the master by what the sentinel calls it" {
    local sentinel port
    sentinel=$(at sentinels 3)
    says "rediss+sentinel://$sentinel/mymaster" \
        "TLS: its certificate is by a CA that is not known (tls_ca= names a file of CAs)" \
        "no sentinel names the master mymaster; $sentinel: "
    says "$(with sentinels "rediss+sentinel://127.1:${sentinel#*:}/mymaster")" \
        "TLS: its certificate is not of 127.1" \
        "no sentinel names the master mymaster; 127.1:${sentinel#*:}: "
    shows sentinels 0 localhost
    says "$(with sentinels "rediss+sentinel://$sentinel/mymaster")" \
        "TLS: its certificate is not of 127.0.0.1" \
        "$(at sentinels 0), which was named as the server: "
    port=$(at sentinels 0)
    port=${port#*:}
    python3 "$BATS_TEST_DIRNAME/fake_sentinel.py" "*2\\r\\n\$9\\r\\nlocalhost\\r\\n\$${#port}\\r\\n$port\\r\\n" \
        "$PLACE/sentinels/server" >port 3>&- &
    until_true test -s port
    "$MORTISE" run -w 60s --url "$(with sentinels "rediss+sentinel://127.0.0.1:$(cat port)/mymaster")" a true
    "$MORTISE" ls --url "$(with sentinels "rediss+sentinel://127.0.0.1:$(cat port)/mymaster")"
    shows sentinels 0 server
}

@test "sentinels without TLS in front of servers with it are refused, and the other way round" {
    local port
    port=$(at sentinels 0)
    port=${port#*:}
    says "redis+sentinel://$(at sentinels 3)/mymaster" "it may want TLS: rediss://"
    python3 "$BATS_TEST_DIRNAME/fake_sentinel.py" "*2\\r\\n\$9\\r\\n127.0.0.1\\r\\n\$${#port}\\r\\n$port\\r\\n" \
        >port 3>&- &
    until_true test -s port
    says "$(with sentinels "rediss+sentinel://127.0.0.1:$(cat port)/mymaster")" \
        "TLS: the server does not speak TLS at this port"
    says "redis+sentinel://127.0.0.1:$(cat port)/mymaster" "it may want TLS: rediss://"
}

# A sentinel gives a fail-over up that has taken 5 s, and begins another by an order alone.
replaces_master() {
    until_true is_replaced
}

is_replaced() {
    is_master sentinels 1 || is_master sentinels 2 && return
    redis-cli --tls --cacert "$PLACE/sentinels/ca.pem" -u "rediss://$(at sentinels 4)" \
        sentinel failover mymaster
    return 1
}

@test "a hold goes on through a failover of sentinels, over TLS" {
    export MORTISE_URL
    MORTISE_URL="$(with sentinels "$(python3 "$SERVERS" url "$PLACE/sentinels")")&replicas=1"
    goes_on replaces_master
}

@test "a node of a cluster leads to the one that keeps the slot, which is checked by its own name" {
    export MORTISE_URL
    MORTISE_URL=$(with cluster "rediss+cluster://$(at cluster 0)")
    [ "$(encrypted)" = "yes, checked" ]
    takes_and_leaves a
    says "rediss+cluster://$(at cluster 0)" "TLS: its certificate is by a CA that is not known"
    says "${MORTISE_URL/127.0.0.1/127.1}" "TLS: its certificate is not of 127.1"
    shows cluster 2 localhost
    says "$MORTISE_URL" "TLS: its certificate is not of 127.0.0.1"
    # A node that names no host means its own, by the name under which it was called.
    server cluster 0 config set cluster-preferred-endpoint-type unknown-endpoint
    shows cluster 0 localhost
    "$MORTISE" run -w 60s --url "${MORTISE_URL/127.0.0.1/localhost}" a true
    "$MORTISE" ls --url "${MORTISE_URL/127.0.0.1/localhost}"
    server cluster 0 config set cluster-preferred-endpoint-type ip
    shows cluster 0 server
    shows cluster 2 server
}

# replaces_node NUMBER: it becomes the master of the namespace's slot.
replaces_node() {
    until_true is_made_master "$1"
}

is_made_master() {
    is_master cluster "$1" || { server cluster "$1" cluster failover && false; }
}

@test "a hold goes on while its slot's master changes, over TLS" {
    export MORTISE_URL
    MORTISE_URL="$(with cluster "$(python3 "$SERVERS" url "$PLACE/cluster")")&replicas=1"
    [[ "$MORTISE_URL" == rediss+cluster://* ]]
    goes_on replaces_node 3
}

# Their servers have two CAs, of which one file has both.
@test "a quorum of a whole cluster and of masters that sentinels name outlasts a failover of one" {
    export MORTISE_URL
    cat "$PLACE"/*/ca.pem >both.pem
    local sentinels
    sentinels=$(python3 "$SERVERS" url "$PLACE/sentinels")
    MORTISE_URL="redlock:$sentinels,$sentinels/1,$(python3 "$SERVERS" url "$PLACE/cluster")"
    MORTISE_URL+="?session=60s&answer=9s&tls_ca=$PWD/both.pem"
    [ "$(encrypted)" = "yes, checked" ]
    run "$MORTISE" doctor
    [[ "$output" =~ server\ +Redis\ [0-9.]+(\ \+\ Redis\ [0-9.]+){2}$'\n' ]]
    goes_on replaces_node 2
    run -0 "$MORTISE" ls --url "$(with cluster "$(python3 "$SERVERS" url "$PLACE/cluster")")" long
}
