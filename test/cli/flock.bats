#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# From flock(1): the lines of doc/from-flock.md as they stand there, those of flock beside those of
# mortise; what util-linux tests of flock; letters and long names; --flock.
load helper

PAGE="$BATS_TEST_DIRNAME/../../doc/from-flock.md"

setup_file() {
    command -v flock
}

# lines_of HEADING flock|mortise: the block of shell under it.
lines_of() {
    local fence='```sh'
    [ "$2" = mortise ] || fence='```sh flock'
    awk -v heading="## $1" -v fence="$fence" '
        /^## / { inside = $0 == heading }
        /^```/ && taking { exit }
        taking
        inside && $0 == fence { taking = 1 }' "$PAGE"
}

# prepare HEADING: scripts flock.sh and mortise.sh, and a command "job", which notes that it is in,
# stays while there is a file "stay", and ends with 3.
prepare() {
    mkdir -p bin
    ln -sf "$MORTISE" bin/mortise
    cat >bin/job <<'SH'
#!/bin/sh
echo in >>jobs
while [ -e stay ]; do sleep 0.02; done
exit 3
SH
    chmod +x bin/job
    PATH="$T/bin:$PATH"
    for form in flock mortise; do
        lines_of "$1" "$form" >lines
        [ -s lines ]
        { echo '#!/bin/sh'; cat lines; } >"$form.sh"
        chmod +x "$form.sh"
    done
}

jobs_run() {
    [ "$(cat jobs 2>/dev/null | wc -l)" -eq "$1" ]
}

# Starts $form, whose job runs as long as the file `stay` is there: $first.
start_form() {
    rm -f jobs
    touch stay
    "./$form.sh" 3>&- &
    first=$!
    until_true jobs_run 1
}

# runs_alone HEADING CODE: each form runs its job, one at a time, and ends with this code.
runs_alone() {
    prepare "$1"
    for form in flock mortise; do
        start_form
        "./$form.sh" 3>&- &
        second=$!
        sleep 0.3
        jobs_run 1
        rm stay
        all_end_with "$2" "$first" "$second"
        jobs_run 2
    done
}

# refuses HEADING CODE_OF_FLOCK CODE_OF_MORTISE: each form ends so while it runs already.
refuses() {
    prepare "$1"
    local codes=("$2" "$3")
    for form in flock mortise; do
        start_form
        run "./$form.sh"
        echo "$form: $status, $output"
        [ "$status" -eq "${codes[0]}" ]
        codes=("${codes[1]}")
        jobs_run 1
        rm stay
        finish "$first"
    done
}

@test "u23 run a command under a lock" {
    runs_alone "Run a command under a lock" 3
}

@test "u23 do not wait" {
    refuses "Do not wait" 1 75
    [[ "$output" == "mortise: job: held by "* ]]
}

@test "u23 do not wait, and say nothing" {
    refuses "Do not wait, and say nothing" 0 0
    [ -z "$output" ]
}

@test "u23 wait for a limited time" {
    runs_alone "Wait for a limited time" 3
    sed -i 's/10/0.2/' ./*.sh
    touch stay
    for form in flock mortise; do
        rm -f jobs
        "./$form.sh" 3>&- &
        until_true jobs_run 1
        run "./$form.sh"
        [ "$status" -eq "$([ "$form" = flock ] && echo 1 || echo 75)" ]
    done
}

@test "u23 choose the exit code of a conflict" {
    refuses "Choose the exit code of a conflict" 9 9
}

@test "u23 run a line of shell" {
    runs_alone "Run a line of shell" 0
}

@test "u5 share the lock among readers" {
    prepare "Share the lock among readers"
    for form in flock mortise; do
        sed -n 2p "$form.sh" >read.sh
        sed -n 3p "$form.sh" >write.sh
        rm -f jobs
        touch stay
        sh read.sh 3>&- &
        readers=("$!")
        sh read.sh 3>&- &
        readers+=("$!")
        until_true jobs_run 2
        sh write.sh 3>&- &
        writer=$!
        sleep 0.3
        jobs_run 2
        rm stay
        all_end_with 3 "${readers[@]}" "$writer"
    done
}

@test "u23 let a script lock itself" {
    refuses "Let a script lock itself" 1 75
    run -3 ./mortise.sh
}

@test "u23 take a lock in the midst of a script" {
    runs_alone "Take a lock in the midst of a script" 0
}

@test "u6 take a lock in a subshell" {
    refuses "Take a lock in a subshell" 1 1
    for form in flock mortise; do # and again, in one script
        { sed '$s/$/\n/' "./$form.sh"; sed 1d "./$form.sh"; } >twice.sh
        sed -i 's/-n/-w 60/' twice.sh
        rm -f jobs
        run -3 sh twice.sh
        jobs_run 2
    done
}

@test "u23 replace mortise by the command" {
    runs_alone "Replace mortise by the command" 3
}

@test "u23 let a daemon go without the lock" {
    runs_alone "Let a daemon go without the lock" 3
}

@test "u23 see whether a lock is free" {
    prepare "See whether a lock is free"
    for form in flock mortise; do run -0 "./$form.sh"; done
    start_holder job
    run -75 ./mortise.sh
    run -1 flock job.lock ./flock.sh
}

@test "u9 while half of the scripts still use flock, they exclude each other" {
    runs_alone "While half of the scripts still use flock" 3
    touch stay
    for form in flock mortise; do
        rm -f jobs
        "./$form.sh" 3>&- &
        first=$!
        until_true jobs_run 1
        run -1 flock -n job.lock true
        run -75 mortise run -n --flock job.lock other -- true
        [[ "$output" == "mortise: job.lock: its flock is held by others" || "$form" = mortise ]]
        rm stay
        finish "$first"
        until_true flock -n job.lock true
        touch stay
    done
}

@test "u23 each block of the page is among these tests" {
    local headings
    headings=$(awk '/^## / { heading = substr($0, 4) } /^```sh$/ { print heading }' "$PAGE" | sort -u)
    [ "$(wc -l <<<"$headings")" -ge 14 ]
    while read -r heading; do
        echo "$heading"
        grep -qF "\"$heading\"" "$BATS_TEST_FILENAME"
    done <<<"$headings"
}

