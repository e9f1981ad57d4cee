# SPDX-License-Identifier: Apache-2.0
# Rounds in which mortise, or its store, stands still at a random moment, with a witness:
# every process of the command holds w, a file's lock that the system gives back when the
# last of them is dead. The next holder checks that w is free.

ROUNDS="${MORTISE_STOP_ROUNDS:-2}"

WITNESS='exec 9>w; flock -n 9 || echo overlap >>bad
trap "" TERM
(trap "" TERM; sleep 600) &
touch holding
sleep 600'
NEXT='exec 9>w; flock -n 9 || echo overlap >>bad; touch granted'

# pause_for LEAST MOST: sleeps some milliseconds between the two.
pause_for() {
    local ms=$(($1 + RANDOM * ($2 - $1) / 32767))
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# begin_round GRACE [LEASE]: a holder that is hard to end in $HOLDER, and who waits behind it in
# $NEXT_ONE, with this lease instead of two seconds. In every other round the holder may not have
# begun yet.
begin_round() {
    rm -f holding granted
    start run --grace "$1" a -- bash -c "$WITNESS"
    HOLDER=$PID
    ((round % 2)) || until_true test -e holding
    if [ "${2:-}" ]; then local -x MORTISE_URL="${MORTISE_URL/=2s/=$2}"; fi
    start run a -- bash -c "$NEXT"
    NEXT_ONE=$PID
    pause_for 0 200
}

# end_round: the holder goes, if it is still there; all the same the next one is alone,
# and has the lock until its command has ended.
end_round() {
    kill -KILL "$HOLDER" 2>/dev/null || true
    finish "$HOLDER"
    finish "$NEXT_ONE"
    echo "holder, next: $HOLDER $NEXT_ONE, $code"
    [ ! -e bad ]
    [ "$code" -eq 0 ]
    [ -e granted ]
}

# The scenes of a store with a server and leases of two seconds; `server pause` and `server
# resume` stop it and let it go on. Only the holder's lease may end in that time, so the next one's
# lease outlasts it, also on a slow machine.

mortise_stands_still() {
    for ((round = 0; round < ROUNDS; round++)); do
        begin_round 300ms 9s
        kill -STOP "$HOLDER"
        # The guard sees to it; and if mortise goes on just then, mortise too.
        if ((RANDOM % 2)); then pause_for 1000 2500; else until_true test -e granted; fi
        kill -CONT "$HOLDER"
        end_round
    done
}

server_stands_still() {
    for ((round = 0; round < ROUNDS; round++)); do
        begin_round 300ms 9s
        server pause
        pause_for 500 3500
        server resume
        end_round
    done
}

# A command on a store: its own exit code, once a period, and a leader.
command_counts_and_leads() {
    MORTISE_URL=${MORTISE_URL/=2s/=9s}
    run -7 "$MORTISE" run a -- sh -c 'exit 7'
    is_free a
    run -0 "$MORTISE" run --every 240000h a echo ran
    [ "$output" = ran ]
    run -0 "$MORTISE" run --every 240000h a echo ran
    [ -z "$output" ]
    run -0 "$MORTISE" elect e --value me -- "$MORTISE" elect e --once
    [[ "$output" == *" me" ]]
}
