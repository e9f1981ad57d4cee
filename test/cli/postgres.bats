#!/usr/bin/env bats
# The command on a real PostgreSQL server.
load helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    # The server runs as another user, to whom BATS_FILE_TMPDIR is closed.
    export PLACE
    PLACE=$(mktemp -d /tmp/mortise-cli-pg-XXXXXX)
    # It listens for others too, and asks nobody for a password: doctor has to say so.
    python3 "$SERVERS" start postgres "$PLACE" --setting "listen_addresses = '*'" >/dev/null 3>&-
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE"
}

server_url() {
    python3 "$SERVERS" url "$PLACE"
}

sql() {
    PGOPTIONS="-c default_transaction_read_only=off" psql -X -q -t -A "$(server_url)" -c "$1"
}

# The store in a schema of the test's own.
on_schema() {
    export MORTISE_URL
    MORTISE_URL="$(server_url)?schema=$1&lease=2s"
}

@test "J9 without the schema the error names mortise init" {
    on_schema absent
    fails_with 78 "$MORTISE" run a true
    [[ "${lines[0]}" == *"mortise init creates the schema"* ]]
    fails_with 78 "$MORTISE" ls
}

@test "init, and init again; run, ls, exit code; the lock is free at once" {
    on_schema first
    "$MORTISE" init
    "$MORTISE" init
    run -7 "$MORTISE" run a -- sh -c 'exit 7'
    is_free a
    start_holder b
    "$MORTISE" ls b | grep holds
    run -75 "$MORTISE" run -n b true
    kill "$HOLDER"
    finish "$HOLDER"
    is_free b
}

@test "what is loaded is loaded for this store" {
    on_schema maps
    "$MORTISE" init
    "$MORTISE" run a sh -c 'cat /proc/$PPID/maps >maps'
    grep -q libpq maps
}

@test "init --print-sql asks no server, and psql makes of it what init makes" {
    MORTISE_URL="postgresql://127.0.0.1:1/none?schema=printed" "$MORTISE" init --print-sql >script
    psql -X -q -v ON_ERROR_STOP=1 "$(server_url)" -f script >/dev/null
    on_schema printed
    "$MORTISE" run a true
}

@test "an older schema is refused and brought forward by init, a newer one is refused" {
    on_schema older
    "$MORTISE" init
    token=$("$MORTISE" acquire --durable kept)
    sql "ALTER TABLE older.ticket DROP COLUMN linger, DROP COLUMN delay; UPDATE older.version SET number = 1"
    fails_with 78 "$MORTISE" run a true
    [[ "$output" == *"mortise init brings it forward"* ]]
    "$MORTISE" init
    run -75 "$MORTISE" run -n kept true
    MORTISE_TOKEN=$token "$MORTISE" release kept
    sql "UPDATE older.version SET number = 1000"
    fails_with 78 "$MORTISE" run a true
    [[ "$output" == *"newer mortise"* ]]
}

@test "SQ-18 fifty inits at once on an empty database" {
    on_schema crowd
    inits_at_once
    "$MORTISE" run a true
    [ "$(sql "SELECT count(*) FROM crowd.version")" = 1 ]
}

@test "SE-04 names of schemas are words, and lock names are data" {
    local name
    for name in 'a;b' 'a"b' 'A' '1a' 'pg_x' '' "$(printf 'x%.0s' $(seq 49))" 'a b' "a'"; do
        fails_with 78 "$MORTISE" init --url "$(server_url)?schema=$name"
    done
    on_schema names
    "$MORTISE" init
    start_holder "'; DROP TABLE names.ticket; --\"%s\$1\\"
    "$MORTISE" ls | grep 'DROP TABLE'
    is_free "'; DROP TABLE names.ticket"
}

@test "SQ-09 a read-only server is refused, and says so" {
    on_schema readonly
    "$MORTISE" init
    sql "ALTER ROLE mortise SET default_transaction_read_only = on"
    fails_with 78 "$MORTISE" run a true
    sql "ALTER ROLE mortise RESET default_transaction_read_only"
    [[ "$output" == *"read-only"* ]]
    "$MORTISE" run a true
}

