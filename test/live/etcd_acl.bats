#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A user with the rights of init --print-acl on a member of etcd: it can use every kind of lock, and
# nothing else.
load ../cli/helper
load ../cli/server
load rights

# Passwords here are nobody's secret: the member is on the loopback interface, and the test's.
as_root() {
    etcdctl --user root:root "$@"
}

setup_file() {
    start_server etcd
    export ETCDCTL_API=3 ETCDCTL_ENDPOINTS
    ETCDCTL_ENDPOINTS=$(server_url)
    ETCDCTL_ENDPOINTS=${ETCDCTL_ENDPOINTS#etcd://}
    etcdctl user add root --new-user-password=root
    etcdctl user grant-role root root
    etcdctl auth enable
}

# as_user USER [PARAMETERS]: from here on, with the printed rights.
as_user() {
    export MORTISE_URL="etcd://${1// /%20}@$ETCDCTL_ENDPOINTS?lease=60s$2" MORTISE_ETCD_AUTH=word
    as_root user add --new-user-password=word -- "$1" || true
    "$MORTISE" init --print-acl >commands
    ETCDCTL_USER=root:root sh commands
}

# may_not WORD...: $user may not do this by etcdctl.
may_not() {
    run etcdctl --user "$user:word" "$@"
    echo "$* : $output"
    [ "$status" -ne 0 ]
    [[ "$output" == *"permission denied"* ]]
}

@test "each kind of lock is taken, waited for, shown and given back" {
    as_user alice
    takes_each_kind
}

@test "elections, holds that outlive their process, revoke, break, doctor" {
    as_user alice
    elects_and_operates
    run "$MORTISE" doctor
    [[ "$output" == *"etcd 3."* && "$output" != *"anyone who reaches"* ]]
}

@test "the suite of detached holds passes for that user" {
    as_user alice
    passes_suites test_api_detach
}

@test "another user's rights do not reach the keys" {
    as_user alice
    start_holder guarded
    local lease
    lease=$(as_root get --prefix mortise/guarded/ -w json | python3 -c '
import json, sys
print("%x" % json.load(sys.stdin)["kvs"][0]["lease"])')
    as_user bob "&namespace=bobs"
    "$MORTISE" run -w 60s own true
    MORTISE_URL=${MORTISE_URL/namespace=bobs/namespace=mortise} run "$MORTISE" run -w 60s guarded true
    [ "$status" -ne 0 ]
    [[ "$output" == *"permission denied"*"doc/etcd.md"* ]]
    local user=bob
    may_not get mortise/guarded
    may_not put mortise/guarded/x 1
    may_not del --prefix mortise/
    may_not get --prefix ""
    may_not put mortisf x
    may_not lease revoke "$lease"
    may_not user list
    as_user alice
    run -75 "$MORTISE" run -n guarded true
}

@test "with one right less, for reading or for writing, no lock is taken" {
    as_user alice "&namespace=less"
    "$MORTISE" run -w 60s x true
    local right
    for right in read write; do
        as_root role revoke-permission --prefix locks:less/ less/
        as_root role grant-permission --prefix=true locks:less/ "$right" less/
        run "$MORTISE" run -w 60s x true
        [ "$status" -ne 0 ]
        [[ "$output" == *"permission denied"* ]]
    done
    ETCDCTL_USER=root:root sh commands || true
    "$MORTISE" run -w 60s x true
}

@test "a namespace and a user with the letters of shells are themselves" {
    as_user "al 'ice'" "&namespace=%2Dit's%20%24(touch%20ran)"
    "$MORTISE" run -w 60s x true
    [ ! -e ran ]
    as_root get --prefix -- "-it's \$(touch ran)/" >kept
    [ ! -s kept ]
    local user="al 'ice'"
    may_not get mortise/x
    may_not get -- "-it's x"
}

@test "without a namespace the commands name the locks one by one" {
    as_user carol "&namespace="
    run "$MORTISE" run -w 60s x true
    [[ "$output" == *"permission denied"* ]]
    sed -n 's/^# and of each lock NAME: //p' commands | sed s/NAME/x/ >more
    [ -s more ]
    ETCDCTL_USER=root:root sh more
    "$MORTISE" run -w 60s x true
    run "$MORTISE" run -w 60s y true
    [[ "$output" == *"permission denied"* ]]
}

# As doc/etcd.md says: etcdctl reads the password from its input, which is not the commands.
@test "an administrator who types the password runs the commands from a file" {
    export MORTISE_URL="etcd://dave@$ETCDCTL_ENDPOINTS?namespace=typed" MORTISE_ETCD_AUTH=word
    as_root user add --new-user-password=word dave
    "$MORTISE" init --print-acl >rights
    ETCDCTL_USER=root script -qec 'sh rights' /dev/null <<<$'root\nroot\nroot'
    "$MORTISE" run -w 60s x true
}

@test "without a user in the URI nothing is printed" {
    MORTISE_URL="etcd://h" fails_with 78 "$MORTISE" init --print-acl
    [[ "$output" == *"the URI names the user who gets the rights: etcd://USER@..." ]]
}
