# Rounds in which mortise, or its store, stands still at a random moment, with a witness:
# every process of the command holds w, a file's lock that the system gives back when the
# last of them is dead. Who is granted the lock next looks whether it is free.

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

# begin_round GRACE: a holder that is hard to end in $HOLDER, and who waits behind it in
# $NEXT_ONE. In every other round the holder may not have begun yet.
begin_round() {
    rm -f holding granted
    start run --grace "$1" a -- bash -c "$WITNESS"
    HOLDER=$PID
    ((round % 2)) || until_true test -e holding
    start run a -- bash -c "$NEXT"
    NEXT_ONE=$PID
    pause_for 0 200
}

# end_round [CODE]: the holder goes, if it is still there; all the same the next one is alone,
# and has the lock until its command has ended. CODE: it may also end with this, for a lease of two
# seconds is lost where the machine stands still too; whoever comes then has the lock.
end_round() {
    kill -KILL "$HOLDER" 2>/dev/null || true
    finish "$HOLDER"
    finish "$NEXT_ONE"
    echo "holder, next: $HOLDER $NEXT_ONE, $code"
    [ ! -e bad ]
    if [ "$code" -ne 0 ] && [ "$code" -eq "${1:-0}" ]; then
        until_true is_free a
        return
    fi
    [ "$code" -eq 0 ]
    [ -e granted ]
}

# The scenes of a store with a server and leases of two seconds; `server pause` and `server
# resume` stop it and let it go on.

# Whether the next one has had the lock, if only to lose it.
has_had_its_turn() {
    [ -e granted ] || is_gone "$NEXT_ONE"
}

mortise_stands_still() {
    for ((round = 0; round < ROUNDS; round++)); do
        begin_round 300ms
        kill -STOP "$HOLDER"
        # The guard sees to it; and if mortise goes on just then, mortise too.
        if ((RANDOM % 2)); then pause_for 1000 2500; else until_true has_had_its_turn; fi
        kill -CONT "$HOLDER"
        end_round 76
    done
}

server_stands_still() {
    for ((round = 0; round < ROUNDS; round++)); do
        begin_round 300ms
        server pause
        pause_for 500 3500
        server resume
        end_round 76
    done
}
