#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Exit codes, as the manual's EXIT STATUS has them: a row each of code and what ends with it.
load helper

# Where CODE COMMAND... stand in a line, the command ends with the code; with one of mortise's
# own, not the command's, it says why in one line (or prints nothing, if it only answers).
rows() {
    local expected line
    while read -r expected line; do
        [ -n "$expected" ] || continue
        code=0
        eval "$line" >out 2>err || code=$?
        echo "$line: $code, expected $expected"
        [ "$code" -eq "$expected" ]
        if ((code >= 64 && code < 124)); then
            [ "$(wc -l <err)" -le 1 ]
            [ ! -s err ] || grep -q '^mortise: ' err
        fi
    done
}

@test "exit codes: the command's own, and how it ended" {
    rows <<'END'
0   "$MORTISE" run a true
1   "$MORTISE" run a false
75  "$MORTISE" run a sh -c 'exit 75' 2>/dev/null
255 "$MORTISE" run a sh -c 'exit 255'
137 "$MORTISE" run a sh -c 'kill -KILL $$'
143 "$MORTISE" run a sh -c 'kill -TERM $$'
126 "$MORTISE" run a /etc/passwd
127 "$MORTISE" run a ./nosuch
127 "$MORTISE" run -F a ./nosuch
124 "$MORTISE" run --max-hold 50ms --grace 50ms a sleep 600
3   "$MORTISE" elect e -- sh -c 'exit 3'
END
}

@test "exit codes: wrong usage is 64 for every subcommand" {
    local subcommand
    for subcommand in $("$MORTISE" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
        rows <<<"64 \"\$MORTISE\" $subcommand --nosuch"
        rows <<<"0 \"\$MORTISE\" $subcommand --help"
    done
    rows <<'END'
64  "$MORTISE"
64  "$MORTISE" nosuch
64  "$MORTISE" run
64  "$MORTISE" run a
64  "$MORTISE" run -w soon a true
64  "$MORTISE" run "" true
64  "$MORTISE" run --url redis://:secret@h/ a true
64  "$MORTISE" try
64  "$MORTISE" status
64  "$MORTISE" break a
64  "$MORTISE" acquire
64  "$MORTISE" renew a </dev/null
64  "$MORTISE" release a </dev/null
64  "$MORTISE" check true
END
}

@test "exit codes: 75 not acquired, 1 no, 76 lost, 69 unreachable, 78 configuration" {
    start_holder a
    mkdir open
    chmod 777 open
    rows <<'END'
75  "$MORTISE" run -n a true
75  "$MORTISE" run -w 10ms a true
75  "$MORTISE" run -F -n a true
9   "$MORTISE" run -n -E 9 a true
0   "$MORTISE" run -n --quiet-conflict a true
75  "$MORTISE" try a
0   "$MORTISE" try b
75  "$MORTISE" acquire -n a
75  "$MORTISE" acquire --durable -n a
0   "$MORTISE" status a
1   "$MORTISE" elect e --once
1   "$MORTISE" revoke b
1   "$MORTISE" break a --fence 9999999999
75  "$MORTISE" run -n -s a true
76  "$MORTISE" renew a <<<keeper-0123456789abcdef-0123456789abcdef0123456789abcdef
76  "$MORTISE" release a <<<keeper-0123456789abcdef-0123456789abcdef0123456789abcdef
1   "$MORTISE" release c <<<0123456789abcdef0123456789abcdef-1
0   "$MORTISE" check --fence-file f --fence 7 true
76  "$MORTISE" check --fence-file f --fence 6 true
69  "$MORTISE" ls --url redis://127.0.0.1:1/
78  "$MORTISE" run --url nosuch:x b true
78  "$MORTISE" ls --url nosuch:x
78  "$MORTISE" run --url "sqlite://$T/open/x.db" b true
78  "$MORTISE" run --config nowhere b true
END
}
