// SPDX-License-Identifier: Apache-2.0
'use strict';
// Several locks as one, durable holds, permits in use, and what becomes of handles: run by
// locks.test.js, on its store.
const test = require('node:test');
const assert = require('node:assert/strict');
const vm = require('node:vm');
const v8 = require('node:v8');
const { spawn } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const { once } = require('node:events');
const mortise = require('..');
const { LIMIT, place, name, until } = require('./place');

const clients = place();

async function queued(lock) {
  return (await clients.one.list(lock)).length;
}

test('several locks of any kinds and clients are held together', async () => {
  const [a, b, c] = [name(), name(), name()];
  const locks = [clients.other.mutex(b), clients.one.semaphore(c, 2, { take: 2 }),
    clients.one.readWrite(a).write];
  const holds = await mortise.acquireAll(locks, { timeout: LIMIT });
  assert.equal(holds.length, 3);
  assert.deepEqual(holds.map((hold) => hold.lock), locks);
  for (const [i, hold] of holds.entries()) {
    assert.equal(hold.held, true);
    assert.equal((await clients.one.list(hold.lock.name))[0].fence, hold.fence);
    assert.equal(await locks[i].tryAcquire(), null);
  }
  holds.release();
  holds.release();
  assert.deepEqual(holds.map((hold) => hold.state), Array(3).fill('released'));
  (await mortise.acquireAll(locks, { timeout: LIMIT })).release();
});

test('all of them or none', async () => {
  const free = clients.one.mutex(name()), used = clients.one.mutex(name());
  const hold = await clients.other.mutex(used.name).acquire();
  await assert.rejects(mortise.acquireAll([free, used], { timeout: 0 }), mortise.BusyError);
  await assert.rejects(mortise.acquireAll([used, free], { timeout: 50 }),
    { name: 'TimeoutError', code: 'ETIMEOUT' });
  (await clients.other.mutex(free.name).acquire({ timeout: LIMIT })).release();
  const waiting = mortise.acquireAll(new Set([free, used]));
  await until(async () => await queued(used.name) === 2);
  hold.release();
  (await waiting).release();
});

test('calls for the same locks in other orders do not wait for each other', async () => {
  const names = [name(), name(), name()];
  let inside = 0, done = 0;
  await Promise.all([clients.one, clients.other].flatMap((client) =>
    Array.from({ length: 6 }, async (_, task) => {
      const locks = names.map((n) => client.mutex(n));
      for (let turn = 0; turn < 5; turn++) {
        locks.push(locks.splice(task % 3, 1)[0]);
        const holds = await mortise.acquireAll(locks, { timeout: LIMIT });
        assert.equal(inside++, 0);
        await null;
        inside--;
        done++;
        holds.release();
      }
    })));
  assert.equal(done, 60);
});

test('an AbortSignal ends the wait for several, and no other wait of the lock', async () => {
  const free = clients.one.mutex(name()), used = clients.one.mutex(name());
  const hold = await clients.other.mutex(used.name).acquire();
  const controller = new AbortController();
  const single = used.acquire({ timeout: LIMIT });
  const all = mortise.acquireAll([free, used], { signal: controller.signal });
  await until(async () => await queued(used.name) === 2);
  controller.abort();
  await assert.rejects(all, { name: 'AbortError' });
  await assert.rejects(mortise.acquireAll([free], { signal: AbortSignal.abort() }),
    { name: 'AbortError' });
  hold.release();
  (await single).release();
  (await free.acquire({ timeout: LIMIT })).release();
});

test('waits for several locks and for permits leave the pool and the loop free', async () => {
  const used = name(), permits = name();
  const holds = await mortise.acquireAll([clients.one.mutex(used),
    clients.one.semaphore(permits, 2, { take: 2 })]);
  const waits = Array.from({ length: 8 }, () => mortise.acquireAll([clients.other.mutex(used)]));
  const change = clients.other.semaphore(permits, 2).setPermits(0);
  const text = await require('node:fs/promises').readFile(__filename, 'utf8');
  assert.match(text, /leave the pool/);
  assert.equal(await clients.other.mutex(used).tryAcquire(), null);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await until(() => turns > 20);
  clearInterval(timer);
  holds.release();
  await Promise.all(waits.map(async (wait) => (await wait).release()));
  await change;
  await clients.one.semaphore(permits, 2).setPermits(2);
});

