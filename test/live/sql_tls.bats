#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# TLS to SQL servers whose certificate is by a CA of the test's own.
load ../cli/helper
load certificates

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

# The server is another user than the test, if that is root.
setup_file() {
    export PLACE
    PLACE=$(mktemp -d /tmp/mortise-tls-XXXXXX)
    chmod 755 "$PLACE"
    make_ca ours
    make_ca others
    certify server IP:127.0.0.1 1
    certify client DNS:client 2
    for user in postgres mysql; do
        cp "$PLACE/server.key" "$PLACE/$user.key"
        chmod 600 "$PLACE/$user.key"
        if [ "$(id -u)" -eq 0 ]; then chown "$user" "$PLACE/$user.key"; fi
    done
    python3 "$SERVERS" --setting "ssl = on" --setting "ssl_cert_file = '$PLACE/server.pem'" \
        --setting "ssl_key_file = '$PLACE/postgres.key'" --setting "ssl_ca_file = '$PLACE/ours.pem'" \
        start postgres "$PLACE/postgres" >/dev/null 3>&- &
    python3 "$SERVERS" --setting "ssl_cert = $PLACE/server.pem" --setting "ssl_key = $PLACE/mysql.key" \
        --setting "ssl_ca = $PLACE/ours.pem" start mariadb "$PLACE/mariadb" >/dev/null 3>&-
    wait $!
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE/postgres"
    python3 "$SERVERS" stop "$PLACE/mariadb"
    rm -rf "$PLACE"
}

# try_at OUT URL: writes what it is told, and the exit code. It has another try until its time is up.
try_at() {
    local code=0
    "$MORTISE" run -w 6s --url "$2" a true >"$1" 2>&1 3>&- || code=$?
    echo "code $code" >>"$1"
}

# is_refused OUT TEXT
is_refused() {
    cat "$1"
    grep -q "$2" "$1"
    grep -q "code 69" "$1"
}

# on_postgres PARAMETERS
on_postgres() {
    export MORTISE_URL
    MORTISE_URL="$(cat "$PLACE/postgres/url")?lease=9s&$1"
}

# on_mariadb CA [LINE...]: more lines of the option file.
on_mariadb() {
    export MORTISE_URL
    printf '%s\n' '[client]' ssl-verify-server-cert=1 "ssl-ca=$PLACE/$1.pem" "${@:2}" >"options-$1"
    MORTISE_URL="$(python3 "$SERVERS" url "$PLACE/mariadb")?lease=9s&option_file=$PWD/options-$1"
}

# The lock is held, waited for and handed over.
takes_turns() {
    "$MORTISE" init
    start run "$1" -- sh -c 'touch holding; until test -e enough; do sleep 0.05; done'
    until_true test -e holding
    run -75 "$MORTISE" run -n "$1" true
    start run "$1" -- touch had
    until_true waits "$1"
    touch enough
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e had ]
}

waits() {
    "$MORTISE" ls "$1" | grep -q " 1 "
}

@test "PostgreSQL: verify-full, on a connection that is encrypted" {
    on_postgres "sslmode=verify-full&sslrootcert=$PLACE/ours.pem"
    takes_turns a
    run -0 "$MORTISE" run a -- psql -X -q -t -A "${MORTISE_URL%%\?*}" -c \
        "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'mortise'"
    [ "$output" = t ]
}

@test "PostgreSQL: form=advisory and form=row over TLS" {
    local form
    for form in advisory row; do
        on_postgres "sslmode=verify-full&sslrootcert=$PLACE/ours.pem&form=$form"
        "$MORTISE" init
        run -7 "$MORTISE" run a sh -c 'exit 7'
    done
}

@test "MariaDB: a user that must encrypt, and a server that is verified" {
    local admin=(mariadb --no-defaults -N -B -S "$PLACE/mariadb/0/socket" -u root -e)
    on_mariadb ours
    "${admin[@]}" "ALTER USER mortise REQUIRE SSL"
    takes_turns a
    MORTISE_URL="${MORTISE_URL%&option_file*}" run "$MORTISE" run a true
    [ "$status" -ne 0 ]
    "${admin[@]}" "ALTER USER mortise REQUIRE NONE"
}

@test "PostgreSQL: a user that must show a certificate" {
    local admin=(psql -X -q -U postgres "$(python3 "$SERVERS" url "$PLACE/postgres" | sed 's/mortise@//')" -c)
    "${admin[@]}" "CREATE ROLE certified LOGIN; GRANT ALL ON DATABASE mortise TO certified"
    sed -i '1i hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca' "$PLACE/postgres/0/data/pg_hba.conf"
    "${admin[@]}" "SELECT pg_reload_conf()" >/dev/null
    on_postgres "sslmode=verify-full&sslrootcert=$PLACE/ours.pem&schema=certified"
    MORTISE_URL="${MORTISE_URL/mortise@/certified@}"
    MORTISE_URL="$MORTISE_URL&sslcert=$PLACE/client.pem&sslkey=$PLACE/client.key" run -0 "$MORTISE" init
    MORTISE_URL="$MORTISE_URL&sslcert=$PLACE/client.pem&sslkey=$PLACE/client.key" run -7 "$MORTISE" run a sh -c 'exit 7'
    run -77 "$MORTISE" run a true
    [[ "$output" == *"certificate"* ]]
}

