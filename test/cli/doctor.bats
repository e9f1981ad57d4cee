#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise doctor and mortise completion.
load helper

# row NAME: the rest of the first line that begins with the name.
row() {
    sed -n "s/^  $1  *//p" <<<"$output" | head -1
}

@test "doctor: a store that is well: 0, and where each value came from" {
    run -0 "$MORTISE" doctor
    [[ "$(row url)" == *default ]]
    [[ "$(row address)" == "sqlite:$T/state/mortise/locks.db" ]]
    [[ "$(row answers)" == "yes, "* ]]
    [[ "$(row server)" =~ ^SQLite\ 3\.[0-9.]+,\ the\ library$ ]]
    [[ "$("$MORTISE" doctor --url memory:x)" == *"server               not known: there is no server"* ]]
    [[ "$(row fences)" == yes ]]
    [[ "$(row 'across hosts')" == no* ]]
    mkdir -p config/mortise
    echo 'max-hold = 1h' >config/mortise/config
    MORTISE_URL=sqlite:x.db MORTISE_GRACE=3s run -0 "$MORTISE" doctor
    [[ "$(row url)" =~ ^sqlite:x.db\ +MORTISE_URL$ ]]
    [[ "$(row grace)" =~ ^3s\ +MORTISE_GRACE$ ]]
    [[ "$(row max-hold)" =~ ^1h\ +$T/config/mortise/config:1$ ]]
    run -0 "$MORTISE" doctor --url sqlite:y.db
    [[ "$(row url)" =~ ^sqlite:y.db\ +--url$ ]]
    [ "$("$MORTISE" ls --url sqlite:y.db --json)" = "[]" ]
}

@test "doctor: the exit code says which fault was found" {
    run -78 "$MORTISE" doctor --url nosuch:x
    mkdir open
    chmod 777 open
    run -78 "$MORTISE" doctor --url "sqlite://$T/open/x.db"
    run -0 "$MORTISE" doctor
    MORTISE_GRACE=soon run -1 "$MORTISE" doctor
    [[ "$output" == *"warning: MORTISE_GRACE"* ]]
    mkdir -p config/mortise
    echo nonsense >config/mortise/config
    fails_with 78 "$MORTISE" doctor
    rm config/mortise/config
    fails_with 64 "$MORTISE" doctor x
    sh -c '"$MORTISE" doctor > /dev/full' 2>err && return 1
    true
}

@test "u39 doctor: faults first, settings that differ from the default, and a verdict" {
    run -0 "$MORTISE" doctor
    [ "${lines[0]}" = store ]
    [[ "${lines[2]}" == "  answers "*"yes, a lock in "* ]]
    [ "${lines[-1]}" = "all is well" ]
    [[ "$output" != *"conflict-exit-code"* ]]
    MORTISE_PAUSE=1s run -0 "$MORTISE" doctor
    [[ "$(row pause)" =~ ^1s\ +MORTISE_PAUSE$ ]]
    MORTISE_GRACE=soon run -1 "$MORTISE" doctor
    [ "${lines[-1]}" = "1 warning: see above" ]
    run -69 "$MORTISE" doctor --url redis://127.0.0.1:1
    [ "$(row answers)" = no ]
    [[ "$output" == *"warning: the store does not give a lock: "*"Connection refused"* ]]
}

@test "SE-02: doctor shows no secret" {
    MORTISE_URL=redis://u:hidden@127.0.0.1:1/ MORTISE_ZK_AUTH=digest:u:hidden \
        MORTISE_REDIS_AUTH=hidden run timeout 60 "$MORTISE" doctor
    [ "$status" -ne 0 ]
    [[ "$output" != *hidden* ]]
    [[ "$(row url)" =~ ^'redis:***'\ +MORTISE_URL$ ]]
    [[ "$(row credentials)" =~ MORTISE_ZK_AUTH$ ]]
}