@test "a password is neither shown nor logged, nor seen by the command" {
    local url secret=Tr0ub4dor
    url="$(server_url | sed "s/mortise@/mortise:$secret@/")"
    MORTISE_URL="$url?schema=secret" "$MORTISE" init
    MORTISE_URL="$url?schema=secret" "$MORTISE" run a sh -c 'tr "\\0" "\\n" </proc/self/environ' >out 2>&1
    local bad
    for bad in "$url?schema=secret&nonsense=1" "$url?schema=absent" "$url/%zz" \
        "postgresql://mortise:$secret@[::1/x" "postgresql:mortise:$secret@x/y" \
        "postgresql://mortise:$secret@127.0.0.1:1/x"; do
        MORTISE_URL="$bad" run "$MORTISE" init --print-sql
        echo "$output" >>out
        MORTISE_URL="$bad&connect=100ms" run "$MORTISE" run -w 1 a true
        echo "$output" >>out
    done
    MORTISE_URL="$url?schema=secret" run "$MORTISE" bench --seconds 10ms a
    echo "$output" >>out
    grep -q "store  *postgresql://mortise@" out
    run -1 grep "$secret" out
    run -1 grep -r "$secret" "$PLACE/0/log"
}

@test "C11 acquire in one process, release by its token in another" {
    on_schema kept
    "$MORTISE" init
    token=$("$MORTISE" acquire --durable deploy)
    run -75 "$MORTISE" run -n deploy true
    "$MORTISE" ls deploy | grep 'nobody: detached'
    MORTISE_TOKEN=$token "$MORTISE" release deploy
    is_free deploy
    MORTISE_TOKEN=$token run -1 "$MORTISE" release deploy
}

@test "least grants: what doc/postgresql.md gives is enough" {
    on_schema granted
    "$MORTISE" init
    psql -X -q -v ON_ERROR_STOP=1 -U postgres "$(server_url | sed 's/mortise@//')" <<'SQL'
DROP ROLE IF EXISTS app;
CREATE ROLE app LOGIN;
SQL
    sed -n '/^GRANT/p' "$BATS_TEST_DIRNAME/../../doc/postgresql.md" | sed 's/mortise\./granted./g; s/SCHEMA mortise/SCHEMA granted/' >grants
    [ "$(wc -l <grants)" -ge 3 ]
    psql -X -q -v ON_ERROR_STOP=1 "$(server_url)" -f grants
    export MORTISE_URL="${MORTISE_URL/mortise@/app@}"
    start_holder a
    run -75 "$MORTISE" run -n a true
    "$MORTISE" ls | grep holds
    token=$("$MORTISE" acquire --durable b)
    MORTISE_TOKEN=$token "$MORTISE" release b
    run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: PostgreSQL: the server listens for other machines, and asked for no password"* ]]
    [[ "$output" != *"this user"* ]]
    psql -X -q -U postgres "$(server_url | sed 's/mortise@//')" -c "ALTER ROLE app CREATEDB"
    run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: PostgreSQL: this user may make roles or databases"* ]]
    MORTISE_URL="${MORTISE_URL/app@/postgres@}" run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: PostgreSQL: this user is a superuser"* ]]
    # Over the socket of this machine nobody need be asked.
    psql -X -q -U postgres "$(server_url | sed 's/mortise@//')" -c "ALTER ROLE app NOCREATEDB"
    socket=$(psql -X -q -t -A -U postgres "$(server_url | sed 's/mortise@//')" -c "SHOW unix_socket_directories")
    [ -n "$socket" ]
    MORTISE_URL=$(sed "s|@[^/]*|@${socket//\//%2F}:$(sql 'SHOW port')|" <<<"$MORTISE_URL")
    run -0 "$MORTISE" doctor
}

@test "a user who lacks a grant is told of it before it has a lock" {
    on_schema lacking
    "$MORTISE" init
    psql -X -q -U postgres "$(server_url | sed 's/mortise@//')" -c "CREATE ROLE lacking LOGIN"
    local grant tables=lacking.session,lacking.queue,lacking.ticket,lacking.cell plain="$MORTISE_URL"
    MORTISE_URL="${MORTISE_URL/mortise@/lacking@}"
    for grant in "SELECT ON lacking.session" "INSERT ON lacking.session" "UPDATE ON lacking.session" \
        "DELETE ON lacking.session" "SELECT ON lacking.queue" "INSERT ON lacking.queue" "UPDATE ON lacking.queue" \
        "SELECT ON lacking.ticket" "INSERT ON lacking.ticket" "DELETE ON lacking.ticket" \
        "SELECT ON lacking.version" "USAGE ON SEQUENCE lacking.fence"; do
        sql "GRANT USAGE ON SCHEMA lacking TO lacking; GRANT SELECT, INSERT, UPDATE, DELETE ON $tables TO lacking;
             GRANT SELECT ON lacking.version TO lacking; GRANT USAGE ON SEQUENCE lacking.fence TO lacking;
             REVOKE $grant FROM lacking"
        fails_with 77 "$MORTISE" run a touch had
        [[ "$output" == *"permission denied for "*" ${grant##*.}"*"doc/postgresql.md has the grants that are needed"* ]]
    done
    [ ! -e had ]
    MORTISE_URL="$plain" is_free a
}

