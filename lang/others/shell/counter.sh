#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Adds one to the number in a file, under a lock of the host's agent: counter.sh SOCKET FILE TIMES
# Any client of Redis's protocol will do; a shell has redis-cli. It stays connected while it runs.
set -u
coproc AGENT { exec redis-cli -s "$1" 2>&1; }

ask() { # a fence, milliseconds, OK, or a word that begins an error
    echo "$*" >&"${AGENT[1]}" && read -r reply <&"${AGENT[0]}"
}

for ((i = 0; i < $3; i++)); do
    ask LOCK counter 60000
    fence=$reply
    [[ $fence =~ ^[0-9]+$ ]] || { echo "mortise: $fence" >&2; exit 1; }
    number=$(cat "$2" 2>/dev/null || echo 0)
    ask HELD counter
    [[ $reply =~ ^[1-9][0-9]*$ ]] || { echo "the lock was lost before the write" >&2; exit 1; }
    echo $((number + 1)) >"$2"
    ask UNLOCK counter "$fence"
done
