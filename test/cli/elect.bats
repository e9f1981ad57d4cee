#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise elect: to lead, alone; to run a command meanwhile; to see who leads.
load helper

# Candidate $1 leads the election e until it is ended.
start_leader() {
    start elect e --value "$1" -- sh -c "touch leads-$1; exec sleep 600"
    LEADER=$PID
    until_true test -e "leads-$1"
}

leads() {
    [[ "$("$MORTISE" elect e --once)" == *" $1" ]]
}

nobody_leads() {
    [ "$("$MORTISE" elect e --once)" = "nobody leads" ]
}

@test "G1 elect: the command runs while its candidate leads, and ends with its code" {
    run -7 "$MORTISE" elect --value 'web "1"' e -- sh -c '"$MORTISE" elect e --once; echo "$MORTISE_NAME $MORTISE_FENCE"
"$MORTISE" elect --once --json e; exit 7'
    fence="${lines[0]%% *}"
    [ "${lines[0]}" = "$fence web \"1\"" ]
    [ "${lines[1]}" = "e $fence" ]
    python3 -c 'import json, sys
row = json.loads(sys.argv[1])
assert (row["event"], row["name"], row["fence"], row["value"]) == ("leader", "e", int(sys.argv[2]), "web \"1\""), row
assert row["fence_text"] == sys.argv[2], row' "${lines[2]}" "$fence"
    run -1 "$MORTISE" elect e --once
    [ "$output" = "nobody leads" ]
}

@test "G3 G4 the next in line leads when the leader is gone, and observers are told in order" {
    "$MORTISE" elect --observe e >seen 3>&- &
    until_true grep -x "nobody leads" seen
    start_leader one
    first=$LEADER
    start elect e --value two -- touch leads-two
    second=$PID
    until_true waiters e 1
    leads one
    [ ! -e leads-two ]
    until_true grep one seen
    kill -KILL "$first"
    finish "$second"
    [ "$code" -eq 0 ]
    [ -e leads-two ]
    until_true nobody_leads
    until_true sh -c 'tail -n 1 seen | grep -qx "nobody leads"'
    [ "$(grep -c one seen)" -eq 1 ]
    python3 -c 'rows = [int(line.split()[0]) for line in open("seen") if line[0] != "n"]
assert rows and rows == sorted(set(rows)), rows'
}

@test "G1 elect: without a command the candidate leads until a signal ends it" {
    start elect e --value plain >out
    until_true grep 'elected, fence [1-9]' out
    leads plain
    kill "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    nobody_leads
}

@test "G4 leadership that is taken away: 76, and the command is stopped" {
    start_leader one
    "$MORTISE" break e --fence "$("$MORTISE" elect e --once | cut -d ' ' -f 1)"
    finish "$LEADER"
    [ "$code" -eq 76 ]
    start elect e >out 2>err
    until_true grep elected out
    "$MORTISE" break e --fence "$("$MORTISE" elect e --once | cut -d ' ' -f 1)"
    finish "$PID"
    [ "$code" -eq 76 ]
    grep 'e: leadership was lost' err
}

@test "elect: while another leads, 75 immediately or after -w, or the code of -E" {
    start_leader one
    fails_with 75 "$MORTISE" elect -n e touch ran
    [[ "$output" == *"held by "* ]]
    fails_with 75 "$MORTISE" elect -w 50ms e -- touch ran
    run -0 "$MORTISE" elect -n --quiet-conflict e touch ran
    [ -z "$output" ]
    [ ! -e ran ]
}

@test "a candidate that is told to end while it waits leaves nothing queued" {
    start_leader one
    start elect e touch ran
    until_true waiters e 1
    kill "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    waiters e 0
    [ ! -e ran ]
}

@test "an elect inside an elect of the same election runs its command at once" {
    run -0 "$MORTISE" elect e -- "$MORTISE" elect -n e echo inside
    [ "$output" = inside ]
    fails_with 64 "$MORTISE" elect e -- "$MORTISE" run -n e true
}

@test "elect: bad arguments" {
    for words in "" "e --observe true" "e --once -c true" "e --no-such" "--also f e true" "-s e true"; do
        fails_with 64 "$MORTISE" elect $words
    done
    fails_with 64 "$MORTISE" elect --value "$(printf 'x%.0s' $(seq 4097))" e true
    [ ! -e state ]
}
