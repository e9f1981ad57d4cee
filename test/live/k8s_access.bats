#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Certificates, tokens and rights on a fake of an API server that speaks TLS.
load ../cli/helper
load ../cli/server
load kubernetes

setup_file() {
    start_server k8s --tls
    cp "$PLACE/0/access.json" "$PLACE/access"
    cp "$PLACE/token" "$PLACE/first"
}

setup() {
    cp "$PLACE/first" "$PLACE/token"
    cp "$PLACE/access" "$PLACE/0/access.json"
    common_setup
    use_fake
}

# with_access EXPRESSION: changes the rules r, as Python does.
with_access() {
    /usr/bin/python3 -c 'import json, os, sys
file = sys.argv[1]
r = json.load(open(file))
exec(sys.argv[2])
json.dump(r, open(file + ".new", "w"))
os.rename(file + ".new", file)' "$PLACE/0/access.json" "$1"
}

# may VERB...: the account has these rights alone.
may() {
    with_access 'r["rules"] = [{"users": ["mortise"], "namespaces": ["mortise"], "verbs": "'"$*"'".split()}]'
}

@test "SE-10 a server whose certificate is of another authority is refused" {
    is_free a
    run -69 "$MORTISE" run -w 1s --url "${MORTISE_URL/tls_ca=*ca.pem&/}" a true
    [[ "$output" == *certificate* && "$output" != *"$(cat "$PLACE/token")"* ]]
}

@test "K8-16 a token that is wrong is named as such, and not printed" {
    echo not-a-token >"$PLACE/token"
    run "$MORTISE" run -w 2s a true
    [ "$status" -ne 0 ]
    [[ "$output" == *"token"* && "$output" == *"$PLACE/token"* && "$output" != *not-a-token* ]]
}

@test "K8-16 a token that is replaced on disk is read anew, and a hold lasts" {
    MORTISE_URL=${MORTISE_URL/=60s/=9s} start_holder rotated
    with_access 'r["tokens"]["second"] = "mortise"'
    (umask 077; echo second >"$PLACE/token.new")
    mv "$PLACE/token.new" "$PLACE/token"
    with_access 'r["tokens"] = {"second": "mortise"}'
    local before
    before=$(fake GET journal | grep -o '"name": "rotated"' | wc -l)
    until_true renewed rotated $((before + 3))
    run -0 kill -0 "$HOLDER"
    kill "$HOLDER"
    finish "$HOLDER"
    [ "$code" -ne 76 ]
    is_free rotated
}

# renewed NAME N: whether it was written N times.
renewed() {
    [ "$(fake GET journal | grep -o "\"name\": \"$1\"" | wc -l)" -ge "$2" ]
}

@test "K8-17 a verb that is missing is named, with what grants it" {
    local verb
    api POST "" '{"metadata": {"name": "old"}}'
    for verb in get list create update; do
        # shellcheck disable=SC2046
        may $(echo get list watch create update | tr ' ' '\n' | grep -vx "$verb")
        case $verb in
        create) run "$MORTISE" run -w 2s "new" true ;;
        list) run "$MORTISE" ls ;;
        *) run "$MORTISE" run -w 2s old true ;;
        esac
        echo "$verb: $status $output"
        [ "$status" -ne 0 ]
        [[ "$output" == *"$verb"* && "$output" == *print-acl* ]]
    done
}

@test "K8-17 without the right to watch a waiter looks again and again" {
    may get list create update
    start_holder unwatched
    start run -w 60s --url "$MORTISE_URL&recheck=1s" unwatched -- touch served
    local waiter=$PID
    until_true looked 3
    kill "$HOLDER"
    finish "$HOLDER"
    finish "$waiter"
    [ -e served ]
}

# looked N: whether Leases were read N times since the test began.
looked() {
    [ "$(fake GET counts | /usr/bin/python3 -c 'import json, sys
print(json.load(sys.stdin).get("get", 0))')" -ge "$1" ]
}

@test "K8-17 the printed rights are enough, and are of its namespace alone" {
    run -0 "$MORTISE" init --print-acl
    [[ "$output" == *'namespace: "mortise"'* && "$output" == *leases* ]]
    # shellcheck disable=SC2046
    may $(sed -n 's/.*verbs: *\[\(.*\)\].*/\1/p' <<<"$output" | tr -d '",')
    takes_and_leaves a
    run -0 "$MORTISE" ls
    run -0 "$MORTISE" elect e --value me -- "$MORTISE" elect e --once
    start_holder r
    "$MORTISE" revoke r
    "$MORTISE" break r --fence 1
    finish "$HOLDER"
    [ "$code" -eq 76 ]
    run "$MORTISE" run -w 2s --url "${URL/\/mortise?/\/default?}" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *'"default"'* || "$output" == *" default"* ]]
}

@test "K8-17 the Role in the document is enough" {
    /usr/bin/python3 -c 'import yaml' || skip "no python3-yaml"
    # shellcheck disable=SC2046
    may $(sed -n '/^```yaml/,/^```/p' "$BATS_TEST_DIRNAME/../../doc/kubernetes.md" | sed '/^```/d' |
        /usr/bin/python3 -c 'import sys, yaml
found = {row["kind"]: row for row in yaml.safe_load_all(sys.stdin)}
rule, = found["Role"]["rules"]
assert rule["apiGroups"] == ["coordination.k8s.io"] and rule["resources"] == ["leases"]
pod = found["Deployment"]["spec"]["template"]["spec"]
account, = found["RoleBinding"]["subjects"]
assert found["RoleBinding"]["roleRef"]["name"] == found["Role"]["metadata"]["name"]
assert account["name"] == found["ServiceAccount"]["metadata"]["name"] == pod["serviceAccountName"]
print(*rule["verbs"])')
    takes_and_leaves documented
    run -0 "$MORTISE" elect worker -- true
}

@test "K8-17 rights that are taken away under a holder end the hold at its lease" {
    MORTISE_URL=${MORTISE_URL/=60s/=3s} start_holder barred
    may get list watch
    finish "$HOLDER"
    [ "$code" -eq 76 ]
}

@test "a namespace that is not there is named" {
    run "$MORTISE" run -w 2s --url "${URL/\/mortise?/\/nowhere?}" a true
    [ "$status" -ne 0 ]
    [[ "$output" == *nowhere* ]]
}

@test "in a pod the environment and the mounted files say all" {
    [ "$(id -u)" -eq 0 ] || skip "only root may make the files of a pod"
    [ ! -e /var/run/secrets/kubernetes.io ] || skip "this is a pod"
    local host=127.0.0.1 port=${SERVER##*:} mounted=/var/run/secrets/kubernetes.io/serviceaccount
    run -0 unshare --mount sh -c "mount -t tmpfs none /var/run && mkdir -p $mounted &&
        cp $PLACE/token $mounted/token && cp $PLACE/ca.pem $mounted/ca.crt && printf mortise >$mounted/namespace &&
        KUBERNETES_SERVICE_HOST=$host KUBERNETES_SERVICE_PORT=$port MORTISE_URL=k8s: \
        $MORTISE run pod -- sh -c 'echo \$MORTISE_FENCE'"
    [ "$output" = 1 ]
    [[ "$(api GET "" )" == *'"mortise.dev/name": "mortise/pod"'* ]]
}