@test "form=advisory: psql's lock of a number keeps the command out, and the command psql's" {
    export MORTISE_URL
    MORTISE_URL="$(server_url)?form=advisory&namespace=&lease=5s"
    "$MORTISE" init
    run -0 "$MORTISE" run 42 -- psql -X -q -t -A "$(server_url)" -c "SELECT pg_try_advisory_lock(42)"
    [ "$output" = f ]
    run psql -X -q -t -A "$(server_url)" -c "SELECT pg_advisory_lock(42)" \
        -c "\\! '$MORTISE' run -n 42 true; echo code \$?" -c "\\! '$MORTISE' ls 42"
    [[ "$output" == *"code 75"* ]]
    [[ "$output" == *"psql (process "* ]]
    run "$MORTISE" ls
    [ "$status" -ne 0 ]
    [[ "$output" == *"can list one name"* ]]
}

@test "form=row: its table is made by init, and three grants are enough" {
    on_schema forms
    MORTISE_URL="$MORTISE_URL&form=row"
    fails_with 78 "$MORTISE" run a true
    [[ "${lines[0]}" == *"mortise init creates the schema"* ]]
    "$MORTISE" init
    "$MORTISE" init
    psql -X -q -v ON_ERROR_STOP=1 -U postgres "$(server_url | sed 's/mortise@//')" <<'SQL'
CREATE ROLE former LOGIN;
GRANT USAGE ON SCHEMA forms TO former;
GRANT SELECT, INSERT, UPDATE ON forms.row_lock TO former;
SQL
    export MORTISE_URL="${MORTISE_URL/mortise@/former@}"
    start_holder a
    run -75 "$MORTISE" run -n a true
    [[ "$("$MORTISE" ls)" == *$'\n'a\ *holds* ]]
    kill "$HOLDER"
    finish "$HOLDER"
    is_free a
    local grant
    for grant in SELECT INSERT UPDATE; do
        sql "GRANT SELECT, INSERT, UPDATE ON forms.row_lock TO former; REVOKE $grant ON forms.row_lock FROM former"
        fails_with 77 "$MORTISE" run "lacks $grant" touch had
    done
    [ ! -e had ]
}

@test "form=row: init --print-sql is what init makes, and many may run it at once" {
    MORTISE_URL="postgresql://127.0.0.1:1/none?schema=printed_rows&form=row" "$MORTISE" init --print-sql >script
    psql -X -q -v ON_ERROR_STOP=1 "$(server_url)" -f script >/dev/null
    on_schema printed_rows
    MORTISE_URL="$MORTISE_URL&form=row" "$MORTISE" run a true
    on_schema crowd_rows
    MORTISE_URL="$MORTISE_URL&form=row"
    inits_at_once
    "$MORTISE" run a true
}

@test "form=advisory: a user without any grant" {
    psql -X -q -v ON_ERROR_STOP=1 -U postgres "$(server_url | sed 's/mortise@//')" -c "CREATE ROLE ungranted LOGIN"
    export MORTISE_URL
    MORTISE_URL="$(server_url | sed 's/mortise@/ungranted@/')?form=advisory&lease=5s"
    takes_and_leaves a
}

@test "a form that there is not is named" {
    for form in adviser get_lock ''; do
        MORTISE_URL="$(server_url)?form=$form" run "$MORTISE" run a true
        [ "$status" -ne 0 ]
        [[ "$output" == *"form=$form is not a form of PostgreSQL's locks: advisory or row"* ]]
    done
    MORTISE_URL="$(server_url)?form=row&queue_max=3" run "$MORTISE" run a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"queue_max="* ]]
}
