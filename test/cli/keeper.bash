# SPDX-License-Identifier: Apache-2.0
# Locks that a script takes in its midst, with mortise acquire: what every store has to show.

# has_ended PID: it does not run any longer; a zombie that nobody waits for may keep its number.
has_ended() {
    [ ! -e "/proc/$1/status" ] || grep -q '^State:.[ZX]' "/proc/$1/status"
}

# holder NAME: the number of the process that holds it.
holder() {
    "$MORTISE" ls "$1" --json | sed -n 's/.*"holder": true.*"pid": \([0-9]*\).*/\1/p'
}

# fence_of NAME: of its holder.
fence_of() {
    "$MORTISE" ls "$1" --json | sed -n 's/.*"holder": true.*"fence": \([0-9]*\).*/\1/p'
}

# A script that leads a process group, takes the lock NAME, and holds the witness $W.NAME from then
# on, a file's lock that the system gives back when the last of the group is dead. The next one in
# the queue looks at w.NAME.
start_script() { # NAME OPTION...
    setsid bash -c 'exec 9>"${W:-w}.$0" >"out.$0" 2>&1
        "$MORTISE" acquire --token-file "token.$0" "$@" "$0" || exit
        flock -n 9 || echo overlap >>bad
        if [[ "$*" == *--on-lost* ]]; then (trap "" TERM; exec sleep 600) & fi
        touch "holding.$0"
        exec 3>&-
        while [ ! -e "end.$0" ]; do sleep 0.02 9>&-; done' "$@" 3>&- &
    SCRIPT=$!
    until_true test -e "holding.$1"
    KEEPER=$(holder "$1")
    [ "$(cat "/proc/$KEEPER/comm")" = lock-keeper ]
}

# start_in_place NAME OPTION...: the same with run -F, which ends of itself as soon as end.NAME is there,
# and leaves others of its group behind.
start_in_place() {
    start run -F "${@:2}" "$1" -- bash -c 'exec 9>"w.$0"
        flock -n 9 || echo overlap >>bad
        (trap "" TERM; touch "holding.$0"; exec sleep 600) &
        while [ ! -e "end.$0" ]; do sleep 0.02 9>&-; done' "$1"
    until_true test -e "holding.$1"
    KEEPER=$(holder "$1")
    [ "$(cat "/proc/$KEEPER/comm")" = lock-keeper ]
}

# start_next NAME: the next one in its queue finds the witness free.
start_next() {
    start run "$1" -- bash -c 'exec 9>"w.$0"; flock -n 9 || echo overlap >>bad; touch "granted.$0"' "$1"
}

# wait_for_next NAME PID
wait_for_next() {
    finish "$2"
    [ "$code" -eq 0 ]
    [ -e "granted.$1" ]
    [ ! -e bad ]
}

keeper_keeps() {
    MORTISE_URL=${MORTISE_URL/=2s/=9s} # no lease is waited for
    start_script k
    run -75 "$MORTISE" run -n k true
    "$MORTISE" renew --token-file token.k k >fence
    [ "$(cat fence)" = "$(fence_of k)" ]
    run -0 "$MORTISE" release k <token.k
    [ -z "$output" ]
    run -0 "$MORTISE" run -n k true
    until_true has_ended "$KEEPER"
    run -76 "$MORTISE" release k <token.k
    run -76 "$MORTISE" renew k <token.k
    [ -z "$(cat out.k)" ]
    touch end.k
    finish "$SCRIPT"
}

keeper_ends_with_the_script() {
    local scripts=() keepers=() next=() name
    MORTISE_URL=${MORTISE_URL/=2s/=9s}
    for name in e1 e2; do
        start_script $name
        scripts+=("$SCRIPT")
        keepers+=("$KEEPER")
        start_next $name
        next+=("$PID")
        until_true waiters $name 1
    done
    touch end.e1
    kill -KILL "${scripts[1]}"
    wait_for_next e1 "${next[0]}"
    wait_for_next e2 "${next[1]}"
    until_true has_ended "${keepers[0]}"
    until_true has_ended "${keepers[1]}"
}

