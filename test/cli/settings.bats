#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Where an option's value comes from: command line, environment, files; and what is refused.
load helper

# config FILE LINE...: writes a file of settings.
config() {
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$1"
    chmod 600 "$1"
}

# The label that a run gets, which is as good as any other option.
label() {
    "$MORTISE" run "$@" a -- sh -c '"$MORTISE" ls --json a' |
        python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["label"])'
}

@test "order: command line, environment, --config, user, system" {
    config etc/mortise/config "label = system"
    [ "$(label)" = system ]
    config config/mortise/config "# mine" "" "  label =  user  "
    [ "$(label)" = user ]
    config other "label=named"
    [ "$(label --config other)" = named ]
    [ "$(MORTISE_CONFIG=other label)" = named ]
    [ "$(MORTISE_LABEL=environment label --config other)" = environment ]
    [ "$(MORTISE_LABEL=environment label --label given)" = given ]
}

@test "--config and --url count before the subcommand as after it" {
    config other "label = named" "url = sqlite:one.db"
    run -0 "$MORTISE" --config other run a -- true
    [ -e one.db ]
    MORTISE_URL=sqlite:two.db run -0 "$MORTISE" --config other run a -- true
    [ -e two.db ]
    MORTISE_URL=sqlite:three.db run -0 "$MORTISE" --url sqlite:four.db run a -- true
    [ -e four.db ]
    [ ! -e three.db ]
}

@test "options that take nothing: on and off, and off beats a file" {
    start_holder a
    config config/mortise/config "nonblock = yes" "conflict-exit-code = 9"
    fails_with 9 "$MORTISE" run a -- true
    MORTISE_NONBLOCK=1 MORTISE_CONFLICT_EXIT_CODE=8 fails_with 8 "$MORTISE" run a -- true
    MORTISE_NONBLOCK=no run -9 "$MORTISE" run -w 50ms a -- true
    MORTISE_NONBLOCK=no start run a -- true
    until_true waiters a 1
    MORTISE_NONBLOCK=perhaps fails_with 78 "$MORTISE" run a -- true
    [[ "$output" == *MORTISE_NONBLOCK* ]]
}

@test "a value that is none: 78, and where it stands" {
    config config/mortise/config "# one" "grace = soon"
    fails_with 78 "$MORTISE" run a -- true
    [[ "$output" == *"$T/config/mortise/config:2"*soon* ]]
    rm config/mortise/config
    MORTISE_TIMEOUT=x fails_with 78 "$MORTISE" run a -- true
    [[ "$output" == *MORTISE_TIMEOUT* ]]
    MORTISE_THREADS=x fails_with 78 "$MORTISE" bench a
    [ ! -e state ]
}

@test "a file that is not understood is refused, with the line" {
    for line in nonsense "no-such = 1" "= 3" "command = rm" "help = 1" "config = x"; do
        config config/mortise/config "" "$line"
        fails_with 78 "$MORTISE" run a -- touch ran
        [[ "$output" == *"$T/config/mortise/config:2"* ]]
    done
    printf 'label = a\0b\n' >config/mortise/config
    fails_with 78 "$MORTISE" run a -- touch ran
    head -c 20000 /dev/zero | tr '\0' '#' >config/mortise/config
    fails_with 78 "$MORTISE" run a -- touch ran
    [ ! -e ran ]
}

@test "a file that is not safe is refused; one that --config names must be there" {
    config config/mortise/config "label = mine"
    chmod 666 config/mortise/config
    fails_with 78 "$MORTISE" run a -- touch ran
    rm config/mortise/config
    mkdir config/mortise/config
    fails_with 78 "$MORTISE" run a -- touch ran
    rmdir config/mortise/config
    fails_with 78 "$MORTISE" run --config nowhere a -- touch ran
    [ ! -e ran ]
    run -0 "$MORTISE" run a -- true
}

