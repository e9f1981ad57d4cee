#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The command on a real MariaDB server.
load helper
load server

setup_file() {
    # It listens for others too, and asks not everybody for a password: doctor has to say so.
    start_server mariadb --setting "bind-address = 0.0.0.0"
}

# "mysql://USER@HOST:PORT", without a database.
host_url() {
    server_url | sed 's|/mortise$||'
}

sql() {
    mariadb --no-defaults -N -B -S "$PLACE/0/socket" -u root "$@"
}

# The store in a database of the test's own.
on_schema() {
    export MORTISE_URL
    MORTISE_URL="$(host_url)/$1?lease=9s"
}

@test "J9 without the schema the error names mortise init" {
    on_schema mortise_absent
    fails_with 78 "$MORTISE" run a true
    sql -e "CREATE DATABASE mortise_empty"
    on_schema mortise_empty
    fails_with 78 "$MORTISE" run a true
    [[ "${lines[0]}" == *"mortise init creates the schema"* ]]
    fails_with 78 "$MORTISE" ls
}

@test "init, and init again; run, ls, exit code; the lock is free at once" {
    on_schema mortise_first
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
    on_schema mortise_maps
    "$MORTISE" init
    "$MORTISE" run a sh -c 'cat /proc/$PPID/maps >maps'
    grep -q libmariadb maps
    run -1 grep -E 'libpq' maps
}

@test "init --print-sql asks no server, and the client makes of it what init makes" {
    MORTISE_URL="mysql://127.0.0.1:1/mortise_printed" "$MORTISE" init --print-sql >script
    sql <script
    on_schema mortise_printed
    "$MORTISE" run a true
}

@test "an older schema is refused and brought forward by init, a newer one is refused" {
    on_schema mortise_newer
    "$MORTISE" init
    sql -e "INSERT INTO mortise_newer.version VALUES (1000)"
    fails_with 78 "$MORTISE" run a true
    [[ "$output" == *"newer mortise"* ]]
    sql -e "DELETE FROM mortise_newer.version; INSERT INTO mortise_newer.version VALUES (1);
            ALTER TABLE mortise_newer.ticket DROP COLUMN delay"
    fails_with 78 "$MORTISE" run a true
    [[ "$output" == *"mortise init brings it forward"* ]]
    "$MORTISE" init
    "$MORTISE" run a true
}

@test "SQ-18 fifty inits at once on an empty server" {
    on_schema mortise_crowd
    inits_at_once
    "$MORTISE" run a true
    [ "$(sql -e "SELECT count(*) FROM mortise_crowd.version")" = 1 ]
}

@test "SE-04 names of databases are words, and lock names are data" {
    local name
    for name in 'a;b' 'a`b' 'A' '1a' "$(printf 'x%.0s' $(seq 49))" 'a b' "a'" 'a/b'; do
        fails_with 78 "$MORTISE" init --url "$(host_url)/$name"
    done
    on_schema mortise_names
    "$MORTISE" init
    start_holder "'; DROP TABLE mortise_names.ticket; --\"%s\$s\\"
    "$MORTISE" ls | grep 'DROP TABLE'
    is_free "'; DROP TABLE mortise_names.ticket"
}

@test "SQ-09 a read-only server is refused, and says so" {
    on_schema mortise_readonly
    "$MORTISE" init
    sql -e "SET GLOBAL read_only = 1"
    run "$MORTISE" run a true
    sql -e "SET GLOBAL read_only = 0"
    [ "$status" -eq 78 ]
    [[ "$output" == *"read-only"* ]]
    "$MORTISE" run a true
}

