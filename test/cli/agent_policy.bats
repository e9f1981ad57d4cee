#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Users of a policy by agent: what the policy lets them do, with the library and without. Root runs
# this.
load helper
load agent

# as USER COMMAND...: of mortise
as() {
    timeout 60 env XDG_STATE_HOME="$T/none" setpriv --reuid "$1" --regid "$(id -g "$1")" \
        --clear-groups "$MORTISE" "${@:2}"
}

# said TEXT: how often the agent has said it.
said() {
    grep -c -- "$1" "$T/agent.out" || true
}

@test "a user of the policy runs, reads, lists and revokes by agent: as his rules say" {
    needs_users
    start_with_policy <<'END'
allow user www-data acquire list on www/
allow user games shared on www/
allow user backup list revoke break cells on *
END
    as www-data run www/a -- true
    run as www-data run secret -- true
    [ "$status" -ne 0 ]
    [[ "$output" == *"no rule as: allow user $(id -u www-data) acquire on secret"* ]]
    [ "$(said 'no rule allows what he wants of the name "secret": acquire')" -eq 1 ]
    "$MORTISE" run www/a -- sh -c 'touch held; until [ -e go ]; do sleep 0.01; done' 3>&- &
    HOLDER=$!
    until_true test -e held
    run as www-data run -w 0 www/a -- true
    [ "$status" -eq 75 ]
    run as www-data status www/a
    [[ "$output" == *holds* ]]
    run as www-data revoke www/a
    [[ "$status" -ne 0 && "$output" == *"revoke on www/a"* ]]
    run as games ls
    [[ "$status" -eq 0 && "$output" != *www/a* ]]
    as backup ls | grep -q "^www/a "
    touch go
    finish "$HOLDER"
    [ "$code" -eq 0 ]
    as games run -s www/r -- true
    run as games run www/r -- true
    [[ "$status" -ne 0 && "$output" == *"acquire on www/r"* ]]
    as www-data run www/b -- sh -c 'until [ -e "$0/end" ]; do sleep 0.01; done' "$T" \
        3>&- &
    HOLDER=$!
    until_true sh -c '"$MORTISE" ls | grep -q "^www/b "'
    as backup ls | grep -q "^www/b .*user $(id -u www-data): "
    touch end
    finish "$HOLDER"
}

@test "by frames of his own a user may do what a rule says, and nothing else" {
    needs_users
    start_with_policy <<'END'
allow user www-data acquire on www/
allow user games shared cells list on public/
END
    port may_do_what_a_rule_says
    [ "$(said "is refused")" -eq 2 ]
}

@test "by frames of his own a user has his own tickets alone" {
    needs_users
    start_with_policy <<'END'
allow user www-data acquire on www/
allow user backup acquire on www/
END
    port has_his_own_tickets_alone
    port leaves_nothing_behind
    port gives_back_his_own_share_alone
}

@test "by frames of his own a user has tickets of the recipes alone, and cannot detach" {
    needs_users
    start_with_policy <<'END'
allow user www-data acquire list adopt on www/
allow user backup acquire on www/
allow user games shared on public/
END
    port has_tickets_of_the_recipes_alone
    port cannot_detach
    port adopts_what_was_detached
}

@test "by frames of his own a user sees, revokes and breaks as the rules say; owners are the kernel's" {
    needs_users
    start_with_policy <<'END'
allow user www-data acquire on www/
allow user www-data list on www/
allow user www-data list revoke break on games/
allow user games acquire on games/
END
    port sees_and_ends_what_he_may
}

@test "by frames of his own a user has the space of his number" {
    needs_users
    start_with_policy <<'END'
namespace %u
allow user * acquire list cells revoke break on *
END
    port has_his_space_alone
}

@test "by agent: a user has the tickets, names, waiters and holds of his limit" {
    needs_users
    start_with_policy <<'END'
allow user www-data acquire list on www/
limit user www-data tickets 20 names 5 waiters 2 hold 60s connections 10
END
    port has_his_limits_alone
    cat >"$T/policy" <<'END'
allow user www-data acquire on www/
limit user www-data hold 1s
END
    kill -HUP "$AGENT"
    until_true grep -q "the policy was read again" "$T/agent.out"
    port loses_what_he_holds_too_long
}

@test "by agent: a user who sends and does not read pays for it himself" {
    needs_users
    start_with_policy <<<"allow user www-data acquire list cells on www/"
    port pays_for_what_he_does_not_read
}
