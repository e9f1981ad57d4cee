# SPDX-License-Identifier: Apache-2.0
# The checks of a shell script, for `.`: place is a directory of the script's own, gone at its end.

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
number=0
failed=0

# check TEXT COMMAND...: one TAP line; the end of the command's output if it fails.
check() {
    what=$1
    shift
    number=$((number + 1))
    if "$@" >"$place/log" 2>&1; then
        echo "ok $number - $what"
    else
        echo "not ok $number - $what"
        tail -40 "$place/log" | sed 's/^/# /'
        failed=1
    fi
}

# The end of the script.
finish() {
    echo "1..$number"
    exit $failed
}
