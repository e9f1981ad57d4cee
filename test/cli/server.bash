# SPDX-License-Identifier: Apache-2.0
# One server for all tests of a file: setup_file calls start_server, and the server ends with the
# file.

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

# start_server KIND [OPTION...]: a server of tools/servers, in a directory that its user may enter.
start_server() {
    export PLACE
    PLACE=$(mktemp -d /tmp/mortise-cli-XXXXXX)
    python3 "$SERVERS" start "$1" "$PLACE" "${@:2}" >/dev/null 3>&-
}

teardown_file() {
    python3 "$SERVERS" stop "$PLACE"
}

# server COMMAND: pause, resume, kill, ...
server() {
    python3 "$SERVERS" "$1" "$PLACE" 0
}

server_url() {
    cat "$PLACE/url"
}