test('close ends a wait for several locks and a change of permits', async () => {
  const n = name(), permits = name();
  const hold = await clients.one.mutex(n).acquire();
  const taken = await clients.one.semaphore(permits, 2).acquire();
  const client = await mortise.Client.open(clients.url);
  const lock = client.mutex(n);
  const ends = [mortise.acquireAll([lock, clients.other.mutex(name())]),
    client.semaphore(permits, 2).setPermits(0)]
    .map((wait) => assert.rejects(wait, { name: 'UsageError', code: 'ECLOSED' }));
  await until(async () => await queued(n) === 2 && await queued(permits) === 2);
  assert.equal(await client.close(), true);
  await Promise.all(ends);
  await assert.rejects(mortise.acquireAll([lock]), { code: 'ECLOSED' });
  hold.release();
  taken.release();
});

test('misuse of several locks', async () => {
  const lock = clients.one.mutex(name());
  await assert.rejects(mortise.acquireAll([]), { name: 'UsageError', code: 'EINVALID' });
  await assert.rejects(mortise.acquireAll([lock, lock]), { name: 'UsageError', code: 'EDEADLOCK' });
  await assert.rejects(mortise.acquireAll([lock, 'b']), TypeError);
  await assert.rejects(mortise.acquireAll([lock], { timeout: 'soon' }), TypeError);
  (await lock.acquire({ timeout: LIMIT })).release();
});

test('of several holds a lost one is told, and the others are given back', async () => {
  const locks = [clients.one.mutex(name()), clients.one.mutex(name())];
  const holds = await mortise.acquireAll(locks);
  await clients.other.break(locks[1].name, holds[1].fence);
  await until(() => !holds[1].held);
  assert.throws(() => holds.release(), mortise.LostError);
  assert.deepEqual(holds.map((hold) => hold.state), ['released', 'lost']);
  assert.equal(holds[1].signal.aborted, true);
  assert.equal(holds[0].signal.aborted, false);
  (await clients.other.mutex(locks[0].name).acquire({ timeout: LIMIT })).release();
});

test('a detached lock stays taken, and is adopted by its token', async () => {
  const lock = clients.one.mutex(name());
  const hold = await lock.acquire();
  const detaching = hold.detach();
  assert.equal(hold.held, false);
  const token = await detaching;
  hold.release();
  await assert.rejects(hold.detach(), { name: 'UsageError', code: 'ENOTHELD' });
  const other = clients.other.mutex(lock.name);
  assert.equal(await other.tryAcquire(), null);
  assert.equal((await clients.one.list(lock.name))[0].detached, true);
  await assert.rejects(other.adopt('no token'), { code: 'EINVALID' });
  const adopted = await other.adopt(token);
  assert.ok(adopted.held && adopted.fence >= hold.fence);
  await assert.rejects(other.adopt(token), { code: 'ENOTHELD' });
  adopted.release();
  (await lock.acquire({ timeout: LIMIT })).release();
});

test('a detached lock outlives its client', async () => {
  const client = await mortise.Client.open(clients.url);
  const n = name();
  const token = await (await client.semaphore(n, 2, { take: 2 }).acquire()).detach();
  await client.close();
  assert.equal(await clients.one.semaphore(n, 2).tryAcquire(), null);
  (await clients.one.semaphore(n, 2, { take: 2 }).adopt(token)).release();
  (await clients.one.semaphore(n, 2).acquire({ timeout: LIMIT })).release();
});

test('a lock that was lost cannot be detached', async () => {
  const lock = clients.one.mutex(name());
  const hold = await lock.acquire();
  await clients.other.break(lock.name, hold.fence);
  await until(() => !hold.held);
  await assert.rejects(hold.detach(), mortise.LostError);
  assert.equal(hold.state, 'lost');
});

test('permits in use are lowered and raised for all clients', async () => {
  const n = name();
  const one = clients.one.semaphore(n, 3), other = clients.other.semaphore(n, 3);
  assert.equal(await one.permits(), 3);
  await one.setPermits(1);
  assert.equal(await other.permits(), 1);
  const hold = await other.acquire({ timeout: LIMIT });
  assert.equal(await one.tryAcquire(), null);
  await assert.rejects(other.setPermits(0, { timeout: 50 }), mortise.TimeoutError);
  assert.equal(await one.permits(), 1);
  const closing = other.setPermits(0);
  await until(async () => (await clients.one.list(n)).some((entry) => entry.place > 0));
  hold.release();
  await closing;
  assert.equal(await one.tryAcquire(), null);
  await other.setPermits(3);
  const all = await clients.one.semaphore(n, 3, { take: 3 }).acquire({ timeout: LIMIT });
  all.release();
  await assert.rejects(one.setPermits(4), { name: 'UsageError', code: 'EINVALID' });
  await assert.rejects(one.setPermits(-1), RangeError);
});

