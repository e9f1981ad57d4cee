#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sentinels as the command meets them: away, silent, of another mind, or no sentinels at all. The
# failovers are in redis_sentinel.c.
load ../cli/helper

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"

setup_file() {
    python3 "$SERVERS" start redis-sentinel "$BATS_FILE_TMPDIR/servers" >/dev/null 3>&-
}

teardown_file() {
    python3 "$SERVERS" stop "$BATS_FILE_TMPDIR/servers"
}

# at NUMBER: the address of a server, host:port; 3 to 5 are the sentinels.
at() {
    python3 "$SERVERS" urls "$BATS_FILE_TMPDIR/servers" | cut -d , -f "$(($1 + 1))" | sed 's,.*//,,'
}

all() {
    cat "$BATS_FILE_TMPDIR/servers/url"
}

# cli_of NUMBER WORD...: what redis-cli gets.
cli_of() {
    redis-cli -u "redis://$(at "$1")" "${@:2}"
}

# fake REPLY: a sentinel that gives this one; $fake is its address.
fake() {
    rm -f port
    python3 "$BATS_TEST_DIRNAME/fake_sentinel.py" "$1" >port 3>&- &
    until_true test -s port
    fake="127.0.0.1:$(cat port)"
}

@test "sentinels lead to the master, for locks and for operators" {
    export MORTISE_URL="$(all)?session=60s"
    takes_and_leaves a
    start_holder b
    run -0 "$MORTISE" ls b
    [[ "$output" =~ b\ +holds\ +([1-9][0-9]*) ]]
    run -0 "$MORTISE" break b --fence "${BASH_REMATCH[1]}"
    run -0 "$MORTISE" run -w 60s b -- true
    run -0 "$MORTISE" init
    run "$MORTISE" doctor
    [[ "$output" == *"address              $(all)/0"* ]]
    [[ "$output" == *"server               Redis "* ]]
    [[ "$output" == *"survives failover    no: two may hold a lock"* ]]
}

@test "a member of a quorum may be the master that sentinels name" {
    export MORTISE_URL="redlock:$(all),redis+sentinel://$(at 4)/mymaster/1?answer=9s&session=60s"
    takes_and_leaves a
}

@test "a sentinel that is away or silent is passed over" {
    export MORTISE_URL="redis+sentinel://127.0.0.1:1,$(at 3),$(at 4)/mymaster?connect=6s"
    run -0 "$MORTISE" run -n a -- true
    run -0 "$MORTISE" ls
    python3 "$SERVERS" pause "$BATS_FILE_TMPDIR/servers" 3
    run -0 "$MORTISE" run -w 60s a -- true
    run -0 "$MORTISE" ls
    python3 "$SERVERS" resume "$BATS_FILE_TMPDIR/servers" 3
}

@test "when all sentinels are away the error names one of them, and why" {
    export MORTISE_URL="redis+sentinel://127.0.0.1:1,127.0.0.1:2/mymaster"
    fails_with 69 "$MORTISE" run -n a -- true
    [[ "$output" == *"no sentinel names the master mymaster; 127.0.0.1:2: Connection refused"* ]]
    fails_with 69 "$MORTISE" ls
    [[ "$output" == *"no sentinel names the master mymaster; the last one: Connection refused"* ]]
    run "$MORTISE" doctor
    [ "$status" -eq 69 ]
}

@test "a name that no sentinel knows is refused at once" {
    export MORTISE_URL="redis+sentinel://127.0.0.1:1,$(at 3)/other"
    fails_with 78 "$MORTISE" run -w 60s a -- true
    [[ "$output" == *'watches no master named "other"'* ]]
    fails_with 78 "$MORTISE" ls
    [[ "$output" == *'watches no master named "other"'* ]]
}

@test "a sentinel that knows less than another one is passed over, and its error stays" {
    fake '*-1\r\n'
    run -0 "$MORTISE" run -n --url "redis+sentinel://$fake,$(at 3)/mymaster" a -- true
    run -0 "$MORTISE" ls --url "redis+sentinel://$fake,$(at 3)/mymaster"
    fails_with 78 "$MORTISE" ls --url "redis+sentinel://$fake,127.0.0.1:1/mymaster"
    [[ "$output" == *'watches no master named "mymaster"'* ]]
}

@test "a server that is no sentinel is named as such" {
    fails_with 69 "$MORTISE" run -n --url "redis+sentinel://$(at 0)/mymaster" a -- true
    [[ "$output" == *"ERR unknown command 'SENTINEL'"* ]]
    fails_with 78 "$MORTISE" run -n --url "redis://$(at 3)" a -- true
}

