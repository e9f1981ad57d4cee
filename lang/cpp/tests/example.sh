#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example counts: example.sh PROGRAM
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export MORTISE_URL="sqlite:$place/locks.db"
for _ in 1 2 3; do
    "$1" "$place/number"
done
[ "$(cat "$place/number")" = 3 ]