@test "a file that cannot be opened: the advice is for its place, the user's or the system's" {
    local loop
    for loop in config/mortise etc/mortise; do
        mkdir -p "$loop"
        ln -s config "$loop/config"
        fails_with 78 "$MORTISE" run a -- true
        rm "$loop/config"
        [[ "$output" == *"$T/$loop/config: "* ]]
        case "$loop" in
        config/*) [[ "$output" == *"; set HOME or XDG_CONFIG_HOME to a directory of your own"* ]] ;;
        *) [[ "$output" == *"; make it readable, or set XDG_CONFIG_DIRS"* && "$output" != *HOME* ]] ;;
        esac
    done
}

@test "options for one call alone are not read from the environment" {
    MORTISE_COMMAND='touch ran' MORTISE_ALSO=b MORTISE_STATUS_FD=99 run -0 "$MORTISE" run a -- true
    [ ! -e ran ]
}

@test "every option is a variable too, but for those that the manual excepts" {
    local root="$BATS_TEST_DIRNAME/../.." subcommand option name names=""
    sed -n '/^Options that take nothing/,/^are read from the command line only/p' "$root/man/mortise-settings.5" |
        tr -d '\\' >excepted
    for subcommand in $("$MORTISE" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        for option in $("$MORTISE" "$subcommand" --help | grep -o '^  ....--[a-z-]*' | grep -o -- '--.*'); do
            if [ "$option" = --config ] || grep -q -- "$option\b[^-]" excepted; then continue; fi
            name=MORTISE_$(tr 'a-z-' 'A-Z_' <<<"${option#--}")
            if [ "$name" != MORTISE_URL ]; then export "$name=1"; fi
            names+=" $name"
        done
    done
    MORTISE_URL=sqlite:x.db run "$MORTISE" doctor
    [ "$(wc -w <<<"$names")" -ge 40 ]
    local missing=""
    for name in $names; do
        if ! grep -q " $name\$" <<<"$output"; then missing+=" $name"; fi
    done
    echo "$missing"
    [ -z "$missing" ]
}

@test "SE-02: a password does not belong on the command line, nor into a file others read" {
    for url in redis://:hidden@h/ redis://u:hidden@h:1/0 'postgresql://h/d?password=hidden' \
        'mysql://admin@srv:hidden@127.0.0.1:1/d' 'postgresql://u:hidden/more@h/d' \
        "redlock:sqlite://$T/1,sqlite://$T/2,mysql://u:hidden@127.0.0.1:1/d"; do
        fails_with 64 "$MORTISE" run --url "$url" a -- true
        [[ "$output" != *hidden* ]]
        fails_with 64 "$MORTISE" --url "$url" run a -- true
        [[ "$output" != *hidden* ]]
        config config/mortise/config "url = $url"
        chmod 644 config/mortise/config
        fails_with 78 "$MORTISE" run a -- true
        [[ "$output" != *hidden* ]]
        rm config/mortise/config
    done
    run -0 "$MORTISE" run --url "sqlite://$T/a:b@c.db" a -- true
}

@test "SE-02: a command does not see a secret of any member or spelling" {
    for url in "redlock:sqlite://$T/1,sqlite://$T/2,mysql://u:hidden@127.0.0.1:1/d" \
        "redlock:sqlite://$T/1,sqlite://$T/2,mysql://u@srv:hidden@127.0.0.1:1/d"; do
        MORTISE_URL=$url run -0 "$MORTISE" run a -- env
        [[ "$output" == *MORTISE_URL=removed* && "$output" != *hidden* ]]
        MORTISE_URL=$url run -0 "$MORTISE" doctor
        [[ "$output" != *hidden* ]]
    done
    MORTISE_URL='postgresql://u:hidden/more@h/d' run -78 "$MORTISE" doctor
    [[ "$output" != *hidden* && "$output" == *%2F* ]]
}

# A secret on every path that ends in an error, and nowhere in what is said or shown.
@test "SE-02: no error shows a secret" {
    for url in redis://u:hidden@127.0.0.1:1/ 'nosuch://u:hidden@h' zk://u:hidden@127.0.0.1:1/a \
        'redis://u:hidden@h:notaport/x?bogus=hidden' 'mysql://u:hidden@h:notaport/d?bogus=hidden' \
        'sqlite:x?password=hidden' 'u:hidden@h//x:'; do
        for words in "run -v --json -n a -- true" "ls --json" "bench --seconds 10ms a" "acquire -n a" \
            "run -F --json -n a true"; do
            MORTISE_URL="$url" run -78 timeout 60 "$MORTISE" $words
            [[ "$output" != *hidden* ]]
            config config/mortise/config "url = $url"
            run -78 timeout 60 "$MORTISE" $words
            [[ "$output" != *hidden* ]]
            rm config/mortise/config
        done
    done
}

@test "SE-02: a server that is not reached shows no secret" {
    export MORTISE_ZK_AUTH=digest:u:hidden MORTISE_REDIS_AUTH=hidden
    for url in redis://u@127.0.0.1:1/ zk://127.0.0.1:1/a postgresql://u:hidden@127.0.0.1:1/d \
        mysql://u:hidden@127.0.0.1:1/d; do
        config "file-${url%%:*}" "url = $url"
        for words in "run -v --json -n a -- true" "ls --json" "bench --seconds 10ms a"; do
            MORTISE_URL="$url" timeout 60 "$MORTISE" $words >>said 2>&1 3>&- &
            pids+=($!)
            if [[ "$url" != *hidden* ]]; then continue; fi
            timeout 60 "$MORTISE" --config "file-${url%%:*}" $words >>said 2>&1 3>&- &
            pids+=($!)
        done
    done
    all_end_with 69 "${pids[@]}"
    cat said
    [ "$(wc -l <said)" -ge "${#pids[@]}" ]
    run -1 grep hidden said
}

@test "SE-02: secrets are in no environment below mortise, its own and the guard's included" {
    export MORTISE_ZK_AUTH=digest:u:hidden MORTISE_URL="sqlite://$T/x.db"
    start run a -- sh -c 'touch holding; exec sleep 600'
    until_true test -e holding
    checked=0
    for pid in "$PID" $(pgrep -P "$PID"); do
        run -1 grep -a hidden "/proc/$pid/environ"
        run -1 grep -a hidden "/proc/$pid/cmdline"
        checked=$((checked + 1))
    done
    [ "$checked" -eq 3 ]
}

@test "SE-02: no core file is written of mortise or its guard; the command's limit is as it was" {
    ulimit -S -c "$(ulimit -H -c)"
    export ASAN_OPTIONS="$ASAN_OPTIONS:disable_coredump=0" # or the sanitizer sets the limit to 0
    [ "$(ulimit -S -c)" != 0 ] || skip "this system allows no core files"
    start run a -- sh -c 'ulimit -S -c >limit; touch holding; exec sleep 600'
    until_true test -e holding
    [ "$(cat limit)" = "$(ulimit -S -c)" ]
    until_true pgrep -P "$PID" -x sleep # it has taken its shell's place
    command=$(pgrep -P "$PID" -x sleep)
    for pid in "$PID" $(pgrep -P "$PID"); do
        [ "$pid" != "$command" ] || continue
        grep -E '^Max core file size +1 ' "/proc/$pid/limits"
    done
    run -0 "$MORTISE" check --fence 1 --fence-file f -- sh -c 'ulimit -S -c'
    [ "$output" = "$(ulimit -S -c)" ]
    run -0 "$MORTISE" run -F b -- sh -c 'ulimit -S -c'
    [ "$output" = "$(ulimit -S -c)" ]
    run -0 "$MORTISE" run c -- "$MORTISE" run c -- sh -c 'ulimit -S -c'
    [ "$output" = "$(ulimit -S -c)" ]
}