@test "SE-10 what a hostile sentinel says is checked, and never without a bound" {
    local reply address port
    address=$(at 1)
    port=${address#*:}
    for reply in '+OK\r\n' ':1\r\n' '*0\r\n' '*1\r\n$1\r\na\r\n' '*2\r\n$1\r\na\r\n$1\r\nb\r\n' \
        '*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n' '*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n' \
        '*2\r\n$5\r\na\x1b[1m\r\n$4\r\n6379\r\n' '*2\r\n*0\r\n*0\r\n' 'HTTP/1.0 400\r\n' \
        '$500000000\r\n...' '-ERR \x1b[2J\r\n'; do
        fake "$reply"
        run timeout 60 "$MORTISE" run -n --url "redis+sentinel://$fake/mymaster" a -- true
        echo "$reply: $status $output"
        [ "$status" -eq 69 ]
        [[ "$output" != *$'\x1b'* ]]
        run timeout 60 "$MORTISE" ls --url "redis+sentinel://$fake/mymaster"
        [ "$status" -eq 69 ]
    done
    # It names a replica, as one that was cut off might; another one knows better.
    fake "*2\\r\\n\$9\\r\\n127.0.0.1\\r\\n\$${#port}\\r\\n$port\\r\\n"
    run -69 "$MORTISE" run -n --url "redis+sentinel://$fake/mymaster" a -- true
    echo "$output"
    [[ "$output" == *"$address says that it is no master but \"slave\""* ]]
    run -69 "$MORTISE" ls --url "redis+sentinel://$fake/mymaster"
    run -0 "$MORTISE" run -w 60s --url "redis+sentinel://$fake,$(at 3)/mymaster" a -- true
    run -0 "$MORTISE" ls --url "redis+sentinel://$fake,$(at 3)/mymaster"
}

@test "a sentinel may give a host's name, which is looked up" {
    local port
    port=$(at 0)
    port=${port#*:}
    fake "*2\\r\\n\$9\\r\\nlocalhost\\r\\n\$${#port}\\r\\n$port\\r\\n"
    run -0 "$MORTISE" run -w 60s --url "redis+sentinel://$fake/mymaster" a -- true
    run -0 "$MORTISE" ls --url "redis+sentinel://$fake/mymaster"
    fake '*2\r\n$20\r\nno.such.host.invalid\r\n$4\r\n6379\r\n'
    run -69 "$MORTISE" run -n --url "redis+sentinel://$fake/mymaster" a -- true
    [[ "$output" == *"no.such.host.invalid"* ]]
    run -69 "$MORTISE" ls --url "redis+sentinel://$fake/mymaster"
}

@test "SE-02 behind sentinels the rights that init prints suffice, and +role is one of them" {
    export MORTISE_URL="redis+sentinel://alice@$(at 3)/mymaster?credentials=$PWD/word&session=60s"
    local rights
    (umask 077 && echo PASSWORD >word)
    rights=$("$MORTISE" init --print-acl)
    [[ "$rights" == "ACL SETUSER alice on "*" +role" ]]
    cli_of 0 ${rights%+role} '>PASSWORD' # a server's users are its own
    fails_with 77 "$MORTISE" run -w 60s a -- true
    [[ "$output" == *"needs +role"* ]]
    fails_with 77 "$MORTISE" ls
    cli_of 0 $rights
    takes_and_leaves a
    start_holder a
    start run -w 60s a -- touch served
    until_true waiters a 1
    kill "$HOLDER"
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
    run "$MORTISE" doctor
    [[ "$output" != *"may configure"* && "$output" != *"not of these locks"* ]]
}

@test "a sentinel with a password has a file of its own for it" {
    local url="redis+sentinel://$(at 5)/mymaster?sentinel_user=guard&sentinel_credentials=$PWD/word"
    cli_of 5 ACL SETUSER guard on '>a secret' +sentinel '~*'
    cli_of 5 ACL SETUSER default off
    (umask 077 && echo 'a secret' >word && echo wrong >wrong)
    run -0 "$MORTISE" run -n --url "$url" a -- true
    run -0 "$MORTISE" ls --url "$url"
    fails_with 77 "$MORTISE" run -w 60s --url "redis+sentinel://$(at 5)/mymaster" a -- true
    [[ "$output" == *"NOAUTH"*"sentinel_credentials="* ]]
    fails_with 77 "$MORTISE" run -w 60s --url "${url%/word}/wrong" a -- true
    [[ "$output" == *"WRONGPASS"* ]]
    [[ "$output" != *secret* ]]
    fails_with 77 "$MORTISE" ls --url "${url%/word}/wrong"
}
