#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# TLS to real Redis servers, by certificates of the test's own.
load ../cli/helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    export PLACE URL PORT
    PLACE=$(mktemp -d /tmp/mortise-rediss-XXXXXX)
    python3 "$SERVERS" --tls start redis "$PLACE" >/dev/null 3>&-
    URL=$(python3 "$SERVERS" url "$PLACE")
    PORT=${URL##*:}
    certify name IP:192.0.2.7 -days 2
    certify wildcard "DNS:*" -days 2
    certify expired IP:127.0.0.1 -days -1
    certify localhost DNS:localhost -days 2
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE"
}

# certify NAME OF -days DAYS: by the servers' CA.
certify() {
    (
        cd "$PLACE"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=127.0.0.1" \
            -keyout "$1.key" -out "$1.csr"
        openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key "${@:3}" -set_serial 7 \
            -extfile <(echo "subjectAltName=$2") -out "$1.pem"
    ) >/dev/null 2>&1
}

# server WORD...: on its socket, which has no TLS.
server() {
    redis-cli -s "$PLACE/0/socket" "$@"
}

# shows NAME: the server shows this certificate from now on.
shows() {
    server config set tls-cert-file "$PLACE/$1.pem" tls-key-file "$PLACE/$1.key"
}

# says URL TEXT: why the command gets no answer, in the words of a single call and of one that goes on.
says() {
    run -69 "$MORTISE" ls --url "$1"
    echo "$output"
    [[ "$output" == *"$2"* ]]
    fails_after_tries "$1" "$2"
}

fails_after_tries() {
    "$MORTISE" run --url "$1" a touch had 2>out 3>&- &
    until_true grep -qF "$2" out
    kill "$!"
    finish "$!"
    [ ! -e had ]
}

# encrypted URL: what doctor says of the connection.
encrypted() {
    "$MORTISE" doctor --url "$1" | sed -n 's/^  encrypted  *//p'
}

ours() {
    echo "$URL?session=${SESSION:-2s}&connect=5s&tls_ca=$PLACE/ca.pem$1"
}

@test "a lock is taken, waited for and handed over, and doctor says that the server is checked" {
    export MORTISE_URL
    MORTISE_URL=$(ours)
    [ "$(encrypted "$MORTISE_URL")" = "yes, checked" ]
    takes_and_leaves a
    start_holder a
    start run a -- touch had
    until_true waiters a 1
    # A connection that the server ends in order is made anew, within the lease.
    server client kill type normal skipme yes
    server client kill type pubsub
    kill "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e had ]
}

@test "tls=required encrypts and does not check, and doctor says so; redis:// is in the clear" {
    local plain="redis+unix://$PLACE/0/socket"
    [ "$(encrypted "$URL?tls=required")" = "yes, certificate not checked" ]
    shows name
    run -7 "$MORTISE" run --url "$URL?tls=required" a sh -c 'exit 7'
    shows server
    [ "$(encrypted "$plain")" = "no" ]
    run -7 "$MORTISE" run --url "$plain" a sh -c 'exit 7'
}

@test "the system's CAs are those without tls_ca=" {
    SSL_CERT_FILE="$PLACE/ca.pem" "$MORTISE" run --url "$URL" a true
    says "$URL" "TLS: its certificate is by a CA that is not known (tls_ca= names a file of CAs)"
}

@test "a certificate that has expired, or of another name or address, is refused" {
    shows expired
    says "$(ours)" "TLS: its certificate has expired"
    shows name
    says "$(ours)" "TLS: its certificate is not of 127.0.0.1"
    local named
    named=$(ours)
    says "${named/127.0.0.1/localhost}" "TLS: its certificate is not of localhost"
    shows wildcard
    says "${named/127.0.0.1/localhost}" "TLS: its certificate is not of localhost"
    shows localhost
    "$MORTISE" run --url "${named/127.0.0.1/localhost}" a true
    says "$named" "TLS: its certificate is not of 127.0.0.1"
    shows server
    "$MORTISE" run --url "$named" a true
}