# A script that its keeper shall end has no process left when the next one has the lock. A script
# that it shall not end goes on, and is told of the loss.
keeper_is_killed() {
    local names=(d1 d2 d3 d4 d5) scripts=() keepers=() next=() name
    MORTISE_URL=${MORTISE_URL/=2s/=4s} # five keepers, of which none may be lost before
    start_script d1 --on-lost term --grace 300ms
    scripts+=("$SCRIPT") keepers+=("$KEEPER")
    W=own start_script d2
    scripts+=("$SCRIPT") keepers+=("$KEEPER")
    W=own start_script d3
    scripts+=("$SCRIPT") keepers+=("$KEEPER")
    start_in_place d4
    scripts+=("$PID") keepers+=("$KEEPER")
    start_in_place d5
    scripts+=("$PID") keepers+=("$KEEPER")
    touch end.d5
    finish "$PID"
    [ "$code" -eq 0 ]
    for name in "${names[@]}"; do
        start_next "$name"
        next+=("$PID")
        until_true waiters "$name" 1
    done
    kill -KILL "${keepers[@]}" "${scripts[2]}"
    run -76 "$MORTISE" renew d2 <token.d2
    touch end.d2
    finish "${scripts[1]}"
    [ "$code" -eq 0 ]
    for name in 0 1 2 3 4; do wait_for_next "${names[$name]}" "${next[$name]}"; done
    finish "${scripts[0]}"
    [ "$code" -ge 128 ]
    finish "${scripts[3]}"
    [ "$code" -eq 137 ]
}

# A script that holds a lock waits for what it calls, which would wait for the script.
keeper_is_not_waited_for_in_vain() {
    MORTISE_URL=${MORTISE_URL/=2s/=9s}
    run -0 timeout 60 bash -c '"$MORTISE" acquire v >token
        "$MORTISE" acquire x >other
        "$MORTISE" acquire -s y >reader
        expect() { local code=0; "${@:2}" 2>>said || code=$?; [ $code -eq $1 ] || { echo "$code: ${*:2}"; exit 1; }; }
        expect 64 "$MORTISE" run v touch ran
        expect 64 sh -c "sh -c \"\$MORTISE run --also u v touch ran; exit \\\$?\"; exit \$?"
        expect 64 "$MORTISE" run -F v touch ran
        expect 64 "$MORTISE" acquire v
        expect 64 "$MORTISE" run -x y touch ran
        expect 0 "$MORTISE" run -s y true
        expect 75 "$MORTISE" run -w 300ms v touch ran
        expect 75 "$MORTISE" run -n v touch ran
        expect 0 "$MORTISE" run -n u true
        expect 0 "$MORTISE" release v <token
        expect 0 "$MORTISE" run v true'
    [ ! -e ran ]
    [ "$(grep -c 'held by a run or a script that this is part of' said)" -eq 5 ]
    run -64 timeout 60 "$MORTISE" run v "$MORTISE" acquire v
    # Somebody else waits.
    start_script z
    start run z touch ran
    until_true waiters z 1
    run -75 "$MORTISE" run -w 300ms z true
    run -0 "$MORTISE" release z <token.z
    finish "$PID"
    [ "$code" -eq 0 ]
    touch end.z
}

# GN-06: who dies is the keeper; not the script, which lets it give the lock back.
keeper_leaves_a_delay() {
    MORTISE_URL=${MORTISE_URL/=2s/=4s} # l1 must not be lost
    start_script l1 --lock-delay 1h
    touch end.l1
    start run l1 true
    finish "$PID"
    [ "$code" -eq 0 ]
    W=own start_script l2 --lock-delay 1h
    kill -KILL "$KEEPER"
    start_next l2
    until_true eval '"$MORTISE" ls l2 | grep -E "holds .* nobody: delay, [0-9hms]+ left"'
    run -0 "$MORTISE" break l2 --fence "$(fence_of l2)"
    wait_for_next l2 "$PID"
    touch end.l2
}

# On stores with leases.
keeper_stands_still() {
    local scripts=() keepers=() next=() name
    MORTISE_URL=${MORTISE_URL/=2s/=4s} # none may be lost before
    start_script s1 --on-lost term --grace 300ms
    scripts+=("$SCRIPT") keepers+=("$KEEPER")
    W=own start_script s2
    scripts+=("$SCRIPT") keepers+=("$KEEPER")
    start_in_place s3 --grace 300ms
    scripts+=("$PID") keepers+=("$KEEPER")
    for name in s1 s2 s3; do
        start_next "$name"
        next+=("$PID")
        until_true waiters "$name" 1
    done
    kill -STOP "${keepers[@]}"
    until_true test -e granted.s2
    kill -0 "${scripts[1]}"
    touch end.s2
    finish "${scripts[1]}"
    wait_for_next s1 "${next[0]}"
    wait_for_next s2 "${next[1]}"
    wait_for_next s3 "${next[2]}"
    finish "${scripts[0]}"
    [ "$code" -ge 128 ]
    finish "${scripts[2]}"
    [ "$code" -ge 128 ]
    kill -CONT "${keepers[@]}"
    until_true has_ended "${keepers[0]}"
    until_true has_ended "${keepers[1]}"
}
