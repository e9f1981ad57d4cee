#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Servers of NATS with TLS and users, one that is full, and one without JetStream.
load ../cli/helper
load certificates
load contest
load nats
load rights
load store

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

# rights NAMESPACE [ELSE]: those that doc/nats.md names, with two leases; another one in place of CREATE.
rights() {
    echo "{ publish: [ \"mortise.$1.>\""
    printf '"$JS.API.STREAM.%s"\n' {INFO,"${2:-CREATE}",MSG.GET,MSG.DELETE}.mortise_{"q_$1","s_$1_10000","s_$1_60000"}
    echo "], subscribe: [ \"_INBOX.>\", \"mortise.$1.w.>\" ] }"
}

# The passwords are nobody's secret: the servers are on the loopback interface, and the test's.
users() {
    cat <<END
authorization { users: [
  { user: root, password: root }
  { user: locks, password: "pass\\"word\\\\", permissions: $(rights mortise) }
  { user: alice, password: word, permissions: $(rights mortise) }
  { user: bob, password: word, permissions: $(rights bobs) }
  { user: carol, password: word, permissions: $(rights made NAMES) }
  { user: reader, password: word, permissions: { publish: { deny: ["mortise.mortise.>"] } } }
  { user: nobody, password: word, permissions: { publish: ["none"] } }
] }
END
}

# start_one NAME OPTION...
start_one() {
    python3 "$SERVERS" "${@:2}" start nats "$PLACE/$1" >/dev/null 3>&-
}

setup_file() {
    export PLACE
    PLACE=$(mktemp -d /tmp/mortise-nats-XXXXXX)
    make_ca ours
    make_ca others
    certify server IP:127.0.0.1 1
    start_one secure --setting "$(users)" \
        --setting "tls { cert_file: \"$PLACE/server.pem\", key_file: \"$PLACE/server.key\" }"
    start_one users --setting "$(users)"
    start_one full --setting "jetstream { store_dir: \"$PLACE/full/0/data\", max_file_store: 200KB }"
    start_one without --setting "jetstream: disabled"
}

teardown_file() {
    local one
    for one in secure users full without; do
        python3 "$SERVERS" stop "$PLACE/$one"
    done
    rm -rf "$PLACE"
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    unset MORTISE_NATS_AUTH
}

# of SERVER [USER]: its URL.
of() {
    local url
    url=$(python3 "$SERVERS" url "$PLACE/$1")
    echo "${url/\/\//\/\/${2:+$2@}}"
}

@test "NA-10 with its user, its password and the server's authority a lock works, and the password is a text" {
    (umask 077 && echo 'pass"word\' >secret)
    export MORTISE_URL="$(of secure locks)?lease=60s&tls=verify&tls_ca=$PLACE/ours.pem&credentials=$T/secret"
    serves_in_turn guarded
}

# A server that is not asked says something after two seconds at the earliest.
@test "NA-10 by TLS nothing waits for what the server says by itself" {
    export MORTISE_NATS_AUTH=word MORTISE_URL="$(of secure alice)?lease=60s&tls=required"
    run -0 timeout 60 sh -c 'for i in $(seq 32); do "$MORTISE" run -w 60s quick true || exit; done'
}

@test "NA-10 a wrong password and no user are refused in words" {
    export MORTISE_NATS_AUTH=wrong
    run "$MORTISE" run -w 3s --url "$(of users alice)" a true
    [ "$status" -ne 0 ]
    [[ "${output,,}" == *"authentication violation"* && "$output" != *wrong* ]]
    run "$MORTISE" run -w 3s --url "$(of users)" a true
    [ "$status" -ne 0 ]
    [[ "${output,,}" == *"authentication violation"* ]]
}

@test "NA-10 a certificate of another authority is refused, and encryption alone is not fooled by none" {
    export MORTISE_NATS_AUTH=word
    run "$MORTISE" run -w 2s --url "$(of secure alice)?tls=verify&tls_ca=$PLACE/others.pem" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"certificate"* ]]
    run -0 "$MORTISE" run -w 60s --url "$(of secure alice)?tls=required" a true
    run "$MORTISE" run -w 2s --url "$(of users alice)?tls=required" a true
    [ "$status" -ne 0 ]
}