@test "a server that wants a client's certificate, and which" {
    local with="&tls_cert=$PLACE/server.pem&tls_key=$PLACE/server.key" version
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x \
        -keyout "$PLACE/strange.key" -out "$PLACE/strange.pem" 2>/dev/null
    server config set tls-auth-clients yes
    for version in TLSv1.2 TLSv1.3; do
        server config set tls-protocols "$version"
        says "$(ours)" "want"
        [[ "$output" == *"a client's certificate (tls_cert=, tls_key=)"* ]]
        says "$(ours "&tls_cert=$PLACE/strange.pem&tls_key=$PLACE/strange.key")" \
            "TLS: the server refuses the client's certificate: by a CA that it does not know"
        run -7 "$MORTISE" run --url "$(ours "$with")" a sh -c 'exit 7'
    done
    server config set tls-auth-clients optional
    server config set tls-protocols ""
}

@test "files of TLS that are of no use are faults of the URL, and a key that others can read is refused" {
    local key="&tls_cert=$PLACE/server.pem&tls_key"
    fails_with 78 "$MORTISE" run --url "$URL?tls_ca=/none" a true
    [[ "$output" == *"tls_ca=/none: No such file or directory" ]]
    fails_with 78 "$MORTISE" run --url "$URL?tls_ca=/etc/passwd" a true
    fails_with 78 "$MORTISE" run --url "$(ours "&tls_cert=/etc/passwd&tls_key=$PLACE/server.key")" a true
    [[ "$output" == *"tls_cert=/etc/passwd: no PEM" ]]
    fails_with 78 "$MORTISE" run --url "$(ours "$key=$PLACE/ca.key")" a true
    [[ "$output" == *"tls_key: it is not the key of tls_cert" ]]
    openssl ec -aes128 -passout pass:x -in "$PLACE/server.key" -out secret.key 2>/dev/null
    fails_with 78 "$MORTISE" run --url "$(ours "$key=$T/secret.key")" a true
    [[ "$output" == *"it has a passphrase, which nobody is prompted for" ]]
    cp "$PLACE/server.key" open.key
    chmod 640 open.key
    fails_with 78 "$MORTISE" run --url "$(ours "$key=$T/open.key")" a true
    [[ "$output" == *"open.key is open to others (chmod 600)" ]]
}

@test "files that are replaced are used from the next connection on" {
    export MORTISE_URL
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$PLACE/next.key" -out "$PLACE/next.pem" 2>/dev/null
    cp "$PLACE/ca.pem" ca.pem
    MORTISE_URL="$URL?session=2s&tls_ca=$T/ca.pem"
    start run a -- sh -c 'touch holding; until test -e enough; do sleep 0.05; done'
    until_true test -e holding
    cp "$PLACE/next.pem" ca.pem
    shows next
    server client kill type normal skipme yes
    sleep 3 # longer than the lease: it was renewed
    touch enough
    finish "$PID"
    shows server
    [ "$code" -eq 0 ]
}

one_is_served() {
    [ "$(server client list type normal | grep -c ' cmd=eval')" -eq 1 ]
}

@test "a file that could not be read is read again at the next connection" {
    export MORTISE_URL
    cp "$PLACE/ca.pem" ca.pem
    cp "$PLACE/server.key" own.key
    chmod 600 own.key
    MORTISE_URL="$URL?session=9s&tls_ca=$T/ca.pem&tls_cert=$PLACE/server.pem&tls_key=$T/own.key"
    start run a -- sh -c 'touch holding; until test -e enough; do sleep 0.05; done'
    until_true test -e holding
    chmod 640 own.key # before the other change: a busy machine may break the connection by itself
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$PLACE/new.key" -out ca.pem 2>/dev/null
    server client kill type normal skipme yes
    until_true one_is_served # by what was read before
    chmod 600 own.key
    cp ca.pem "$PLACE/new.pem"
    shows new
    server client kill type normal skipme yes
    until_true one_is_served
    touch enough
    finish "$PID"
    shows server
    [ "$code" -eq 0 ]
}

@test "a server of another protocol: none behind rediss://, TLS behind redis://, no version in common" {
    python3 "$SERVERS" start redis "$T/plain" >/dev/null 3>&-
    local plain
    plain=$(python3 "$SERVERS" url "$T/plain")
    says "${plain/redis:/rediss:}?connect=200ms" \
        "no answer to the handshake of TLS; does the server speak TLS at this port?"
    python3 "$SERVERS" stop "$T/plain"
    python3 "$BATS_TEST_DIRNAME/../cli/hole.py" talks >port 3>&- &
    until_true test -s port
    says "rediss://127.0.0.1:$(cat port)" "TLS: the server does not speak TLS at this port"
    says "redis${URL#rediss}" "the server ended the connection before its first answer; it may want TLS: rediss://"
    server config set tls-protocols TLSv1.1
    says "$(ours)" "TLS: the server wants another version of TLS"
    server config set tls-protocols ""
}