test('a handle that is collected is freed: its name may be of another kind', async () => {
  v8.setFlagsFromString('--expose-gc');
  const collect = vm.runInNewContext('gc');
  const n = name();
  await clients.one.mutex(n).run(() => {});
  await mortise.acquireAll([clients.one.mutex(n)]).then((holds) => holds.release());
  await until(() => {
    collect();
    try {
      return clients.one.semaphore(n, 2);
    } catch (error) {
      assert.equal(error.code, 'EMISMATCH');
      return false;
    }
  });
  const kept = clients.one.mutex(name());
  collect();
  (await kept.acquire({ timeout: LIMIT })).release();
});

const THROWS = `
  const { Client } = require(process.env.MORTISE_PACKAGE);
  process.on('uncaughtException', (error) => console.log('uncaught', error.message));
  (async () => {
    const client = await Client.open(process.env.MORTISE_URL);
    const election = client.election(process.env.MORTISE_NAME);
    const elected = new Promise((resolve) => {
      election.on('elected', () => { resolve(); throw new Error('of the listener'); });
    });
    await election.campaign();
    await elected;
    election.resign();
    await client.close();
    console.log('closed');
  })();
`;

test('what a listener throws is uncaught, and the client goes on', async () => {
  const child = spawn(process.execPath, ['-e', THROWS], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MORTISE_PACKAGE: require.resolve('..'), MORTISE_URL: clients.url,
      MORTISE_NAME: name() },
  });
  let text = '';
  child.stdout.on('data', (data) => {
    text += data;
  });
  assert.deepEqual(await once(child, 'close'), [0, null]);
  assert.equal(text, 'uncaught of the listener\nclosed\n');
});

test('Node.js goes on with its timers while acquires follow each other', async () => {
  const lock = clients.one.mutex(name());
  let turns = 0, ended = false;
  const timer = setInterval(() => turns++, 1);
  const tasks = Array.from({ length: 4 }, async () => {
    while (!ended)
      await lock.run(() => {});
  });
  await until(() => turns > 20);
  ended = true;
  clearInterval(timer);
  await Promise.all(tasks);
});

const WAITS = `
  const { Client, acquireAll } = require(process.env.MORTISE_PACKAGE);
  (async () => {
    const client = await Client.open(process.env.MORTISE_URL);
    const [held, waited, permits] = process.env.MORTISE_NAMES.split(' ');
    await client.mutex(held).acquire();
    acquireAll([client.mutex(waited)]).catch(() => {});
    client.semaphore(permits, 1).setPermits(0).catch(() => {});
    console.log('waits');
  })();
`;

test('a worker and a program that end while they wait for several leave no lock', async () => {
  for (const kind of ['worker', 'program']) {
    const names = [name(), name(), name()];
    const hold = await clients.one.mutex(names[1]).acquire();
    const taken = await clients.one.semaphore(names[2], 1).acquire();
    const env = { ...process.env, MORTISE_PACKAGE: require.resolve('..'),
      MORTISE_URL: clients.url.replace('session=10s', 'session=1000s'),
      MORTISE_NAMES: `${names[0]} ${names[1]} ${names[2]}` };
    const end = kind === 'worker' ? new Worker(WAITS, { eval: true, env, stdout: true })
      : spawn(process.execPath, ['-e', `${WAITS}\nprocess.on('SIGTERM', () => process.exit(3));`],
        { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(end.stdout, 'data');
    await until(async () => await queued(names[1]) === 2 && await queued(names[2]) === 2);
    if (kind === 'worker') {
      await end.terminate();
    } else {
      end.kill('SIGTERM');
      assert.deepEqual(await once(end, 'exit'), [3, null]);
    }
    (await clients.one.mutex(names[0]).acquire({ timeout: LIMIT })).release();
    await until(async () => await queued(names[1]) === 1 && await queued(names[2]) === 1);
    hold.release();
    taken.release();
  }
});
