# SPDX-License-Identifier: Apache-2.0
# A cluster that each test starts for itself, by start_server.

teardown() {
    cd /
    clean_up
    python3 "$SERVERS" stop "$PLACE"
}

teardown_file() {
    true
}

# of_server N: the URL of one server alone.
of_server() {
    python3 "$SERVERS" urls "$PLACE" | cut -d , -f "$(($1 + 1))"
}

# lasts_through N COMMAND...: the hold of start_holder lasts does, and of four clients that compete most of N turns each are
# served, one by one.
lasts_through() {
    contest 4 "$@"
    [ "$(wc -l <made)" -ge $((3 * $1)) ]
    kill -0 "$HOLDER"
    run -75 "$MORTISE" run -n lasts true
}

# stand_still N SECONDS
stand_still() {
    python3 "$SERVERS" pause "$PLACE" "$1"
    sleep "$2"
    python3 "$SERVERS" resume "$PLACE" "$1"
}
