#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on a real PostgreSQL server.
load helper
load server

setup_file() {
    # It listens for others too, and asks nobody for a password: doctor has to say so.
    start_server postgres --setting "listen_addresses = '*'"
}

sql() {
    PGOPTIONS="-c default_transaction_read_only=off" psql -X -q -t -A "$(server_url)" -c "$1"
}

# The store in a schema of the test's own.
on_schema() {
    export MORTISE_URL
    MORTISE_URL="$(server_url)?schema=$1&lease=9s"
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

@test "the client library is loaded for this store alone" {
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
    MORTISE_URL="${MORTISE_URL/app@/postgres@}&owner=mortise" run -1 "$MORTISE" doctor
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

@test "an unknown form is named" {
    for form in adviser get_lock ''; do
        MORTISE_URL="$(server_url)?form=$form" run "$MORTISE" run a true
        [ "$status" -ne 0 ]
        [[ "$output" == *"form=$form is not a form of PostgreSQL's locks: advisory or row"* ]]
    done
    MORTISE_URL="$(server_url)?form=row&queue_max=3" run "$MORTISE" run a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"queue_max="* ]]
}

# as_superuser FILE|-c SQL...
as_superuser() {
    psql -X -q -t -A -v ON_ERROR_STOP=1 -U postgres "$(server_url | sed 's/mortise@//')" "$@"
}

# As superuser postgres, whom a mischievous role would like to have run its code.
init_as_superuser() {
    MORTISE_URL="${MORTISE_URL/mortise@/postgres@}" "$MORTISE" init
}

@test "init adopts no schema of another role, and runs none of its code; neither does its script" {
    on_schema squatted
    as_superuser <<'SQL'
CREATE ROLE mallory LOGIN;
GRANT CREATE ON DATABASE mortise TO mallory;
SQL
    psql -X -q -v ON_ERROR_STOP=1 "$(server_url | sed 's/mortise@/mallory@/')" <<'SQL'
CREATE SCHEMA squatted;
CREATE TABLE squatted.version (number integer NOT NULL);
CREATE FUNCTION squatted.rise() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN new; END $$;
CREATE TRIGGER rise BEFORE INSERT ON squatted.version FOR EACH ROW EXECUTE FUNCTION squatted.rise();
GRANT ALL ON SCHEMA squatted TO PUBLIC;
GRANT ALL ON squatted.version TO PUBLIC;
SQL
    fails_with 78 init_as_superuser
    [[ "$output" == *"schema squatted belongs to mallory; drop it, choose another schema=, or trust that role by owner="* ]]
    "$MORTISE" init --print-sql >script
    run -3 as_superuser -f script
    [[ "$output" == *"schema squatted belongs to mallory"* ]]
    [ "$(as_superuser -c "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")" = f ]
    # A schema of one's own, with tables of another's in it.
    on_schema half
    sql "CREATE SCHEMA half; GRANT ALL ON SCHEMA half TO mallory"
    psql -X -q "$(server_url | sed 's/mortise@/mallory@/')" -c "CREATE TABLE half.queue (name text)"
    fails_with 78 "$MORTISE" init
    [[ "$output" == *"half.queue belongs to mallory"* ]]
    [ "$(sql "SELECT count(*) FROM pg_tables WHERE schemaname = 'half'")" = 1 ]
}

@test "owner= names the role whose schema may be used, and no other's is, by locks either" {
    on_schema owned
    "$MORTISE" init
    as_superuser -c "CREATE ROLE keeper NOLOGIN; CREATE ROLE other NOLOGIN"
    local table
    for table in session queue ticket cell version; do as_superuser -c "ALTER TABLE owned.$table OWNER TO keeper"; done
    as_superuser -c "ALTER SEQUENCE owned.fence OWNER TO keeper; ALTER SCHEMA owned OWNER TO keeper;
        GRANT USAGE ON SCHEMA owned TO mortise; GRANT ALL ON ALL TABLES IN SCHEMA owned TO mortise;
        GRANT USAGE ON SEQUENCE owned.fence TO mortise"
    fails_with 78 "$MORTISE" run a touch had
    [[ "$output" == *"schema owned belongs to keeper; drop it, choose another schema=, or trust that role by owner="* ]]
    MORTISE_URL="$MORTISE_URL&owner=other" fails_with 78 "$MORTISE" run a touch had
    run -78 "$MORTISE" doctor
    [[ "$output" == *"schema owned belongs to keeper"* ]]
    MORTISE_URL="$MORTISE_URL&owner=keeper" "$MORTISE" run a true
    for table in "a'b" "a b" "" '$x' "$(printf 'x%.0s' $(seq 64))"; do
        MORTISE_URL="$MORTISE_URL&owner=$table" fails_with 78 "$MORTISE" run a touch had
    done
    [ ! -e had ]
}

