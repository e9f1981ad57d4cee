#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A member of etcd with TLS and users, and one that is full.
load ../cli/helper
load certificates
load store

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

as_root() {
    etcdctl --endpoints "https://${URL#etcd://}" --cacert "$PLACE/ours.pem" "$@"
}

# The password of root is nobody's secret: the member is on the loopback interface, and the test's.
setup_file() {
    export PLACE ETCDCTL_API=3
    PLACE=$(mktemp -d /tmp/mortise-etcd-XXXXXX)
    make_ca ours
    make_ca others
    certify server IP:127.0.0.1 1
    python3 "$SERVERS" --setting "cert-file=$PLACE/server.pem" \
        --setting "key-file=$PLACE/server.key" start etcd "$PLACE/etcd" >/dev/null 3>&-
    python3 "$SERVERS" --setting "quota-backend-bytes=200000" start etcd "$PLACE/full" >/dev/null 3>&-
    URL=$(python3 "$SERVERS" url "$PLACE/etcd")
    as_root user add root --new-user-password=root
    as_root role add mortise
    as_root role grant-permission mortise readwrite --prefix=true mortise/
    as_root user add locks --new-user-password='pass"word\'
    as_root user grant-role locks mortise
    as_root user grant-role root root
    as_root auth enable
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE/etcd"
    python3 "$SERVERS" stop "$PLACE/full"
    rm -rf "$PLACE"
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    URL=$(python3 "$SERVERS" url "$PLACE/etcd")
    HOST="${URL#etcd://}"
    unset MORTISE_ETCD_AUTH
}

@test "with its user, its password and the server's authority a lock works, and the password is a text" {
    (umask 077 && echo 'pass"word\' >secret)
    export MORTISE_URL="etcds://locks@$HOST?lease=60s&tls_ca=$PLACE/ours.pem&credentials=$T/secret"
    serves_in_turn guarded
    run "$MORTISE" ls
    [ "$status" -eq 0 ]
}

@test "a wrong password, no user, and a name without rights are refused in words" {
    export MORTISE_ETCD_AUTH=wrong
    run "$MORTISE" run -w 3s --url "etcds://locks@$HOST?tls_ca=$PLACE/ours.pem" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"authentication failed"* && "$output" != *wrong* ]]
    run "$MORTISE" run -w 3s --url "etcds://$HOST?tls_ca=$PLACE/ours.pem" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"the server wants a user"* ]]
    export MORTISE_ETCD_AUTH='pass"word\'
    run "$MORTISE" run -w 3s --url "etcds://locks@$HOST?namespace=other&tls_ca=$PLACE/ours.pem" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"permission denied"*"doc/etcd.md"* ]]
}

@test "a certificate of another authority is refused, and encryption alone is not fooled by none" {
    export MORTISE_ETCD_AUTH='pass"word\'
    run "$MORTISE" run -w 2s --url "etcds://locks@$HOST?tls_ca=$PLACE/others.pem" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"tls=verify checks the certificate"* ]]
    run -0 "$MORTISE" run -w 60s --url "etcd://locks@$HOST?tls=required" a true
    run "$MORTISE" run -w 2s --url "etcd://locks@$HOST?tls=off" a true
    [ "$status" -ne 0 ]
}

@test "a token that the server does not know any longer is fetched anew" {
    export MORTISE_ETCD_AUTH='pass"word\'
    export MORTISE_URL="etcds://locks@$HOST?lease=60s&tls_ca=$PLACE/ours.pem"
    start_holder token
    start run -w 60s token -- touch served
    until_true waiters token 1
    python3 "$SERVERS" kill "$PLACE/etcd" 0
    python3 "$SERVERS" restart "$PLACE/etcd" 0
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}

@test "a full server takes no new lock and says so; holds go on and are released" {
    local full
    full=$(python3 "$SERVERS" url "$PLACE/full")
    export MORTISE_URL="$full?lease=2s"
    start_holder kept
    until_true fill "${full#etcd://}"
    run "$MORTISE" run -w 3s other true
    [ "$status" -ne 0 ]
    [[ "$output" == *"database space exceeded"* ]]
    sleep 5 # more than two leases
    kill -0 "$HOLDER"
    run -0 "$MORTISE" ls kept
    [[ "$output" == *holds* ]]
    kill "$HOLDER"
    finish "$HOLDER"
    run -0 "$MORTISE" ls kept
    [[ "$output" != *holds* ]]
}

# Whether the server has had enough.
fill() {
    head -c 20000 /dev/zero | tr '\0' x | etcdctl --endpoints "$1" put "filler$RANDOM" 2>&1 |
        grep -q 'space exceeded'
}