@test "SE-02 a password is neither shown nor logged, and an option file will do" {
    local bad secret=Tr0ub4dor
    sql -e "CREATE USER keeper IDENTIFIED BY '$secret'; GRANT ALL ON \`mortise%\`.* TO keeper"
    local host
    host=$(host_url | sed 's|mysql://mortise@||')
    MORTISE_URL="mysql://keeper:$secret@$host/mortise_secret" "$MORTISE" init
    for bad in "mysql://keeper:$secret@$host/mortise_secret?nonsense=1" "mysql://keeper:x$secret@$host/mortise_secret" \
        "mysql://keeper:$secret@$host/%zz" "mysql://keeper:$secret@[::1/x" "mysql:keeper:$secret@x/y" \
        "mysql://keeper:$secret@127.0.0.1:1/x"; do
        MORTISE_URL="$bad" run "$MORTISE" init
        [ "$status" -ne 0 ]
        echo "$output" >>out
        MORTISE_URL="$bad" run "$MORTISE" run -w 1 a true
        [ "$status" -ne 0 ]
        echo "$output" >>out
    done
    MORTISE_URL="mysql://keeper:$secret@$host/mortise_secret" run -0 "$MORTISE" bench --seconds 10ms a
    echo "$output" >>out
    grep -q "store  *mysql://keeper@" out
    run -1 grep "$secret" out
    printf '[mortise]\nuser=keeper\npassword=%s\n' "$secret" >options
    MORTISE_URL="mysql://$host/mortise_secret?option_file=$PWD/options" "$MORTISE" run a true
}

@test "C11 acquire in one process, release by its token in another" {
    on_schema mortise_kept
    "$MORTISE" init
    token=$("$MORTISE" acquire --durable deploy)
    run -75 "$MORTISE" run -n deploy true
    "$MORTISE" ls deploy | grep 'nobody: detached'
    MORTISE_TOKEN=$token "$MORTISE" release deploy
    is_free deploy
    MORTISE_TOKEN=$token run -1 "$MORTISE" release deploy
}

@test "least grants: what doc/mariadb.md gives is enough" {
    on_schema mortise_granted
    "$MORTISE" init
    sed -n '/^GRANT/p' "$BATS_TEST_DIRNAME/../../doc/mariadb.md" | sed 's/mortise\./mortise_granted./' >grants
    [ "$(wc -l <grants)" -ge 1 ]
    sql -e "CREATE USER app; $(cat grants)"
    export MORTISE_URL="${MORTISE_URL/mortise@/app@}"
    start_holder a
    run -75 "$MORTISE" run -n a true
    "$MORTISE" ls | grep holds
    token=$("$MORTISE" acquire --durable b)
    MORTISE_TOKEN=$token "$MORTISE" release b
    "$MORTISE" revoke a
    run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: MariaDB: the server listens for other machines, and asked for no password"* ]]
    [[ "$output" != *"this user"* ]]
    sql -e "SET PASSWORD FOR app = PASSWORD('hidden')"
    export MORTISE_URL="${MORTISE_URL/app@/app:hidden@}"
    run -0 "$MORTISE" doctor
    sql -e "GRANT CREATE ON mortise_granted.* TO app"
    run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: MariaDB: this user has rights that locks do not need"* ]]
    [[ "$output" != *hidden* ]]
}

@test "a user who lacks a grant is told of it before it has a lock" {
    on_schema mortise_lacking
    "$MORTISE" init
    sql -e "CREATE USER lacking"
    local grant plain="$MORTISE_URL"
    MORTISE_URL="${MORTISE_URL/mortise@/lacking@}"
    fails_with 77 "$MORTISE" run a touch had
    [[ "$output" == *"doc/mariadb.md has the grants that are needed"* ]]
    for grant in SELECT INSERT UPDATE DELETE; do
        sql -e "GRANT SELECT, INSERT, UPDATE, DELETE ON mortise_lacking.* TO lacking;
                REVOKE $grant ON mortise_lacking.* FROM lacking"
        fails_with 77 "$MORTISE" run a touch had
        [[ "$output" == *"$grant command denied"*"doc/mariadb.md has the grants that are needed"* ]]
    done
    [ ! -e had ]
    MORTISE_URL="$plain" is_free a
}

@test "form=get_lock and form=row: from init to the exit code; an unknown form is named" {
    on_schema mortise_forms
    local plain="$MORTISE_URL" form
    MORTISE_URL="$plain&form=row" run -78 "$MORTISE" run a true
    for form in get_lock row; do # the first needs no database
        export MORTISE_URL="$plain&form=$form"
        "$MORTISE" init
        run -7 "$MORTISE" run a -- sh -c 'exit 7'
        takes_and_leaves a
    done
    for form in advisory ''; do
        MORTISE_URL="$plain&form=$form" run "$MORTISE" run a true
        [ "$status" -ne 0 ]
        [[ "$output" == *"form=$form is not a form of MariaDB's locks: get_lock or row"* ]]
    done
}

