#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent --policy: what users may do, and how much of the agent they have. Root runs this.
load helper
load agent

# as USER GROUPS TEST ARGUMENTS...: of agent_users.py; groups beside the user's own, or "-".
as() {
    local groups=(--clear-groups)
    [ "$2" = - ] || groups=(--groups "$2")
    timeout 60 setpriv --reuid "$1" --regid "$(id -g "$1")" "${groups[@]}" \
        /usr/bin/python3 "$BATS_TEST_DIRNAME/agent_users.py" "${@:3}"
}

# refusals WORD: how many there are in the agent's log
refusals() {
    grep -c "is refused: .*$1" "$T/agent.out" || true
}

@test "a user may do what the policy says, by name and by group, and nothing else" {
    needs_users
    start_with_policy <<'END'
# users, and what they may do
allow user www-data acquire on www/
allow group games shared on public/
allow group 34 acquire on b
allow user backup list cells on b
END
    run as www-data - call "LOCK www/a 0" "LOCK www/b 0 READ" "LOCK ww 0" "LOCK public/a 0 READ"
    [[ "${lines[0]}" =~ ^[0-9]+$ && "${lines[1]}" =~ ^[0-9]+$ ]]
    [[ "${lines[2]}" == NOPERM* && "${lines[3]}" == NOPERM* ]]
    run as www-data games call "LOCK public/a 0 READ" "LOCK public/a 0 WRITE" "LOCK public/b 0"
    [[ "${lines[0]}" =~ ^[0-9]+$ && "${lines[1]}" == NOPERM* && "${lines[2]}" == NOPERM* ]]
    run as www-data games call "CAMPAIGN public/c 0 me" "LOCK public/d 0 PERMITS 1 OF 1"
    [[ "${lines[0]}" == NOPERM* && "${lines[1]}" == NOPERM* ]]
    run as backup - call "LOCK b 0" "LOCK www/a 0"
    [[ "${lines[0]}" =~ ^[0-9]+$ && "${lines[1]}" == NOPERM* ]]
    run as backup - call "LOCK b 0" "LOCK b2 0" "LIST" "GET b" "CAS a 0 v" "LEADER a"
    [[ "${lines[2]}" == "[['b', "*"], ['b2', "*"]]" && "${lines[3]}" == "[0, None]" ]]
    [[ "${lines[4]}" == NOPERM* && "${lines[5]}" == NOPERM* ]]
    run as www-data - call "LOCK www/a 0" "LIST" "GET www/a" "LEADER www/a"
    [[ "${lines[1]}" == "[]" && "${lines[2]}" == NOPERM* && "${lines[3]}" == NOPERM* ]]
    as sync - is_refused_often
    run as root - call "LOCK anything 0"
    [[ "${lines[0]}" =~ ^[0-9]+$ ]]
}

@test "a user whom this system does not know has no rights, whatever the policy says" {
    needs_users
    start_with_policy <<<"allow user * acquire on *"
    as nobody - is_refused_often
    run as www-data - call "LOCK a 0"
    [[ "${lines[0]}" =~ ^[0-9]+$ ]]
    echo "allow user nobody acquire on *" >"$T/policy"
    run "$MORTISE" agent --url "sqlite:$T/other.db" --socket "$T/b.sock" --policy "$T/policy"
    [[ "$status" -ne 0 && "$output" == *'policy:1: "nobody" stands for all whom'* ]]
}

@test "each kind of refusal is logged once for a user" {
    needs_users
    start_with_policy <<<"allow user www-data acquire on www/"
    as games - is_refused_often
    as www-data - is_refused_a_verb_often
    as www-data - is_refused_a_verb_often
    [ "$(refusals "no rule of the policy is his")" -eq 1 ]
    [ "$(refusals 'no rule allows what he wants of the name "private"')" -eq 1 ]
    grep -q "user $(id -u games) (process [0-9]*) is refused" "$T/agent.out"
}

@test "with namespace %u each user has a space of his own" {
    needs_users
    start_with_policy <<'END'
namespace %u
allow user * acquire on *
END
    setpriv --reuid www-data --regid www-data --clear-groups \
        /usr/bin/python3 "$BATS_TEST_DIRNAME/agent_users.py" hold deploy >"$T/one" 3>&- &
    until_true test -s "$T/one"
    run as backup - call "LOCK deploy 0" "UNLOCK deploy 1"
    [[ "${lines[0]}" =~ ^[0-9]+$ ]]
    run as www-data - call "LOCK deploy 0"
    [[ "$output" == BUSY* ]]
    "$MORTISE" ls --url "sqlite:$T/locks.db" | grep -q "^$(id -u www-data)/deploy "
}

@test "a user has the connections, tickets, names, waiters, bytes and holds of his limit" {
    needs_users
    start_with_policy <<'END'
allow user * acquire on own/
limit user * connections 3
limit user backup tickets 4 hold 30s
limit user games names 2 waiters 1
limit user daemon bytes 100000
END
    as www-data - has_his_connections_alone
    as backup - has_his_tickets_alone
    as games - has_his_names_and_waiters_alone
    as daemon - has_his_bytes_alone
    [ "$(refusals connections)" -eq 1 ]
    [ "$(refusals tickets)" -eq 1 ]
    [ "$(refusals bytes)" -eq 1 ]
    run as backup - call "LOCK own/a 0"
    [[ "$output" =~ ^[0-9]+$ ]]
}