# complete_bash WORD...: what bash offers for the last word.
complete_bash() {
    bash -c '. <("$MORTISE" completion bash); COMP_LINE="mortise $*"; COMP_POINT=${#COMP_LINE}
        PATH="$(dirname "$MORTISE"):$PATH"; _mortise; printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

@test "completion: bash offers subcommands, and each one's options" {
    run -0 complete_bash st
    [ "$output" = status ]
    run -0 complete_bash run --min
    [ "$output" = --min-hold ]
    run -0 complete_bash --url x ls --j
    [ "$output" = --json ]
    run -0 complete_bash run x
    [ -z "$output" ]
}

# A lock whose name a shell would expand, and one with ":".
hold_names() {
    start_holder 'jobs/$(touch${IFS}expanded)'
    start_holder jobs/a:b
    start_holder other
}

@test "u41 completion: bash offers values, names of locks and commands" {
    hold_names
    run -0 complete_bash run --on-lost ''
    [ "$output" = $'term\nkill\nignore\nexec:' ]
    [ "$(complete_bash run --stragglers w)" = wait ]
    [ "$(complete_bash top --sort wai)" = $'wait\nwaiters' ]
    [ "$(complete_bash completion '')" = $'bash\nzsh\nfish' ]
    [ "$(complete_bash break oth)" = other ]
    [ "$(complete_bash run -w 3 oth)" = other ]
    [ "$(complete_bash run --also oth)" = other ]
    [ "$(complete_bash --url "sqlite:$T/state/mortise/locks.db" status oth)" = other ]
    [ -z "$(complete_bash --url memory:x status oth)" ]
    [ "$(complete_bash status jobs/a:)" = b ]
    run -0 complete_bash status jobs/
    [ "${#lines[@]}" -eq 2 ]
    run -0 complete_bash run x -- tru
    [[ "$output" == *true* ]]
    run -0 complete_bash run x -- ls --j
    [ -z "$output" ]
    [ ! -e expanded ]
}

@test "completion: zsh takes the script" {
    command -v zsh || skip "no zsh"
    "$MORTISE" completion zsh >_mortise
    zsh -n _mortise
    zsh -f -c 'autoload -Uz compinit; compinit -u -d ./dump; . ./_mortise
        [[ ${_comps[mortise]} == _mortise ]]'
}

@test "completion: fish offers subcommands, and each one's options" {
    command -v fish || skip "no fish"
    "$MORTISE" completion fish >mortise.fish
    export HOME="$T"
    run -0 fish --no-config -c 'source mortise.fish; complete -C "mortise sta"'
    [[ "$output" == status* ]]
    run -0 fish --no-config -c 'source mortise.fish; complete -C "mortise run --min"'
    [[ "$output" == --min-hold* ]]
}

@test "u41 completion: zsh and fish offer values, names of locks and commands" {
    hold_names
    PATH="$(dirname "$MORTISE"):$PATH"
    "$MORTISE" completion zsh >_mortise
    grep -F 'value:(term kill ignore exec:)' _mortise
    if command -v fish; then
        export HOME="$T"
        "$MORTISE" completion fish >mortise.fish
        offered() { fish --no-config -c "source mortise.fish; complete -C '$1'" | cut -f 1; }
        [ "$(offered 'mortise run --on-lost ')" = $'exec:\nignore\nkill\nterm' ]
        [ "$(offered 'mortise break oth')" = other ]
        offered 'mortise run x -- tru' | grep -x true
        offered 'mortise completion ' | grep -x zsh
    fi
    if command -v zsh; then
        run -0 zsh -f -c 'store=(); autoload -Uz compinit; compinit -u -d ./dump; . ./_mortise
            compadd() { print -l -- ${(P)2}; }; _mortise_names'
        [[ "$output" == *other* ]]
        [[ "$output" == *"jobs/a:b"* ]]
    fi
    [ ! -e expanded ]
}

@test "completion: every option of every --help is offered, and nothing else is asked for" {
    "$MORTISE" completion bash >script
    for subcommand in $("$MORTISE" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        for option in $("$MORTISE" "$subcommand" --help | grep -o '^  ....--[a-z-]*' | grep -o -- '--.*'); do
            grep "^  *$subcommand) .*$option[ ']" script
        done
    done
    fails_with 64 "$MORTISE" completion
    fails_with 64 "$MORTISE" completion csh
    fails_with 64 "$MORTISE" completion --url x bash
    fails_with 64 "$MORTISE" completion bash zsh
}