@test "form=row: two grants on its table are enough, and each is needed" {
    on_schema mortise_rows
    export MORTISE_URL="$MORTISE_URL&form=row"
    "$MORTISE" init
    sql -e "CREATE USER former; GRANT SELECT, INSERT ON mortise_rows.row_lock TO former"
    MORTISE_URL="${MORTISE_URL/mortise@/former@}"
    takes_and_leaves a
    local grant
    for grant in SELECT INSERT; do
        sql -e "GRANT SELECT, INSERT ON mortise_rows.row_lock TO former;
                REVOKE $grant ON mortise_rows.row_lock FROM former"
        fails_with 77 "$MORTISE" run "lacks $grant" touch had
    done
    [ ! -e had ]
}

@test "form=row: init --print-sql is what init makes, and many may run it at once" {
    MORTISE_URL="mysql://127.0.0.1:1/mortise_printed_rows?form=row" "$MORTISE" init --print-sql >script
    sql <script
    on_schema mortise_printed_rows
    MORTISE_URL="$MORTISE_URL&form=row" "$MORTISE" run a true
    on_schema mortise_crowd_rows
    MORTISE_URL="$MORTISE_URL&form=row"
    inits_at_once
    "$MORTISE" run a true
}

@test "form=get_lock: a user without any grant, and no database" {
    sql -e "CREATE USER ungranted"
    export MORTISE_URL
    MORTISE_URL="$(host_url | sed 's/mortise@/ungranted@/')?form=get_lock&lease=5s"
    takes_and_leaves a
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
    fails_with 69 "$MORTISE" init
    [[ "$output" == *"does not encrypt; servers on other hosts must encrypt unless tls=off"* ]]
    MORTISE_URL="$MORTISE_URL&tls=off" "$MORTISE" run a true
}

@test "SQ-17 tables that were changed are refused: names they would confuse, and triggers, by init and its script" {
    on_schema mortise_changed
    "$MORTISE" init
    sql -e "ALTER TABLE mortise_changed.ticket MODIFY queue VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL"
    fails_with 78 "$MORTISE" run a touch had
    [[ "$output" == *"ticket.queue is of the type varchar(190), which mortise init did not give it; undo that, or choose another database"* ]]
    run -78 "$MORTISE" doctor
    [[ "$output" == *"ticket.queue is of the type varchar(190)"* ]]
    fails_with 78 "$MORTISE" init
    [[ "$output" == *"ticket.queue is of the type varchar(190)"* ]]
    "$MORTISE" init --print-sql >script
    run -1 sql <script
    [[ "$output" == *"ticket.queue is of the type varchar(190)"* ]]
    sql -e "ALTER TABLE mortise_changed.ticket MODIFY queue VARBINARY(760) NOT NULL"
    "$MORTISE" run a true
    sql -e "CREATE TRIGGER mortise_changed.watch BEFORE INSERT ON mortise_changed.version FOR EACH ROW SET @a = 1"
    fails_with 78 "$MORTISE" init
    [[ "$output" == *"version has the trigger watch; undo that, or choose another database"* ]]
    sql -e "DROP TRIGGER mortise_changed.watch"
    "$MORTISE" init
    MORTISE_URL="$MORTISE_URL&form=row" "$MORTISE" init
    MORTISE_URL="$MORTISE_URL&form=row" "$MORTISE" run a true
    sql -e "ALTER TABLE mortise_changed.row_lock MODIFY name VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL"
    MORTISE_URL="$MORTISE_URL&form=row" fails_with 78 "$MORTISE" init
    MORTISE_URL="$MORTISE_URL&form=row" fails_with 78 "$MORTISE" run a touch had
    [ ! -e had ]
}

@test "u30 localhost with a port is asked by TCP; a wrong port is named" {
    fails_with 69 "$MORTISE" --url "mysql://localhost:1/x?connect=1s" ls
    [[ "$output" == *"server on 'localhost'"* && "$output" != *socket* ]]
    fails_with 69 "$MORTISE" --url "mysql://localhost:1/x?connect=1s&socket=$T/none" ls
    [[ "$output" == *"socket '$T/none'"* ]]
    fails_with 78 "$MORTISE" --url mysql://localhost:65536/x ls
    [[ "$output" == *"the port of localhost is not from 1 to 65535"* ]]
}
