#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise serve, asked by curl: who is answered and who is refused, what is said, how it ends.
load helper
load agent

SERVERS="$BATS_TEST_DIRNAME/../../tools/servers"
TOKEN=0123456789abcdef-token

teardown() {
    if [ -e "$BATS_TEST_TMPDIR/redis" ]; then python3 "$SERVERS" stop "$BATS_TEST_TMPDIR/redis"; fi
    clean_up
}

# serve [OPTION...]: in the background; its address in $AT.
# Without a token, unless there is one.
serve() {
    local open=(--no-token)
    [[ -z "${MORTISE_SERVE_TOKEN:-}" && "$*" != *--token-file* ]] || open=()
    start serve --listen 127.0.0.1:0 --interval 100ms "${open[@]}" "$@" >address
    SERVE=$PID
    until_true is_told_or_gone
    AT=$(cat address)
    [[ "$AT" =~ ^http://127.0.0.1:[0-9]+/$ ]]
    until_true has_looked # so that all that follows is seen to begin
}

has_looked() {
    curl -sS -m 60 -H "Authorization: Bearer $TOKEN" "${AT}api/overview" | grep '"seen": "'
}

is_told_or_gone() {
    [ -s address ] || is_gone "$SERVE"
}

with_token() {
    (umask 077 && echo "$TOKEN" >token)
    serve --token-file token "$@"
}

# ask PATH [CURL'S OPTION...]: the status in $asked, the body in the file body, headers in head.
ask() {
    asked=$(curl -sS -m 60 --path-as-is -o body -D head -w '%{http_code}' "$AT$1" "${@:2}")
}

bearer() {
    ask "$1" -H "Authorization: Bearer $TOKEN" "${@:2}"
}

# is PATH EXPRESSION: of the JSON there, Python thinks it true; "it" is the answer.
is() {
    curl -sS -m 60 -H "Authorization: Bearer $TOKEN" "$AT$1" | python3 -c '
import json, sys
it = json.load(sys.stdin)
sys.exit(not eval(sys.argv[1]))' "$2"
}

# metric NAME-AND-LABELS VALUE: a metric has this value.
metric() {
    curl -sS -m 60 "${AT}metrics" | grep -Fxq "$1 $2"
}

fence_of() {
    "$MORTISE" ls "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["fence"])'
}

@test "serve: locks, a queue in order and counters, as JSON" {
    serve
    is api/overview 'it["locks"] == 0 and it["error"] is None and not it["changes"]'
    start_holder 'a/b c'
    holder=$HOLDER
    start run --label second 'a/b c' -- sh -c 'touch second; exec sleep 600'
    until_true waiters 'a/b c' 1
    until_true is 'api/lock?name=a/b%20c' 'len(it["waiters"]) == 1'
    is 'api/lock?name=a/b%20c' "it['state'] == 'held' and it['holders'][0]['pid'] == $holder and it['kind'] == 'mutex'"
    is 'api/lock?name=a/b%20c' 'it["waiters"][0]["label"] == "second" and it["waiters"][0]["place"] == 1'
    is 'api/lock?name=a/b%20c' 'it["waiters"][0]["fence_text"] == str(it["waiters"][0]["fence"])'
    is api/locks 'it["found"] == 1 and it["locks"][0]["name"] == "a/b c" and it["locks"][0]["waiters"] == 1'
    kill -TERM "$holder"
    until_true is api/overview 'it["counts"]["waits"]["count"] == 1 and it["counts"]["contended"] == 1'
    is api/overview 'it["counts"]["handovers"] == 1 and it["counts"]["holds"]["count"] == 1'
    is api/overview 'sum(s[5] for s in it["samples"]) == 1 and len(it["samples"]) > 2'
    is 'api/overview?from=1' 'len(it["samples"]) == it["next"] - 1'
    is 'api/lock?name=nobody' 'it["state"] == "free" and it["kind"] is None and it["holders"] == []'
}

@test "serve: what the agent counts, through which the store is watched" {
    start_agent
    export MORTISE_URL="agent://$T/agent.sock"
    serve
    is api/overview 'it["agent"]["tickets"] == 0'
    start_holder a
    start run a -- true
    until_true metric mortise_agent_tickets 2
    metric mortise_agent_up 1
    metric mortise_agent_holders 1
    metric mortise_agent_sessions 2
    metric mortise_agent_grants_total 1
    metric mortise_agent_wait_seconds_count 0
    is api/overview 'it["agent"]["holders"] == 1 and it["agent"]["sessions"] == 2 and it["agent"]["refused"] == 0'
    client takes_and_gives_back # two grants by LOCK
    until_true metric mortise_agent_grants_total 3
    metric mortise_agent_wait_seconds_count 2
    until_true metric 'mortise_agent_hold_seconds_bucket{le="+Inf"}' 2 # the second grant was seen before
    ask metrics
    /usr/bin/python3 "$BATS_TEST_DIRNAME/metrics.py" body
    kill -KILL "$AGENT"
    until_true metric mortise_agent_up 0
    metric mortise_agent_grants_total 3
    is api/overview 'it["agent"] is None'
}

@test "serve: a wait in an agent for another host's client is counted once" {
    start_agent
    export MORTISE_URL="agent://$T/agent.sock"
    serve
    MORTISE_URL="sqlite:$T/locks.db" start_holder a
    start run --label one a -- sh -c 'touch one; exec sleep 600'
    local one=$PID
    until_true is 'api/lock?name=a' 'len(it["waiters"]) == 1'
    start run --label two a -- sh -c 'touch two; exec sleep 600'
    until_true is 'api/lock?name=a' 'len(it["waiters"]) == 2'
    is 'api/lock?name=a' '[row["label"] for row in it["waiters"]] == ["one", "two"]'
    kill "$HOLDER"
    until_true is 'api/lock?name=a' 'it["counts"]["contended"] == 1 and it["holders"][0]["label"] == "one"'
    kill "$one"
    until_true is 'api/lock?name=a' 'it["counts"]["contended"] == 2 and it["holders"][0]["label"] == "two"'
    is api/overview 'it["counts"]["waits"]["count"] == 2 and it["counts"]["gone"] == 0'
    is api/overview 'it["counts"]["grants"] == 3 and it["counts"]["handovers"] == 2'
}

@test "u10 u16 u26 serve: the longest wait, the used share of a semaphore, and earlier holders" {
    serve
    is api/overview 'it["longest_wait"] is None and it["oldest_hold"] is None'
    is 'api/lock?name=s' 'it["previous"] == []'
    for n in 1 2; do
        start run --label "the $n" --permits 4 --weight "$n" s sh -c 'touch "holds$MORTISE_FENCE"; exec sleep 600'
        first=${first:-$PID}
        until_true is 'api/lock?name=s' "len(it['holders']) == $n"
    done
    until_true is api/locks 'it["locks"][0]["use"] == "3/4" and it["locks"][0]["wait_ms"] is None'
    is api/overview 'it["oldest_hold"]["name"] == "s" and it["longest_wait"] is None'
    start run --permits 4 --weight 2 s true
    until_true is api/locks 'it["locks"][0]["wait_ms"] is not None and it["locks"][0]["use"] == "3/4"'
    is api/overview 'it["longest_wait"]["name"] == "s" and 0 <= it["longest_wait"]["ms"] < 60000'
    kill "$first"
    until_true is 'api/lock?name=s' 'len(it["previous"]) >= 1'
    is 'api/lock?name=s' '[p["owner"] for p in it["previous"]][-1].startswith("the 1 host ")'
    is 'api/lock?name=s' 'all(p["held_ms"] >= 0 and p["ended_ms"] >= 0 and p["fence_text"] == str(p["fence"]) for p in it["previous"])'
    is api/overview 'it["samples"][-1][0] - it["samples"][0][0] < 600000'
}

@test "serve: how long a lock is held is not how long its holder has waited" {
    serve
    start_holder a
    start run a -- sh -c 'touch second; exec sleep 600'
    until_true is 'api/lock?name=a' 'len(it["waiters"]) == 1 and it["waiters"][0]["age_ms"] >= 0'
    given_back=$(date +%s%3N)
    kill -TERM "$HOLDER"
    until_true test -e second
    until_true is 'api/lock?name=a' 'len(it["holders"]) == 1 and it["waiters"] == []'
    cat >age.py <<'PY'
import datetime, sys, json
it, given_back = json.load(open(sys.argv[1])), int(sys.argv[2]) / 1000
of = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
ticket = (it["holders"] if "holders" in it else [lock["first"] for lock in it["locks"]])[0]
assert of(ticket["since"]) < given_back, "it queued before"
assert 0 <= ticket["age_ms"] / 1000 <= of(it["seen"]) - given_back + 0.001, ticket
PY
    ask 'api/lock?name=a'
    python3 age.py body "$given_back"
    ask api/locks
    python3 age.py body "$given_back"
}

@test "serve: sorted, filtered and limited" {
    serve
    for name in zeta alpha; do
        start run --label "of-$name" "$name" -- sh -c 'touch "$MORTISE_NAME"; exec sleep 600'
        until_true test -e "$name"
    done
    start run zeta true
    until_true is api/locks 'it["all"] == 2 and sum(l["waiters"] for l in it["locks"]) == 1'
    is api/locks '[l["name"] for l in it["locks"]] == ["zeta", "alpha"]'
    is 'api/locks?sort=name' '[l["name"] for l in it["locks"]] == ["alpha", "zeta"]'
    is 'api/locks?filter=of-alp' '[l["name"] for l in it["locks"]] == ["alpha"] and it["found"] == 1'
    is 'api/locks?limit=1&sort=name' 'len(it["locks"]) == 1 and it["found"] == 2'
}

@test "serve: hostile names and labels are data, in JSON and in metrics" {
    local name='<script>"\'$'\xe2\x80\xae''</script>'
    start run --label '</td><img src=x>' "$name" -- sh -c 'touch holding; exec sleep 600'
    until_true test -e holding
    serve
    until_true is api/locks 'it["all"] == 1'
    NAME="$name" is api/locks '__import__("os").environ["NAME"] == it["locks"][0]["name"]'
    is api/locks 'it["locks"][0]["first"]["label"] == "</td><img src=x>"'
    metric 'mortise_lock_holders{lock="<script>\"\\'$'\xe2\x80\xae''</script>"}' 1
    ask 'api/lock?name=a%00b'
    [ "$asked" = 400 ]
    ask 'api/lock?name=a%0ab'
    [ "$asked" = 400 ]
    ask "api/lock?name=%3Cb%3E"
    [ "$asked" = 200 ]
    grep -i '^content-type: application/json' head
    grep -i '^x-content-type-options: nosniff' head
}

@test "u27 serve: metrics are as Prometheus reads them, and sums are right" {
    serve --metric-locks 1
    start_holder first
    until_true metric 'mortise_lock_holders{lock="first"}' 1
    start run second -- sh -c 'touch second; exec sleep 600'
    start run --permits 2 third -- sh -c 'touch third; exec sleep 600'
    until_true metric mortise_holders 3
    ask metrics
    grep -i '^content-type: text/plain; version=0.0.4' head
    /usr/bin/python3 "$BATS_TEST_DIRNAME/metrics.py" body
    grep -Fx 'mortise_lock_holders{lock="first"} 1' body
    grep -Fx 'mortise_lock_holders{lock=""} 2' body
    grep -Fx 'mortise_lock_grants_seen_total{lock=""} 2' body
    grep -Fx 'mortise_grants_seen_total 3' body
    grep -Fx 'mortise_store_up 1' body
    grep -Ex 'mortise_last_look_timestamp_seconds [0-9]{10}\.[0-9]{3}' body
    run ! grep 'lock="second"' body
}

@test "u15 serve: all that is counted by looks is said to be at least so much" {
    serve
    ask ''
    for words in 'hand-overs a second, at least, last minute' \
        '<figcaption>Hand-overs a second, at least ' 'data-sort="changes">Hand-overs/s,<br>at least<' \
        '>Held for, at least<' 'All that is counted is at least so much: '; do
        grep -F "$words" body
    done
    ask page.js
    grep -F '["hand-overs/s, at least", "number"]' body # on a narrow screen
    grep -F '["held for, at least", "number"]' body
    grep -F '`Seen so far, at least: grants ' body
    ask metrics
    grep '^# HELP mortise_grants_seen_total .*: at least so many,' body
    grep '^# HELP mortise_contended_grants_seen_total .*: at least so many\.$' body
    grep '^# HELP mortise_handovers_seen_total .*: at least so often\.$' body
    grep '^# HELP mortise_longest_hold_seconds .* at least so long\.$' body
    grep '^# HELP mortise_longest_wait_seconds .* at least so long\.$' body
}

@test "serve: a store that fails is said, counted, and found again" {
    command -v redis-server || skip "no Redis server"
    MORTISE_URL=$(python3 "$SERVERS" start redis "$BATS_TEST_TMPDIR/redis" 3>&- | cut -d ' ' -f 2)
    export MORTISE_URL
    start_holder a
    serve
    until_true is api/locks 'it["all"] == 1'
    python3 "$SERVERS" kill "$BATS_TEST_TMPDIR/redis" 0
    until_true is api/overview 'it["error"]'
    metric mortise_store_up 0
    is api/locks 'it["all"] == 1' # what was seen last
    run ! metric 'mortise_errors_total{kind="retry"}' 0
    python3 "$SERVERS" restart "$BATS_TEST_TMPDIR/redis" 0 3>&-
    until_true metric mortise_store_up 1
    python3 "$SERVERS" pause "$BATS_TEST_TMPDIR/redis" 0
    kill -TERM "$SERVE" # it does not wait for the store
    finish "$SERVE"
    [ "$code" -eq 0 ]
}

@test "u40 serve: a store that is away at its start is said, and found when it comes" {
    command -v redis-server || skip "no Redis server"
    MORTISE_URL=$(python3 "$SERVERS" start redis "$BATS_TEST_TMPDIR/redis" 3>&- | cut -d ' ' -f 2)
    export MORTISE_URL
    python3 "$SERVERS" kill "$BATS_TEST_TMPDIR/redis" 0
    start serve --listen 127.0.0.1:0 --interval 100ms --no-token >address 2>said
    SERVE=$PID
    until_true is_told_or_gone
    AT=$(cat address)
    grep -E '^mortise: warning: Redis: .*; trying again$' said
    until_true is api/overview 'it["error"]'
    metric mortise_store_up 0
    python3 "$SERVERS" restart "$BATS_TEST_TMPDIR/redis" 0 3>&-
    until_true metric mortise_store_up 1
    kill -TERM "$SERVE"
    finish "$SERVE"
    [ "$code" -eq 0 ]
}

@test "serve: the page's files, with a policy that lets nothing else in" {
    serve
    for file in '' page.css page.js icon.svg; do
        ask "$file"
        [ "$asked" = 200 ]
        grep -i "^content-security-policy: default-src 'none'; script-src 'self'; " head
        grep -i '^x-frame-options: DENY' head
        run ! grep -Ei 'https?://' <(grep -v 'http://www.w3.org/' body)
    done
    run ! grep -E 'innerHTML|outerHTML|insertAdjacentHTML|eval\(|style=' body
    ask page.js
    cmp body "$BATS_TEST_DIRNAME/../../src/cli/serve/page/page.js"
    run ! grep -E 'innerHTML|outerHTML|insertAdjacentHTML|eval\(' body
    for path in nothing page.html/ ../page.js %2e%2e/page.js api api/ api/lock/; do
        ask "$path"
        [ "$asked" = 404 ]
    done
    ask metrics -I
    [ "$asked" = 200 ]
}

@test "serve: every answer says what a browser may do with it" {
    serve
    for path in '' api/locks 'api/lock?name=%00' metrics nothing; do
        ask "$path"
        for header in "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'" \
            'X-Content-Type-Options: nosniff' 'X-Frame-Options: DENY' 'Referrer-Policy: no-referrer' \
            'Cross-Origin-Resource-Policy: same-origin' 'Cross-Origin-Opener-Policy: same-origin' 'Cache-Control: no-store'; do
            tr -d '\r' <head | grep -Fxi "$header"
        done
        run ! grep -i '^access-control-' head
    done
}

@test "serve: methods, bodies and headers that are too long" {
    serve
    ask api/locks -X DELETE
    [ "$asked" = 405 ]
    grep -i '^allow: GET' head
    ask '' -X POST
    [ "$asked" = 405 ]
    ask 'api/break?name=a&fence=1'
    [ "$asked" = 405 ]
    ask 'api/break?name=a&fence=1' -d 'x=y'
    [ "$asked" = 413 ]
    ask 'api/break?name=a&fence=1' -d 'x=y' -H 'Transfer-Encoding: chunked'
    [ "$asked" = 413 ]
    head -c 20000 /dev/zero | tr '\0' a >long
    ask api/locks -H "X-Long: $(cat long)"
    [[ "$asked" =~ ^4(13|31)$ ]]
    ask ''
    [ "$asked" = 200 ]
}

@test "serve: other names of this host are refused, as are other sites' pages" {
    serve --host Locks.example
    for host in localhost 127.0.0.1 '[::1]:80' 10.1.2.3:8080 locks.example locks.example:443; do
        ask api/locks -H "Host: $host"
        [ "$asked" = 200 ]
    done
    for host in evil.example locks.example.evil.example 127.0.0.1.evil.example localhost:x '[evil]' '[::1' ''; do
        ask api/locks -H "Host: $host"
        [[ "$asked" =~ ^4(21|00)$ ]]
        ask '' -H "Host: $host"
        [[ "$asked" =~ ^4(21|00)$ ]]
    done
    ask api/locks -H 'Sec-Fetch-Site: cross-site'
    [ "$asked" = 403 ]
    ask '' -H 'Sec-Fetch-Site: cross-site'
    [ "$asked" = 200 ]
}

@test "serve: read-only unless it was told otherwise" {
    start_holder a
    fence=$(fence_of a)
    with_token
    for what in break revoke; do
        bearer "api/$what?name=a&fence=$fence" -X POST
        [ "$asked" = 403 ]
        grep -F -- --allow-changes body
    done
    kill -0 "$HOLDER"
    [ "$(fence_of a)" = "$fence" ]
}

@test "serve: with a token all but the page needs it" {
    with_token --allow-changes
    for path in '' page.js page.css icon.svg; do
        ask "$path"
        [ "$asked" = 200 ]
    done
    for path in api/overview api/locks 'api/lock?name=a' metrics; do
        ask "$path"
        [ "$asked" = 401 ]
        grep -i '^www-authenticate: Bearer' head
        bearer "$path"
        [ "$asked" = 200 ]
    done
    for wrong in "Bearer ${TOKEN}x" "Bearer ${TOKEN%?}" "Bearer x${TOKEN#?}" 'Bearer ' 'Bearer' "Basic $TOKEN" "$TOKEN"; do
        ask api/locks -H "Authorization: $wrong"
        [ "$asked" = 401 ]
    done
    ask "api/locks?token=$TOKEN"
    [ "$asked" = 401 ]
    ask 'api/revoke?name=a&fence=1' -X POST
    [ "$asked" = 401 ]
    run ! grep -r "$TOKEN" /proc/$SERVE/cmdline address
}

@test "serve: revoke and break hit the fence that was seen, and no other" {
    start run --json a -- sh -c 'touch holding; exec sleep 600' 2>events
    holder=$PID
    until_true test -e holding
    fence=$(fence_of a)
    with_token --allow-changes
    bearer "api/revoke?name=a&fence=$fence" -X POST
    [ "$asked" = 200 ]
    until_true grep '"event": "revoke"' events
    bearer "api/break?name=a&fence=$((fence + 1))" -X POST
    [ "$asked" = 409 ]
    for bad in '' 0 -1 x 1x 99999999999999999999; do
        bearer "api/break?name=a&fence=$bad" -X POST
        [ "$asked" = 400 ]
    done
    for from in 'Origin: http://evil.example' 'Origin: null' 'Sec-Fetch-Site: cross-site' 'Sec-Fetch-Site: same-site'; do
        bearer "api/break?name=a&fence=$fence" -X POST -H "$from"
        [ "$asked" = 403 ]
    done
    kill -0 "$holder"
    until_true is api/locks 'it["all"] == 1'
    bearer "api/break?name=a&fence=$fence" -X POST -H "Origin: ${AT%/}" -H 'Sec-Fetch-Site: same-origin'
    [ "$asked" = 200 ]
    finish "$holder"
    [ "$code" -eq 76 ]
    bearer metrics
    grep -Fx 'mortise_known_losses_total 1' body
    grep -Fx 'mortise_operator_requests_total{request="break",result="refused"} 1' body
    grep -Fx 'mortise_operator_requests_total{request="break",result="done"} 1' body
    grep -Fx 'mortise_errors_total{kind="usage"} 1' body
}

@test "serve: a holder that died with its lock is a loss for certain" {
    serve
    start run --lock-delay 1h a -- sh -c 'touch holding; exec sleep 600'
    holder=$PID
    until_true test -e holding
    until_true metric mortise_holders 1
    kill -KILL "$holder"
    until_true eval '"$MORTISE" run -n a true; [ $? -eq 75 ] && metric mortise_known_losses_total 1'
    is 'api/lock?name=a' 'it["holders"][0]["delay_ms"] > 0 and it["counts"]["deaths"] == 1'
    is api/overview 'it["counts"]["holds"]["count"] == 1' # the delay is none
}

@test "serve: wrong options are refused immediately, and no file is made" {
    for words in name '--listen 80' '--listen :80' '--listen 127.0.0.1' '--listen 127.0.0.1:x' '--listen ::1:80' \
        '--listen 127.0.0.1:65536' '--listen example.org:80' '--interval 50ms' '--metric-locks 1001' '--no-such'; do
        fails_with 64 timeout 60 "$MORTISE" serve $words
    done
    fails_with 78 timeout 60 "$MORTISE" serve --listen 0.0.0.0:0
    fails_with 78 timeout 60 "$MORTISE" serve --listen '[::]:0'
    fails_with 78 timeout 60 "$MORTISE" serve --allow-changes
    fails_with 78 timeout 60 "$MORTISE" serve --token-file none
    echo "$TOKEN" >token
    chmod 640 token
    fails_with 78 timeout 60 "$MORTISE" serve --token-file token
    chmod 600 token
    if [ "$(id -u)" -eq 0 ]; then # who owns it may change it, and so let himself in
        chown 65534 token
        fails_with 78 timeout 60 "$MORTISE" serve --token-file token
        chown 0 token
    fi
    echo short >token
    fails_with 78 timeout 60 "$MORTISE" serve --token-file token
    MORTISE_SERVE_TOKEN='with a space in it' fails_with 78 timeout 60 "$MORTISE" serve
    fails_with 78 timeout 60 "$MORTISE" serve --token-file .
    MORTISE_SERVE_TOKEN=$TOKEN fails_with 1 timeout 60 "$MORTISE" serve --listen 192.0.2.1:0
    [ ! -e state ]
    MORTISE_ALLOW_CHANGES=1 MORTISE_SERVE_TOKEN=$TOKEN serve
    bearer 'api/break?name=a&fence=1' -X POST
    [ "$asked" = 403 ]
    local port=${AT##*:}
    fails_with 1 timeout 60 "$MORTISE" serve --listen "127.0.0.1:${port%/}"
    [[ "$output" == *"in use"* ]]
}

@test "serve: a token is made where none is given, and nobody sees anything without it" {
    start_holder secret
    start serve --listen 127.0.0.1:0 >address
    SERVE=$PID
    until_true is_told_or_gone
    [[ "$(cat address)" =~ ^(http://127.0.0.1:[0-9]+/)#token=([0-9a-f]{32})$ ]]
    AT=${BASH_REMATCH[1]} TOKEN=${BASH_REMATCH[2]}
    for path in api/locks api/overview metrics; do
        ask "$path"
        [ "$asked" = 401 ]
        run ! grep secret body
    done
    until_true is api/locks 'it["locks"][0]["name"] == "secret"'
    MORTISE_SERVE_TOKEN=$TOKEN fails_with 64 timeout 60 "$MORTISE" serve --no-token
    fails_with 78 timeout 60 "$MORTISE" serve --no-token --listen 0.0.0.0:0
    fails_with 78 timeout 60 "$MORTISE" serve --no-token --allow-changes
}

@test "serve: with a token it may be reached from elsewhere" {
    MORTISE_SERVE_TOKEN=$TOKEN start serve --listen 0.0.0.0:0 >address 2>err
    SERVE=$PID
    until_true is_told_or_gone
    AT=$(sed 's/0\.0\.0\.0/127.0.0.1/' address)
    ask api/locks
    [ "$asked" = 401 ]
    bearer api/locks
    [ "$asked" = 200 ]
    grep "warning: 0.0.0.0:0: .* unencrypted" err
}

@test "serve: without the web server's module it says what is missing" {
    mkdir empty
    MORTISE_MODULES="$T/empty" fails_with 78 "$MORTISE" serve --listen 127.0.0.1:0
    [[ "$output" == *"no web server"*"mortise-http.so is missing"* ]]
}

@test "serve: slow clients and many of them keep nobody waiting, and a signal ends it at once" {
    serve
    python3 - "$AT" <<'PY' &
import socket, sys, time, urllib.parse
at = urllib.parse.urlsplit(sys.argv[1])
idle = [socket.create_connection((at.hostname, at.port)) for _ in range(40)]
for s in idle[:20]:
    s.sendall(b"GET /api/locks HTTP/1.1\r\nHost: localh")  # and never the rest
deaf = socket.create_connection((at.hostname, at.port))
deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
for _ in range(200):  # answers that nobody reads
    try:
        deaf.settimeout(0.2)
        deaf.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
    except OSError:
        break
open("slow", "w").close()
time.sleep(600)
PY
    until_true test -e slow
    for _ in 1 2 3 4 5; do
        ask metrics
        [ "$asked" = 200 ]
    done
    kill -TERM "$SERVE"
    finish "$SERVE"
    [ "$code" -eq 0 ]
    run ! curl -s -m 5 "$AT"
}

# More of them than there is room for; each sends a byte of its header now and then.
@test "serve: strangers that take all connections do not keep out a client with the token" {
    with_token
    python3 - "$AT" <<'PY' 3>&- &
import socket, sys, time, urllib.parse
at = urllib.parse.urlsplit(sys.argv[1])
def call():
    s = socket.create_connection((at.hostname, at.port))
    s.sendall(b"GET /api/locks HTTP/1.1\r\n")
    return s
calls = [call() for _ in range(200)]
open("slow", "w").close()
while True:
    for i, s in enumerate(calls):
        try:
            s.sendall(b"X")
        except OSError:
            calls[i] = call()
    time.sleep(0.2)
PY
    until_true test -e slow
    for _ in 1 2 3 4 5; do
        asked=$(curl -sS -m 5 -o body -w '%{http_code}' -H "Authorization: Bearer $TOKEN" "${AT}api/locks")
        [ "$asked" = 200 ]
    done
}

@test "serve: a request for two hosts is refused" {
    serve
    run -0 python3 - "$AT" <<'PY'
import socket, sys, urllib.parse
at = urllib.parse.urlsplit(sys.argv[1])
s = socket.create_connection((at.hostname, at.port))
s.sendall(b"GET /api/locks HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
print(s.recv(100).split(b"\r\n")[0].decode())
PY
    [[ "$output" == *" 400 "* ]]
}

@test "serve: SIGINT and SIGHUP end it with 0, and its session is gone" {
    for signal in INT HUP; do
        serve
        ask api/locks
        kill -"$signal" "$SERVE"
        finish "$SERVE"
        [ "$code" -eq 0 ]
        : >address
    done
    run -0 "$MORTISE" ls
    [ "${#lines[@]}" -eq 1 ]
}