@test "NA-11 rights that are missing are refused in words, and nothing is granted" {
    export MORTISE_NATS_AUTH=word
    run -0 "$MORTISE" run -w 60s --url "$(of users alice)" a true
    local user
    for user in reader nobody; do
        run "$MORTISE" run -w 3s --url "$(of users "$user")" a touch "$user"
        [ "$status" -ne 0 ]
        [ ! -e "$user" ]
        [[ "${output,,}" == *"permission"* ]]
    done
}

# fill SERVER: messages of another stream, as many as there is room for.
fill() {
    local n
    URL=$1
    operator request '$JS.API.STREAM.CREATE.filler' '{"name": "filler", "subjects": ["filler"]}'
    for n in {1..40}; do
        operator publish filler "$(head -c 20000 /dev/zero | tr '\0' x)" | grep -q insufficient &&
            return
    done
    return 1
}

@test "NA-11 the rights of the document are enough for each kind of lock, and for operators" {
    export MORTISE_NATS_AUTH=word MORTISE_URL="$(of users alice)?lease=60s"
    takes_each_kind
    elects_and_operates
}

@test "NA-11 who may not make streams has locks once an administrator has made them by init" {
    local url
    export MORTISE_NATS_AUTH=word
    url="$(of users carol)?lease=60s&namespace=made"
    run "$MORTISE" run -w 3s --url "$url" a true
    [ "$status" -ne 0 ]
    [[ "${output,,}" == *"permission"* ]]
    MORTISE_NATS_AUTH=root run -0 "$MORTISE" init --url "${url/carol/root}"
    run -0 "$MORTISE" run -w 60s --url "$url" a true
}

@test "NA-11 another namespace's rights do not reach a lock" {
    export MORTISE_NATS_AUTH=word MORTISE_URL="$(of users alice)?lease=60s"
    local fence words
    start_holder guarded
    fence=$("$MORTISE" ls guarded --json | grep -o '"fence": [0-9]*' | tr -dc 0-9)
    for words in "run -w 2s free touch taken" "break guarded --fence $fence" "revoke guarded"; do
        # shellcheck disable=SC2086
        run "$MORTISE" ${words%% *} --url "$(of users bob)?lease=60s" ${words#* }
        [ "$status" -ne 0 ]
        [ ! -e taken ]
        [[ "${output,,}" == *"permission"* ]]
    done
    run -0 "$MORTISE" run -w 60s --url "$(of users bob)?lease=60s&namespace=bobs" guarded true
    URL="$(of users)"
    local subject
    for subject in mortise.mortise.q.guarded.x '$JS.API.STREAM.DELETE.mortise_q_mortise' \
        '$JS.API.STREAM.PURGE.mortise_s_mortise_60000'; do
        run operator_as bob:word publish "$subject"
        [ "$status" -ne 0 ]
        [[ "${output,,}" == *"permissions violation"* ]]
    done
    run -75 "$MORTISE" run -n guarded true
}

@test "NA-12 a full server takes no new lock and says so; with room again it does" {
    export MORTISE_URL="$(of full)?lease=3s"
    run -0 "$MORTISE" run -w 60s before true
    holds_alone before
    fill "$(of full)"
    run "$MORTISE" run -w 3s other touch granted
    [ "$status" -ne 0 ]
    [ ! -e granted ]
    [[ "$output" == *"insufficient resources"* ]]
    is_lost
    operator delete_stream filler
    waits_behind before
    next_is_alone
}

@test "NA-12 a server without JetStream is named as one" {
    run "$MORTISE" run -w 3s --url "$(of without)" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"JetStream"* ]]
}