# ------------------------------------------------------------ what util-linux tests

# A reader holds the lock: others of it share it, and nobody else comes in before it ends.
@test "u23 as util-linux has it: a reader holds the lock" {
    start run --shared l -- sh -c 'touch holding; until [ -e end ]; do sleep 0.02; done'
    reader=$PID
    until_true test -e holding
    fails_with 123 "$MORTISE" run --nonblock --conflict-exit-code 123 l echo never
    fails_with 123 "$MORTISE" run --no-fork --nonblock --conflict-exit-code 123 l echo never
    fails_with 123 "$MORTISE" run --nonblock --exclusive --conflict-exit-code 123 l echo never
    run -0 "$MORTISE" run --shared l echo shares
    [ "$output" = shares ]
    start run --timeout 60 --conflict-exit-code 5 l test -e end
    until_true waiters l 1
    touch end
    all_end_with 0 "$reader" "$PID"
}

@test "u23 the letters and the long names of flock" {
    start_holder a
    for words in -n --nb --nonblock --nonb "-w 0" "-w 0.05" "--wait 0.05" "--wait=0" "--timeout 0" \
        -en -ne -xn -sn "-e -n" "--exclusive -n" "-x --nb"; do
        echo "$words"
        fails_with 75 "$MORTISE" run $words a -- touch ran
    done
    run -9 "$MORTISE" run -n -E 9 a -- touch ran
    run -9 "$MORTISE" run -nE9 a -- touch ran
    run -75 "$MORTISE" acquire -en a
    run -75 "$MORTISE" try -e a
    [ ! -e ran ]
    run -0 "$MORTISE" run -en b -c 'echo "$0"; exit 0'
    run -4 "$MORTISE" run b -c 'exit 4'
    run -4 "$MORTISE" run -oF b -- sh -c 'exit 4'
    for words in "-u b" "--unlock b" "-u b true"; do
        fails_with 64 "$MORTISE" run $words
        [[ "$output" == *"mortise release" ]]
    done
    fails_with 64 "$MORTISE" run -n 9
    [[ "$output" == *"mortise acquire" ]]
}

# ------------------------------------------------------------------------ --flock

@test "u9 a name that is the path of a file is warned of, unless its flock is taken" {
    mkdir -p lock build
    touch lock/x f
    for name in lock/x f "$T/f"; do
        run -0 "$MORTISE" run "$name" -- true
        [[ "$output" == "mortise: warning: $name is a file, "*"--flock $name takes both" ]]
        run -0 "$MORTISE" run --flock "$name" "$name" -- flock -s lock true
        [ -z "$output" ]
        "$MORTISE" acquire "$name" 2>said >token
        [[ "$(cat said)" == "mortise: warning: $name is a file"* ]]
        "$MORTISE" release "$name" <token
    done
    run -0 "$MORTISE" run build -- true # a directory here is no lock file
    [ -z "$output" ]
}

@test "u9 --flock: shared with -s, given back before the end, and kept by the guard" {
    start run -s --flock f a -- sh -c 'touch holding; exec sleep 600'
    until_true test -e holding
    run -0 flock -sn f true
    run -1 flock -n f true
    run -0 "$MORTISE" run -sn --flock f b -- true
    kill -KILL "$PID"
    until_true flock -n f true
    for words in run "run -F"; do
        run -0 "$MORTISE" $words --flock f a -- sh -c '! flock -n f true'
        until_true flock -n f true
    done
    run -0 sh -c 'token=$("$MORTISE" acquire --flock f a) && ! flock -n f true &&
        echo "$token" | "$MORTISE" release a && flock -n f true'
    run -1 flock f "$MORTISE" run -n -E 1 --flock f a -- touch ran
    run -75 flock f "$MORTISE" run -w 0.1 --flock f a -- touch ran
    run -0 flock f "$MORTISE" run -n --quiet-conflict --flock f a -- touch ran
    [ -z "$output" ]
    is_free a # what was acquired before is given back
    fails_with 64 "$MORTISE" acquire --durable --flock f a
    fails_with 78 "$MORTISE" run --flock no/such/place a -- touch ran
    [[ "$output" == "mortise: --flock no/such/place: No such file or directory" ]]
    [ ! -e ran ]
    mkdir directory
    run -0 "$MORTISE" run --flock directory a -- true
}

@test "u9 --flock: while the file is waited for, a signal gives the lock back" {
    start run --flock f a -- touch ran
    finish "$PID"
    [ -e ran ]
    rm ran
    exec 9>f
    flock 9
    start run --flock f a -- touch ran
    until_true sh -c '! "$MORTISE" run -n a true'
    kill -TERM "$PID"
    finish "$PID"
    [ "$code" -eq 143 ]
    is_free a
    [ ! -e ran ]
}