@test "MariaDB: a user that must show a certificate" {
    local admin=(mariadb --no-defaults -N -B -S "$PLACE/mariadb/0/socket" -u root -e)
    "${admin[@]}" "CREATE USER certified REQUIRE X509; GRANT ALL ON mortise.* TO certified"
    on_mariadb ours "ssl-cert=$PLACE/client.pem" "ssl-key=$PLACE/client.key"
    MORTISE_URL="${MORTISE_URL/mortise@/certified@}"
    "$MORTISE" init
    run -7 "$MORTISE" run a sh -c 'exit 7'
    on_mariadb ours
    MORTISE_URL="${MORTISE_URL/mortise@/certified@}"
    run -77 "$MORTISE" run a true
    [[ "$output" == *"Access denied"* ]]
}

@test "MariaDB: form=get_lock and form=row over TLS" {
    local form
    on_mariadb ours
    for form in get_lock row; do
        "$MORTISE" init --url "$MORTISE_URL&form=$form"
        run -7 "$MORTISE" run --url "$MORTISE_URL&form=$form" a sh -c 'exit 7'
    done
}

# localhost is where the server is, and not its name.
@test "a server whose certificate is by another CA, or of another name, is refused" {
    on_postgres "sslmode=verify-full&sslrootcert=$PLACE/others.pem"
    try_at postgres-ca "$MORTISE_URL" &
    on_postgres "sslmode=verify-full&sslrootcert=$PLACE/ours.pem"
    try_at postgres-name "${MORTISE_URL/127.0.0.1/localhost}" &
    on_mariadb others
    try_at mariadb-ca "$MORTISE_URL" &
    on_mariadb ours protocol=1 # TCP; else localhost is the socket
    try_at mariadb-name "${MORTISE_URL/127.0.0.1/localhost}" &
    wait
    is_refused postgres-ca "certificate verify failed"
    is_refused postgres-name "does not match"
    is_refused mariadb-ca "TLS/SSL error.*certificate"
    is_refused mariadb-name "TLS/SSL error.*certificate"
}

# encrypted URL: what doctor says of the connection.
encrypted() {
    "$MORTISE" doctor --url "$1" | sed -n 's/^  encrypted  *//p'
}

@test "tls= is the same for both: off, required, verify; and doctor says what it is" {
    on_postgres "schema=tls"
    local postgres="$MORTISE_URL" url
    MORTISE_URL="$(python3 "$SERVERS" url "$PLACE/mariadb")?lease=9s"
    for url in "$postgres" "$MORTISE_URL"; do
        "$MORTISE" init --url "$url&tls=required"
        [ "$(encrypted "$url&tls=off")" = "no" ]
        [ "$(encrypted "$url&tls=required")" = "yes, certificate not checked" ]
        [ "$(encrypted "$url&tls=verify&tls_ca=$PLACE/ours.pem")" = "yes, checked" ]
        run -7 "$MORTISE" run --url "$url&tls=verify&tls_ca=$PLACE/ours.pem" a sh -c 'exit 7'
        fails_with 78 "$MORTISE" run --url "$url&tls=maybe" a true
        fails_with 78 "$MORTISE" run --url "$url&tls=required&tls_ca=$PLACE/ours.pem" a true
        # Another machine's server, as far as its address tells, is not spoken to in the clear.
        [ "$(encrypted "${url/127.0.0.1/0.0.0.0}")" = "yes, certificate not checked" ]
        [ "$(encrypted "${url/127.0.0.1/0.0.0.0}&tls=off")" = "no" ]
    done
    fails_with 78 "$MORTISE" run --url "$postgres&tls=verify&sslmode=disable" a true
    [[ "$output" == *"tls= and sslmode= say the same"* ]]
    # libpq's own words are believed.
    [ "$(encrypted "${postgres/127.0.0.1/0.0.0.0}&sslmode=disable")" = "no" ]
    [ "$(PGSSLMODE=verify-full PGSSLROOTCERT=$PLACE/ours.pem encrypted "$postgres")" = "yes, checked" ]
    PGSSLMODE=verify-full PGSSLROOTCERT=$PLACE/ours.pem run "$MORTISE" run -w 1s --url "${postgres/127.0.0.1/0.0.0.0}" a touch had
    [[ "$output" == *"does not match"* ]]
    [ ! -e had ]
}

@test "tls=verify refuses another CA's certificate and another name, and says what was checked" {
    local url kind
    on_postgres "schema=tls"
    for kind in postgres mariadb; do
        url="$(python3 "$SERVERS" url "$PLACE/$kind")?lease=9s&tls=verify"
        try_at "$kind-other" "$url&tls_ca=$PLACE/others.pem" &
        try_at "$kind-called" "${url/127.0.0.1/0.0.0.0}&tls_ca=$PLACE/ours.pem" &
    done
    wait
    for kind in postgres mariadb; do
        is_refused "$kind-other" "tls=verify checks the certificate against tls_ca= and the host's name"
        is_refused "$kind-called" "tls=verify checks the certificate against tls_ca= and the host's name"
    done
}
