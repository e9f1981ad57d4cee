#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mortise agent and clients that others wrote: each takes a lock, loses it, and gives it back.
load helper
load agent

# Held by another connection, NAME is given to the next LOCK once that connection has ended.
next_has_it() {
    [[ "$(redis-cli -s "$T/agent.sock" LOCK "$1" 20000)" =~ ^[0-9]+$ ]]
}

is_busy() {
    [[ "$(redis-cli -s "$T/agent.sock" LOCK "$1" 0)" == BUSY* ]]
}

@test "redis-cli takes a lock and gives it back; killed, it has lost it" {
    start_agent
    coproc redis-cli -s "$T/agent.sock"
    echo "LOCK deploy 0" >&"${COPROC[1]}"
    read -r fence <&"${COPROC[0]}"
    is_busy deploy
    echo "UNLOCK deploy $fence" >&"${COPROC[1]}"
    read -r reply <&"${COPROC[0]}"
    [ "$reply" = OK ]
    next_has_it deploy
    echo "LOCK deploy 20000" >&"${COPROC[1]}"
    read -r second <&"${COPROC[0]}"
    [ "$second" -gt "$fence" ]
    is_busy deploy
    kill -KILL "$COPROC_PID"
    next_has_it deploy
}

# The script of doc/agent.md, as it stands there.
script() {
    sed -n '/^```bash/,/^```$/p' "$BATS_TEST_DIRNAME/../../doc/agent.md" | sed '1d;$d' >"$T/with-lock"
    [ "$(wc -l <"$T/with-lock")" -le 12 ]
    chmod +x "$T/with-lock"
}

@test "a shell script of ten lines takes a lock, gives it back, and says when it has lost it" {
    script
    start_agent
    export AGENT_SOCKET="$T/agent.sock"
    "$T/with-lock" deploy sh -c 'echo 1 >"$T/ran"'
    [ "$(cat "$T/ran")" = 1 ]
    next_has_it deploy
    "$T/with-lock" deploy sh -c 'touch "$T/holds"; until [ -e "$T/go" ]; do sleep 0.05; done' 3>&- &
    until_true test -e "$T/holds"
    is_busy deploy
    kill -KILL "$AGENT"
    touch "$T/go"
    finish $!
    [ "$code" -ne 0 ]
    start_agent
    next_has_it deploy
}

@test "redis-py: one connection out of the pool holds until the pool is disconnected" {
    /usr/bin/python3 -c 'import redis' || skip "no redis-py"
    start_agent
    timeout 60 /usr/bin/python3 - "$T/agent.sock" <<'END'
import sys
import redis

def refused(client, *words):
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return str(error).split()[0]

def own():
    return redis.Redis(unix_socket_path=sys.argv[1], single_connection_client=True)

a, b = own(), own()
fence = a.execute_command("LOCK", "deploy", 0)
assert fence > 0 and a.execute_command("HELD", "deploy") > 0
assert refused(b, "LOCK", "deploy", 0) == "BUSY"
assert a.execute_command("UNLOCK", "deploy", fence) in (b"OK", True, "OK")
second = b.execute_command("LOCK", "deploy", 1000)
assert second > fence
b.close() # gives the connection back to the pool of this object, which keeps it
assert refused(a, "LOCK", "deploy", 300) == "TIMEOUT"
b.connection_pool.disconnect()
third = a.execute_command("LOCK", "deploy", 20000)
assert third > second
a.connection.disconnect() # by trouble of the network, or a time-out: the library connects again
assert refused(a, "HELD", "deploy") == "NOTHELD", "and the new connection does not have the lock"

# A pool whose tasks get any connection: the lock is the process's.
pool = redis.ConnectionPool(connection_class=redis.UnixDomainSocketConnection, path=sys.argv[1])
c = redis.Redis(connection_pool=pool)
fence = c.execute_command("LOCK", "deploy", 20000, "BIND", "PROCESS", "TTL", 60000)
pool.disconnect()
held = pool.get_connection("PING") # so the next command takes another one
assert c.execute_command("HELD", "deploy") > 0
assert c.execute_command("EXTEND", "deploy", fence, 30000) == 30000
assert refused(a, "LOCK", "deploy", 0) == "BUSY"
assert c.execute_command("UNLOCK", "deploy", fence) in (b"OK", True, "OK")
assert a.execute_command("LOCK", "deploy", 0) > fence
END
    next_has_it deploy
}

@test "redis-py: asyncio tasks on one connection do not lock each other out" {
    /usr/bin/python3 -c 'import redis.asyncio' || skip "no redis-py with asyncio"
    start_agent
    timeout 60 /usr/bin/python3 - "$T/agent.sock" <<'END'
import asyncio
import sys
import redis.asyncio

async def main():
    def own():
        return redis.asyncio.Redis(unix_socket_path=sys.argv[1], single_connection_client=True)
    a, b = own(), own()
    fence = await a.execute_command("LOCK", "deploy", 0)
    waiting = asyncio.ensure_future(b.execute_command("LOCK", "deploy", 20000))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await a.execute_command("UNLOCK", "deploy", fence)
    assert await waiting > fence
    await a.connection_pool.disconnect()
    await b.connection_pool.disconnect()

asyncio.run(main())
END
}

@test "ioredis takes, loses and gives back a lock" {
    local modules
    command -v node >/dev/null || skip "no node"
    modules="$(npm root -g)"
    [ -d "$modules/ioredis" ] || skip "no ioredis"
    start_agent
    cat >"$T/client.js" <<'END'
const Redis = require("ioredis");
const path = process.argv[2];
const own = () => new Redis({ path, maxRetriesPerRequest: 0, retryStrategy: () => null });
const word = (promise) => promise.then((reply) => reply, (error) => error.message.split(" ")[0]);
const check = (is, what) => { if (!is) { console.error("not so:", what); process.exit(1); } };
(async () => {
  const a = own(), b = own();
  const fence = await a.call("LOCK", "deploy", 0);
  check(fence > 0, "taken");
  check((await a.call("HELD", "deploy")) > 0, "held");
  check((await word(b.call("LOCK", "deploy", 0))) === "BUSY", "busy");
  const waiting = b.call("LOCK", "deploy", -1);
  // Behind a LOCK that waits, on the same connection.
  check((await Promise.race([waiting, new Promise((f) => setTimeout(f, 200, "waits"))])) === "waits",
        "waits");
  check((await a.call("UNLOCK", "deploy", fence)) === "OK", "given back");
  const second = await waiting;
  check(second > fence, "handed on");
  b.disconnect();
  check((await a.call("LOCK", "deploy", 20000)) > second, "lost with its connection");
  // One connection for all tasks of a program: UNLOCK overtakes the LOCK that waits.
  const c = own();
  const other = await c.call("LOCK", "other", 0);
  const blocked = c.call("LOCK", "deploy", 20000);
  const unlocked = c.call("UNLOCK", "other", other);
  check((await a.call("LOCK", "other", 20000)) > other, "UNLOCK takes effect behind LOCK");
  a.disconnect();
  check((await blocked) > 0 && (await unlocked) === "OK", "replies in order");
  c.disconnect();
})();
END
    NODE_PATH="$modules" timeout 60 node "$T/client.js" "$T/agent.sock"
    next_has_it deploy
}
