# SPDX-License-Identifier: Apache-2.0
# A server that start_server has started with a clock that can be set; $DATED is a URL of it whose
# answers have a date.

# set_clock TIME: "+3600" seconds from the true time; the server has that time then.
set_clock() {
    python3 "$SERVERS" clock "$PLACE" 0 "$1"
    until_true shows_time "$1"
}

shows_time() {
    local date
    date=$(curl -sS -o /dev/null -D - "$DATED" | sed -n 's/^Date: //ip' | tr -d '\r')
    local off=$(($(date -d "$date" +%s) - $(date +%s) - $1))
    ((off > -60 && off < 60))
}

teardown() {
    set_clock +0
    clean_up
}

steps() {
    local to
    for to in +3600 +0 -3600 +0; do
        set_clock "$to"
        sleep 1
    done
}

# A hold lasts, and those who compete are served one by one.
lasts_through_steps() {
    start_holder lasts
    contest 3 20 steps
    [ "$(wc -l <made)" -ge 50 ]
    kill -0 "$HOLDER"
    run -75 "$MORTISE" run -n lasts true
}

# dies_while CLOCK: a holder is killed once the clock is set, and another waits: $PID.
dies_while() {
    rm -f served
    start_holder dies
    start run -w 60s dies -- touch served
    until_true waiters dies 1
    set_clock "$1"
    kill -KILL "$HOLDER"
    finish "$HOLDER"
}

is_served() {
    finish "$PID"
    [ "$code" -eq 0 ]
    [ -e served ]
}
