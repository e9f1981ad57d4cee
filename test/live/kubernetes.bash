# SPDX-License-Identifier: Apache-2.0
# Around a fake of a Kubernetes API server, one for all tests of a file: requests of an operator,
# faults, and candidates by client-go's rule.

setup_file() {
    start_server k8s
}

eval "common_$(declare -f setup)"
setup() {
    common_setup
    use_fake
}

LEASES=/apis/coordination.k8s.io/v1/namespaces/mortise/leases
CANDIDATE="$BATS_TEST_DIRNAME/lease_candidate.py"

# use_fake [PARAMETERS]: locks have the names of Leases.
use_fake() {
    URL="$(server_url)"
    SERVER="${URL#k8s://}"
    SERVER="${SERVER%%/*}"
    [[ "$URL" == *tls_ca=* ]] && ROOT="https://$SERVER" || ROOT="http://$SERVER"
    export MORTISE_URL="$URL&namespace=&lease=60s${1:-}"
    (umask 077; echo "Authorization: Bearer $(cat "$PLACE/token")" >"$T/header")
    curl -sS -k -X DELETE "$ROOT/fake/faults" >/dev/null
}

# api METHOD PATH [BODY]: an operator's request below the Leases.
api() {
    curl -sS -k -H @"$T/header" -H 'Content-Type: application/json' -X "$1" ${3:+-d "$3"} \
        "$ROOT$LEASES$2"
}

# fake METHOD WHAT [JSON]: to the fake itself.
fake() {
    curl -sS -k -X "$1" ${3:+-d "$3"} -H 'Content-Type: application/json' "$ROOT/fake/$2"
}

# fault VERB NAME FAULT [MORE]: it happens once, unless MORE, a part of a JSON object, says else.
fault() {
    fake POST faults "{\"verb\": \"$1\", \"name\": \"$2\", \"fault\": \"$3\"${4:+, $4}}"
}

# happened FAULT [N]: whether that happened, N times at least.
happened() {
    fake GET counts | /usr/bin/python3 -c 'import json, sys
sys.exit(json.load(sys.stdin)["faults"].get(sys.argv[1], 0) < int(sys.argv[2]))' "$1" "${2:-1}"
}

# journal NAME EXPRESSION: of the list w of what was written to the Lease, each with type, holder,
# transitions and at; h is the list of its holders, one after another, "" for none.
journal() {
    fake GET journal | /usr/bin/python3 -c 'import json, sys
w = [row for row in json.load(sys.stdin) if row["name"] == sys.argv[1]]
h = [row["holder"] for i, row in enumerate(w) if i == 0 or row["holder"] != w[i - 1]["holder"]]
print(eval(sys.argv[2]))' "$1" "$2"
}

# spec NAME FIELD: of the Lease as it is.
spec() {
    api GET "/$1" | /usr/bin/python3 -c 'import json, sys
print(json.load(sys.stdin)["spec"].get(sys.argv[1], ""))' "$2"
}

# is_held_by NAME PREFIX: whether the Lease names such a holder.
is_held_by() {
    [[ "$(spec "$1" holderIdentity)" == "$2"* ]]
}

# watchers N: whether so many watches have begun so far.
watchers() {
    [ "$(fake GET counts | /usr/bin/python3 -c 'import json, sys
print(json.load(sys.stdin).get("watch", 0))')" -ge "$1" ]
}

# candidate NAME IDENTITY [OPTION...]: one by client-go's rule, until end_candidate; its process is
# $THEIRS, and the file IDENTITY has what it says.
candidate() {
    /usr/bin/python3 -c 'import kubernetes' 2>/dev/null || skip "no python3-kubernetes"
    [ -p "pipe.$2" ] || mkfifo "pipe.$2"
    /usr/bin/python3 "$CANDIDATE" "$PLACE" "$1" "$2" witness "${@:3}" <"pipe.$2" >"$2" 2>"$2.err" 3>&- &
    THEIRS=$!
    exec 8>"pipe.$2"
}

end_candidate() {
    echo >&8 # others may have inherited it, so that its end would not be seen
    exec 8>&-
    finish "$THEIRS"
    [ "$code" -eq 0 ]
}

# holder_with LEASE NAME: one with the witness (contest.bash), and a lease of its own.
holder_with() {
    MORTISE_URL=${MORTISE_URL/=60s/"=$1"} holds_alone "$2" --grace 300ms
}

# next_with LEASE NAME
next_with() {
    MORTISE_URL=${MORTISE_URL/=60s/"=$1"} waits_behind "$2"
}