@test "a person with thousands of numbers keeps nobody out" {
    needs_users
    start_with_policy <<<"allow user www-data acquire on *"
    python3 "$BATS_TEST_DIRNAME/agent_users.py" serves_root_beside_many_users
    run as www-data - call "LOCK a 0"
    [[ "$output" =~ ^[0-9]+$ ]]
    [ "$(refusals "no rule of the policy is his")" -eq 2048 ]
}

@test "an agent has as many descriptors as the system gives" {
    ulimit -Sn 128
    start_agent
    ulimit -Sn "$(ulimit -Hn)"
    timeout 60 python3 "$BATS_TEST_DIRNAME/agent_users.py" has_many_connections 400
}

@test "an agent without descriptors says FULL, once in its log, and serves again when one is free" {
    AGENT_WITHIN=(prlimit --nofile=200)
    start_agent
    client is_full_and_serves_again 136
    [ "$(grep -c "is refused: the agent has 136 connections" "$T/agent.out")" -eq 1 ]
}

@test "a hostile user hinders others no more than by spinning" {
    needs_users
    start_with_policy <<<"allow user www-data acquire list on evil/"
    python3 "$BATS_TEST_DIRNAME/agent_users.py" is_not_hindered_by_others "${HOSTILE_SECONDS:-0.5}"
    kill -0 "$AGENT"
    [ "$(wc -l <"$T/agent.out")" -lt 5 ]
}

# wrong LINE TEXT: a policy with this second line is refused with this text
wrong() {
    printf 'namespace %%u\n%s\n' "$1" >"$T/policy"
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock" --policy "$T/policy"
    echo "$1: $output"
    [ "$status" -eq 64 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *"$T/policy:2: $2"* ]]
}

@test "a policy's errors name the line and the word" {
    wrong "permit user root" '"permit" begins no line'
    wrong "allow root acquire on *" '"root" is neither user nor group'
    wrong "allow user nosuchuser acquire on *" '"nosuchuser" is no user of this system'
    wrong "allow group nosuchgroup acquire on *" '"nosuchgroup" is no group of this system'
    wrong "allow user root aquire on *" '"aquire" is no verb'
    wrong "allow user root on *" '"root" is allowed nothing'
    wrong "allow user root acquire" '"acquire" wants one name'
    wrong "allow user root acquire on" '"on" wants one name'
    wrong "allow user root acquire on a b" '"on" wants one name'
    wrong "limit group root tickets 1" '"group" has no limits'
    wrong "limit user root tickets" '"tickets" wants a value'
    wrong "limit user root tickets many" '"many" is no number'
    wrong "limit user root tickets 0" '"0" is no number of at least 1'
    wrong "limit user root hold long" '"long" is no duration'
    wrong "limit user root speed 3" '"speed" is no limit'
    wrong "namespace app" '"app" is not: namespace %u'
}

# is_said TEXT COUNT: the agent has said it so often.
is_said() {
    [ "$(grep -cF "$1" "$T/agent.out")" -eq "$2" ]
}

@test "at SIGHUP the policy is read again; a wrong one changes nothing, and is logged once" {
    needs_users
    start_with_policy <<<"allow user www-data acquire on www/"
    mkfifo "$T/go"
    chmod 666 "$T/go"
    as www-data - follows_the_policy <>"$T/go" >"$T/client" 3>&- &
    CLIENT=$!
    until_true test -s "$T/client"
    cat >"$T/policy" <<'END'
allow user games acquire on games/
allow user www-data acquire on new/
limit user * tickets 2
END
    kill -HUP "$AGENT"
    until_true is_said "the policy was read again" 1
    echo go >"$T/go"
    until_true sh -c '[ "$(wc -l <"$T/client")" -eq 2 ]'
    echo "permit user www-data" >"$T/policy"
    kill -HUP "$AGENT"
    until_true is_said "the policy stays as it was: $T/policy:1: \"permit\" begins no line" 1
    echo "namespace %u" >"$T/policy"
    kill -HUP "$AGENT"
    until_true is_said "the policy stays as it was: namespace %u changes only" 1
    is_said "the policy stays as it was" 2
    echo go >"$T/go"
    finish "$CLIENT"
    [ "$code" -eq 0 ]
    as backup - is_refused_often
    echo "allow user games acquire on games/" >"$T/policy"
    kill -HUP "$AGENT"
    until_true is_said "the policy was read again" 2
    run as games - call "LOCK games/a 0"
    [[ "$output" =~ ^[0-9]+$ ]]
    as www-data - is_refused_often
}

@test "without a policy SIGHUP changes nothing" {
    start_agent
    kill -HUP "$AGENT"
    until_true is_said "SIGHUP changed nothing: the agent was started without --policy" 1
    client takes_and_gives_back
}

@test "a policy that others can write, that is no file or that is not there is refused" {
    echo "allow user root acquire on *" >"$T/policy"
    chmod 666 "$T/policy"
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock" --policy "$T/policy"
    [[ "$status" -ne 0 && "$output" == *"can be written by others"* ]]
    [ ! -e "$T/agent.sock" ]
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock" --policy "$T"
    [[ "$status" -ne 0 && "$output" == *"is no plain file"* ]]
    run "$MORTISE" agent --url "sqlite:$T/locks.db" --socket "$T/agent.sock" --policy "$T/none"
    [[ "$status" -ne 0 && "$output" == *"$T/none: No such file"* ]]
}
