#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01: the command on a real MariaDB server; mortise stands still, and the server does.
load helper
load stopped
load keeper
load server

setup_file() {
    start_server mariadb
}

on_server() {
    export MORTISE_URL
    MORTISE_URL="$(server_url)?lease=2s"
    "$MORTISE" init
}

@test "GN-01 mortise is stopped at any moment: its command is dead before the lock goes on" {
    on_server
    mortise_stands_still
}

@test "GN-01 the server stands still at any moment, for any time: never two at once" {
    on_server
    server_stands_still
}

@test "acquire: a keeper holds the lock until it is given back" {
    on_server
    keeper_keeps
}

@test "GN-03 acquire: the lock ends with the script, however that ends" {
    on_server
    keeper_ends_with_the_script
}

@test "GN-01 GN-03 acquire: the keeper is killed, and the script with it" {
    on_server
    keeper_is_killed
}

@test "GN-06 acquire --lock-delay: the keeper dies, and nobody has the lock for so long" {
    on_server
    keeper_leaves_a_delay
}

@test "GN-01 acquire: the keeper stands still: its script is dead before the lock goes on" {
    on_server
    keeper_stands_still
}

@test "doctor: the server, and the session that it grants" {
    on_server
    run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: MariaDB: this user has rights that locks do not need"* ]]
    [[ "$output" != *"asked for no password"* ]] # as it listens for this machine alone
    [[ "$output" =~ server\ +MariaDB\ [0-9]+\.[0-9.]+-MariaDB ]]
    [[ "$output" =~ session\ granted\ +2.0s ]]
    [[ "$output" =~ across\ hosts\ +yes ]]
}
