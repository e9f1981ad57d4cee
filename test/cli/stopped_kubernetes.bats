#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# GN-01: the command on a fake of a Kubernetes API server; mortise stands still, and the server does.
load helper
load stopped
load server

setup_file() {
    start_server k8s
}

on_server() {
    export MORTISE_URL
    MORTISE_URL="$(server_url)&lease=2s"
}

@test "GN-01 mortise is stopped at any moment: its command is dead before the lock goes on" {
    on_server
    mortise_stands_still
}

@test "GN-01 the server stands still at any moment, for any time: never two at once" {
    on_server
    server_stands_still
}