# limited COUNT WAY: the URL of the server by limit.py.
limited() {
    rm -f port
    python3 "$BATS_TEST_DIRNAME/limit.py" "$PORT" "$@" >port 3>&- &
    until_true test -s port
    LIMITED=$(ours)
    LIMITED="${LIMITED/$PORT/$(cat port)}"
}

@test "a server that falls silent within the handshake is given up after connect=" {
    limited 100 holds
    says "${LIMITED/connect=5s/connect=200ms}" "no answer to the handshake of TLS"
    limited 100 cuts
    says "$LIMITED" "the server ended the connection in the handshake of TLS"
}

# Rows that a script of the server's makes of one that is there.
many_rows() {
    server eval 'for i = 1, ARGV[1] do
        redis.call("COPY", "{mortise/}q:mortise/a", "{mortise/}q:mortise/a" .. i)
        redis.call("HSET", "{mortise/}queues", "mortise/a" .. i, "1 mutex")
    end' 0 "$1"
}

@test "a reply of megabytes comes whole, and one that is cut is an error" {
    export MORTISE_URL SESSION=60s
    MORTISE_URL=$(ours)
    start_holder a
    many_rows 5000
    "$MORTISE" ls >rows
    [ "$(grep -c holds rows)" -eq 5001 ]
    limited 100000 cuts
    run -69 "$MORTISE" ls --url "$LIMITED"
    [[ "$output" == *"the server ended the connection"* ]]
    server eval 'for i = 1, 5000 do redis.call("DEL", "{mortise/}q:mortise/a" .. i)
        redis.call("HDEL", "{mortise/}queues", "mortise/a" .. i) end' 0
    # In the handshake, and in one of the first replies.
    local i
    for i in 400 1500 2500; do
        limited "$i" cuts
        run timeout 60 "$MORTISE" run -w 300ms --url "$LIMITED" "b$i" true
        [ "$status" -ne 124 ]
    done
    kill "$HOLDER"
    finish "$HOLDER"
}

@test "a password is sent to a server that was checked, and to no other" {
    local password=s3cret-mark
    server config set requirepass "$password"
    export MORTISE_REDIS_AUTH="$password" REDISCLI_AUTH="$password"
    run -7 "$MORTISE" run --url "$(ours)" a sh -c 'exit 7'
    shows name
    says "$(ours)" "TLS: its certificate is not of 127.0.0.1"
    shows server
    MORTISE_REDIS_AUTH=other says_no_permission
    server config set requirepass ""
}

says_no_permission() {
    run -77 "$MORTISE" run --url "$(ours)" a true
    [[ "$output" == *WRONGPASS* && "$output" != *other* ]]
}

@test "M1 redlock of members that encrypt, and one that is a stranger" {
    export MORTISE_URL
    python3 "$SERVERS" --tls start redis5 "$T/five" >/dev/null 3>&-
    local five
    five=$(python3 "$SERVERS" url "$T/five")
    MORTISE_URL="redlock:$five?session=3s&answer=500ms&tls_ca=$T/five/ca.pem"
    [ "$(encrypted "$MORTISE_URL")" = "yes, checked" ]
    start_holder a
    run -75 "$MORTISE" run -n a true
    kill "$HOLDER"
    finish "$HOLDER"
    # A minority that is not accepted does no harm, a majority does.
    MORTISE_URL="redlock:${five%,*},$URL?session=3s&answer=500ms&tls_ca=$T/five/ca.pem"
    "$MORTISE" run a true
    MORTISE_URL="redlock:${five%%,*},$URL,rediss://localhost:$PORT?session=3s&answer=500ms&tls_ca=$T/five/ca.pem"
    run -69 "$MORTISE" run -w 1s a true
    python3 "$SERVERS" stop "$T/five"
}

@test "an installation without the module says what is missing, and sends nothing in the clear" {
    mkdir empty
    MORTISE_MODULES="$T/empty" fails_with 78 "$MORTISE" run --url "$(ours)" a true
    [[ "$output" == *"this installation has no TLS for Redis: $T/empty/mortise-tls.so is missing" ]]
    MORTISE_MODULES="$T/empty" "$MORTISE" run --url "redis+unix://$PLACE/0/socket" a true
}
