#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The terminal's foreground and its keys; the tests themselves are in terminal.py,
# which has a pseudo-terminal.
load helper

on_terminal() {
    timeout 120 python3 "$BATS_TEST_DIRNAME/terminal.py" "$1"
}

@test "terminal: the command's group has the foreground, and reads" {
    on_terminal foreground
}

@test "terminal: the foreground is given back" {
    on_terminal given_back
}

@test "terminal: Ctrl-C reaches the command, 130" {
    on_terminal interrupt
}

@test "terminal: Ctrl-C while waiting, 130 and nothing queued" {
    on_terminal interrupt_waiting
}

@test "terminal: Ctrl-Z and fg, as shells expect" {
    on_terminal suspend
}

@test "terminal: Ctrl-Z without a shell above does not hang" {
    on_terminal suspend_orphan
}

@test "terminal: in the background, then fg" {
    on_terminal background
}

@test "terminal: in a pipeline the neighbour keeps the terminal until the command asks" {
    on_terminal pipeline
}

@test "terminal: the demo shows progress" {
    on_terminal demo
}
