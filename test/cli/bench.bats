#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise bench: what it prints, and what it refuses. Not how fast anything is.
load helper

# sound JSON: the figures of a run agree with each other.
sound() {
    python3 -c '
import json, sys
f = json.loads(sys.argv[1])
assert f["acquisitions_per_s"] > 0
assert 0 < f["acquire_us"]["p50"] <= f["acquire_us"]["p99"] <= f["max_wait_ms"] * 1000 * 1.04
assert 0 < f["release_us"]["p50"] <= f["release_us"]["p99"]
assert 0 <= f["share_min"] <= 1 <= f["share_max"] <= f["threads"] * f["processes"]
assert f["handovers_per_s"] <= f["acquisitions_per_s"]
for pair in sys.argv[2:]:
    key, value = pair.split("=", 1)
    assert str(f[key]) == value, (key, f[key])' "$@"
}

# measure SECONDS OPTION...: the figures in $output, of the first of several attempts in which there was
# an acquisition: a busy machine may stand still for so long.
measure() {
    local try
    for try in 1 2 3 4 5 6; do
        run -0 "$MORTISE" bench --json --seconds "$@"
        [[ "$output" =~ \"acquisitions_per_s\":\ 0\.?0*, ]] || break
    done
}

# average LEAST MOST LEAST MOST OPTION...: an acquisition and a release have so many requests and round
# trips on average, in the first of several attempts in which there were enough for an average.
average() {
    local try
    for try in 1 2 3 4 5 6; do
        measure 0.2 "${@:5}"
        run python3 -c 'import json, sys
f, (least, most, fewest, greatest) = json.loads(sys.argv[1]), map(float, sys.argv[2:])
print(f)
assert least <= f["requests"] <= most and fewest <= f["round_trips"] <= greatest' "$output" "${@:1:4}"
        [ "$status" -ne 0 ] || break
    done
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "bench: one thread" {
    measure 0.1 job
    sound "$output" threads=1 processes=1 seconds=0.1 name=job "url=sqlite:$T/state/mortise/locks.db"
}

@test "bench: threads, in loose and in strict order" {
    measure 0.1 --threads 4 job
    sound "$output" threads=4 strict=False
    measure 0.1 --threads 4 --strict job
    sound "$output" threads=4 strict=True
}

@test "bench: processes, alone and with threads" {
    measure 0.2 --processes 3 job
    sound "$output" processes=3
    measure 0.2 --processes 2 --threads 2 job
    sound "$output" processes=2 threads=2
}

@test "bench: several locks, one for each thread, are free of each other" {
    measure 0.2 --threads 4 --locks 4 job
    sound "$output" threads=4 locks=4
    # Only a lock's first acquisition has another owner before it.
    python3 -c 'import json, sys; f = json.loads(sys.argv[1])
assert f["handovers_per_s"] * f["seconds"] <= 4.5, f' "$output"
}

@test "bench: a pause after each release" {
    measure 0.3 --pause 100ms job
    sound "$output"
    python3 -c 'import json, sys; f = json.loads(sys.argv[1])
assert f["acquisitions_per_s"] * f["seconds"] <= 3.5, f' "$output"
}

@test "a2 bench: statements and transactions of an acquire, of a release and of a whole run" {
    measure 0.2 job
    costs "$output" 6 1 4 1
    average 8 13 1.9 2.6 job
    # Threads hand the lock on among themselves without the store.
    average 0 5 0 1 --threads 4 job
    run -0 "$MORTISE" bench --url memory:x --seconds 50ms --json job
    costs "$output" 0 0 0 0
}

@test "bench: leaves nothing behind" {
    run -0 "$MORTISE" bench --seconds 0.1 --processes 2 job
    [ "$("$MORTISE" ls --json)" = "[]" ]
    is_free job
}

@test "bench: the table" {
    run -0 "$MORTISE" bench --url memory:x --seconds 50ms job
    [[ "$output" == *"acquisitions/s"* ]]
    [[ "$output" == *"longest wait"* ]]
    [[ "$output" == *"requests, alone    acquire 0 in 0 round trips, release 0 in 0"* ]]
    [[ "$output" == *"requests, here     0.00 in 0.00 round trips an acquisition"* ]]
}

@test "bench: a quote in a name is still JSON" {
    run -0 "$MORTISE" bench --url memory:x --seconds 50ms --json 'a"b\c'
    sound "$output" 'name=a"b\c'
}

@test "bench: bad arguments" {
    fails_with 64 "$MORTISE" bench
    fails_with 64 "$MORTISE" bench one two
    fails_with 64 "$MORTISE" bench ""
    for bad in 0 -1 1025 x 1.5 "" 99999999999999999999; do
        fails_with 64 "$MORTISE" bench --threads "$bad" job
        fails_with 64 "$MORTISE" bench --processes "$bad" job
        fails_with 64 "$MORTISE" bench --locks "$bad" job
    done
    for bad in 0 -1 x "" 1e9; do
        fails_with 64 "$MORTISE" bench --seconds "$bad" job
    done
    for bad in -1 x "" 1e9; do
        fails_with 64 "$MORTISE" bench --pause "$bad" job
    done
    [ ! -e "$T/state" ]
}

@test "bench: a store that cannot be opened is told once, whatever the number of processes" {
    fails_with 78 "$MORTISE" bench --url nowhere:x --processes 8 job
    fails_with 78 "$MORTISE" bench --url memory:x --processes 2 job
}

# The first to open the store reads the whole log, so its length is every command's start-up.
@test "speed: a hundred commands one after the other leave the log short" {
    for ((i = 0; i < 100; i++)); do "$MORTISE" run job -- true; done
    [ "$(stat -c %s "$T"/state/mortise/locks.db-wal)" -lt 100000 ]
}