@test "a schema that was changed is refused by init and by locks: code in it, and names it would confuse" {
    on_schema changed
    "$MORTISE" init
    sql "CREATE FUNCTION changed.noticed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'"
    "$MORTISE" run a true
    local change
    while IFS='|' read -r change undo says; do
        sql "$change"
        fails_with 78 "$MORTISE" init
        [[ "$output" == *"$says"* ]]
        fails_with 78 "$MORTISE" run a touch had
        [[ "$output" == *"$says"*"; undo that, or choose another schema="* ]]
        sql "$undo"
    done <<'CHANGES'
CREATE TRIGGER watch AFTER INSERT ON changed.ticket FOR EACH ROW EXECUTE FUNCTION changed.noticed()|DROP TRIGGER watch ON changed.ticket|changed.ticket has a trigger
CREATE RULE watch AS ON DELETE TO changed.session DO ALSO NOTHING|DROP RULE watch ON changed.session|changed.session has a rule
CREATE TABLE changed.heir () INHERITS (changed.cell)|DROP TABLE changed.heir|changed.cell has a parent or an heir
ALTER TABLE changed.queue ENABLE ROW LEVEL SECURITY|ALTER TABLE changed.queue DISABLE ROW LEVEL SECURITY|changed.queue has row security
ALTER TABLE changed.ticket ADD CONSTRAINT small CHECK (weight < 100)|ALTER TABLE changed.ticket DROP CONSTRAINT small|changed.ticket has a constraint that computes
ALTER TABLE changed.session ALTER label SET DEFAULT current_user|ALTER TABLE changed.session ALTER label DROP DEFAULT|changed.session has a column that computes
CREATE INDEX odd ON changed.cell (lower(name))|DROP INDEX changed.odd|changed.cell has an index that computes
ALTER TABLE changed.ticket ALTER queue TYPE text COLLATE "default"|ALTER TABLE changed.ticket ALTER queue TYPE text COLLATE "C"|changed.ticket.queue is of another type or collation
ALTER TABLE changed.ticket ALTER weight TYPE integer|ALTER TABLE changed.ticket ALTER weight TYPE bigint|changed.ticket.weight is of another type or collation
ALTER TABLE changed.version RENAME TO moved; CREATE VIEW changed.version AS SELECT * FROM changed.moved|DROP VIEW changed.version; ALTER TABLE changed.moved RENAME TO version|changed.version is no ordinary table
CHANGES
    "$MORTISE" run a true
    "$MORTISE" init
    [ ! -e had ]
}

@test "form=row: a table that somebody else made, or that has other names, is refused" {
    on_schema changed_rows
    MORTISE_URL="$MORTISE_URL&form=row"
    "$MORTISE" init
    sql 'ALTER TABLE changed_rows.row_lock ALTER name TYPE text COLLATE "default"'
    fails_with 78 "$MORTISE" init
    fails_with 78 "$MORTISE" run a touch had
    [[ "$output" == *"changed_rows.row_lock.name is of another type or collation"* ]]
    [ ! -e had ]
}

@test "init waits for another's advisory lock, but not for ever, and says whose it is" {
    on_schema kept_out
    psql -X -q -t -A "$(server_url)" -c "SELECT pg_advisory_lock(7309475598860448101), 'locked'" \
        -c "SELECT pg_sleep(600)" >locked 3>&- &
    local holder=$!
    until_true sql "SELECT 1 / count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    local began try
    MORTISE_URL="$MORTISE_URL&connect=200ms" "$MORTISE" init --print-sql >script
    grep -qx 'SET LOCAL lock_timeout = 1200;' script
    for try in 1 2 3 4 5 6; do # the first in less than half of what the standard connect= gives
        began=$SECONDS
        MORTISE_URL="$MORTISE_URL&connect=200ms" fails_with 69 timeout 60 "$MORTISE" init
        [ $((SECONDS - began)) -ge 15 ] || break
    done
    [ $((SECONDS - began)) -lt 15 ]
    [[ "$output" == *"the advisory lock 7309475598860448101 of mortise init is held by process "*" of mortise; end that, or run mortise init again"* ]]
    kill "$holder"
    sql "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    "$MORTISE" init
}

@test "no function that others left on the way is run, by doctor, init or run" {
    on_schema way
    "$MORTISE" init
    as_superuser <<'SQL'
CREATE ROLE wayside NOLOGIN;
GRANT CREATE ON SCHEMA public TO wayside;
ALTER ROLE mortise SET search_path = public, pg_catalog;
SQL
    as_superuser <<'SQL'
SET ROLE wayside;
CREATE TABLE public.ran (what text);
GRANT ALL ON public.ran TO PUBLIC;
CREATE FUNCTION public.has_table_privilege(regclass, text) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('has_table_privilege'); RETURN false; END $$;
CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('current_setting'); RETURN ''; END $$;
CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('set_config'); RETURN ''; END $$;
CREATE FUNCTION public.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.ran VALUES ('pg_try_advisory_lock'); RETURN true; END $$;
SQL
    run "$MORTISE" doctor
    "$MORTISE" init
    "$MORTISE" run a true
    MORTISE_URL="$MORTISE_URL&form=row" "$MORTISE" init
    MORTISE_URL="$MORTISE_URL&form=row" "$MORTISE" run a true
    MORTISE_URL="$(server_url)?form=advisory&schema=public" "$MORTISE" run a true
    as_superuser -c "ALTER ROLE mortise RESET search_path"
    ran=$(as_superuser -c "SELECT DISTINCT what FROM public.ran")
    echo "ran: $ran"
    [ -z "$ran" ]
}

@test "a server on another host that does not encrypt is refused, unless tls=off says so" {
    on_schema mortise_plain
    "$MORTISE" init
    "$MORTISE" doctor | grep 'encrypted  *no'
    MORTISE_URL="${MORTISE_URL/127.0.0.1/0.0.0.0}" # an address of this machine, that does not look so
    run "$MORTISE" run -w 500ms a touch had
    [ "$status" -eq 69 ]
    [[ "$output" == *"servers on other hosts must encrypt unless tls=off"* ]]
    [ ! -e had ]
    MORTISE_URL="$MORTISE_URL&tls=off" "$MORTISE" run a true
}
