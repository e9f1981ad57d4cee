#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise ls: text and JSON.
load helper

@test "ls: an empty store" {
    run "$MORTISE" ls
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" =~ ^NAME\ +PLACE\ +MODE\ +FENCE\ +SINCE\ +LABEL$ ]]
    run "$MORTISE" ls --json
    [ "$status" -eq 0 ]
    [ "$output" = "[]" ]
    run "$MORTISE" ls nobody
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 1 ]
}

@test "ls: who holds, who waits, in order" {
    start_holder deploy
    start run deploy -- true
    first=$PID
    until_true waiters deploy 1
    start run deploy -- true
    second=$PID
    until_true waiters deploy 2
    run "$MORTISE" ls
    echo "$output"
    host=$(uname -n)
    [ "${#lines[@]}" -eq 4 ]
    [[ "${lines[1]}" =~ ^deploy\ +holds\ +[0-9]+\ +[0-9.]+s\ +sh\ host\ $host\ pid\ $HOLDER$ ]]
    [[ "${lines[2]}" =~ ^deploy\ +1\ +[0-9]+\ +[0-9.]+s\ +true\ host\ $host\ pid\ $first$ ]]
    [[ "${lines[3]}" =~ ^deploy\ +2\ +[0-9]+\ +[0-9.]+s\ +true\ host\ $host\ pid\ $second$ ]]
}

@test "u11 ls --json: fields and types" {
    start_holder 'a"b\c/ü'
    start run 'a"b\c/ü' -- true
    until_true waiters 'a"b\c/ü' 1
    "$MORTISE" ls --json > out
    python3 - "$HOLDER" <<'PY'
import datetime, json, os, sys
rows = json.load(open("out"))
assert [r["place"] for r in rows] == [0, 1], rows
assert [r["holder"] for r in rows] == [True, False], rows
for r in rows:
    assert set(r) == {"name", "kind", "place", "holder", "fence", "fence_text", "since", "label", "host", "pid",
                      "weight", "capacity", "detached", "delay_ms", "node"}, r
    assert r["detached"] is False and r["delay_ms"] == 0, r
    assert (r["weight"], r["capacity"]) == (1, 1), r
    assert r["host"] == os.uname().nodename and r["label"] == ("sh" if r["holder"] else "true"), r
    assert r["name"] == 'a"b\\c/ü' and r["kind"] == "mutex", r
    assert type(r["fence"]) is int and r["fence"] > 0, r
    assert r["fence_text"] == str(r["fence"]), r
    since = datetime.datetime.strptime(r["since"], "%Y-%m-%dT%H:%M:%S.%fZ")
    age = datetime.datetime.utcnow() - since
    assert datetime.timedelta(seconds=-1) < age < datetime.timedelta(minutes=1), r
assert rows[0]["fence"] < rows[1]["fence"], rows
assert rows[0]["pid"] == int(sys.argv[1]) != rows[1]["pid"], rows
PY
}

@test "u19 ls shows the command, whom a keeper keeps the lock for, and a leader's value" {
    echo 'token=$("$MORTISE" acquire kept) && touch kept && exec sleep 600' >script.sh
    env secret=1 bash script.sh 3>&- &
    script=$!
    until_true test -e kept
    run -0 "$MORTISE" ls kept
    [[ "${lines[1]}" == *" bash ($script) host "* ]]
    start run -F placed -- sh -c 'touch placed; sleep 600'
    until_true test -e placed
    run -0 "$MORTISE" ls placed
    [[ "${lines[1]}" == *" sh ($PID) host "* ]]
    start elect --value 'node 7' leads -- sleep 600
    until_true sh -c '"$MORTISE" ls leads | grep " node 7 host "'
    for words in "one -c 'sleep 600 7'" "one -c 'secret=1 sleep 600'" "one -- /bin/sleep 600" \
        "--label '' one -- sleep 600"; do
        eval "start run $words"
        until_true sh -c '"$MORTISE" ls one | grep " host "'
        "$MORTISE" ls one | sed -n '2s/.* [0-9.]*s  \(.*\)host .*/\1/p' >>shown
        kill "$PID"
        finish "$PID"
    done
    [ "$(tr '\n' , <shown)" = "sleep ,,sleep ,," ]
}

@test "ls NAME: that lock alone" {
    start_holder one
    rm holding
    start_holder two
    run "$MORTISE" ls two
    [ "${#lines[@]}" -eq 2 ]
    [[ "${lines[1]}" == two* ]]
    run "$MORTISE" ls
    [ "${#lines[@]}" -eq 3 ]
}

@test "ls: a long name moves its own row alone, and is whole" {
    local long
    long=$(printf 'x%.0s' {1..200})
    start_holder short
    rm holding
    start_holder "$long"
    run -0 "$MORTISE" ls
    [[ "${lines[1]}" =~ ^short\ \ holds\  ]]
    [[ "${lines[2]}" == "$long  holds "* ]]
}

@test "SE-03 no escape of a terminal that another program wrote as a kind is printed" {
    start_holder victim
    python3 - "$XDG_STATE_HOME/mortise/locks.db" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("UPDATE mortise_ticket SET kind = ?", ("mutex\x1b]0;OWNED\x07\x1b[2J\nvictim: free",))
END
    for words in "status victim" "status --json victim" "ls" "ls --json" "top --once"; do
        run "$MORTISE" $words
        [[ "$output" != *$'\x1b'* && "$output" != *$'\x07'* ]]
        run -1 grep -x "victim: free" <<<"$output"
    done
}
