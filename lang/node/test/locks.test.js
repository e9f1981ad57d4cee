// SPDX-License-Identifier: Apache-2.0
'use strict';
const test = require('node:test');
const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const { once } = require('node:events');
const mortise = require('..');
const { LIMIT, place, name, until } = require('./place');

const clients = place();

/** How many tickets a lock's queue has. */
async function queued(lock) {
  return (await clients.one.list(lock)).length;
}

test('a lock is held by one client at a time', async () => {
  const n = name();
  const hold = await clients.one.mutex(n).acquire();
  assert.equal(hold.held, true);
  assert.equal(hold.state, 'held');
  assert.ok(hold.remaining > 0);
  assert.equal(await clients.other.mutex(n).tryAcquire(), null);
  hold.release();
  assert.equal(hold.held, false);
  assert.equal(hold.state, 'released');
  const next = await clients.other.mutex(n).acquire({ timeout: LIMIT });
  assert.ok(next.fence > hold.fence);
  next.release();
  next.release();
});

test('an acquire of the same client waits too: a hold belongs to nobody', async () => {
  const lock = clients.one.mutex(name());
  const hold = await lock.acquire();
  assert.equal(await lock.tryAcquire(), null);
  hold.release();
});

test('the time of a wait is over: TimeoutError with the text of the library', async () => {
  const n = name();
  const hold = await clients.one.mutex(n).acquire();
  await assert.rejects(clients.other.mutex(n).acquire({ timeout: 50 }), (error) => {
    assert.ok(error instanceof mortise.TimeoutError && error instanceof mortise.MortiseError);
    assert.equal(error.code, 'ETIMEOUT');
    assert.match(error.message, /^timed out before the lock was granted \(.*waited/);
    assert.match(error.stack, /locks\.test\.js/);
    return true;
  });
  hold.release();
});

test('an AbortSignal ends a wait, and leaves nothing in the queue', async () => {
  const n = name();
  const hold = await clients.one.mutex(n).acquire();
  const controller = new AbortController();
  const waiting = clients.other.mutex(n).acquire({ signal: controller.signal });
  await until(async () => await queued(n) === 2);
  controller.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
  await until(async () => await queued(n) === 1);
  await assert.rejects(clients.other.mutex(n).acquire({ signal: AbortSignal.abort() }),
    { name: 'AbortError' });
  hold.release();
});

test('run gives back after success and after an error', async () => {
  const lock = clients.one.mutex(name());
  assert.equal(await lock.run((hold) => hold.held), true);
  await assert.rejects(lock.run(async () => {
    throw new Error('of the work');
  }), /of the work/);
  const hold = await lock.tryAcquire();
  assert.ok(hold);
  await hold[Symbol.asyncDispose || Symbol.for('Symbol.asyncDispose')]();
  assert.equal(hold.held, false);
});

test('a thousand tasks on one lock, with no task beside another', async () => {
  const lock = clients.one.mutex(name());
  let inside = 0, done = 0;
  await Promise.all(Array.from({ length: 1000 }, () => lock.run(async () => {
    assert.equal(inside++, 0);
    await null;
    inside--;
    done++;
  })));
  assert.equal(done, 1000);
});

test('two hundred waits leave the pool and the event loop free', async () => {
  const n = name();
  const hold = await clients.one.mutex(n).acquire();
  const waits = Array.from({ length: 200 }, () => clients.other.mutex(n).acquire());
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const text = await require('node:fs/promises').readFile(__filename, 'utf8'); // of the same pool
  assert.match(text, /two hundred waits/);
  await until(() => turns > 20);
  clearInterval(timer);
  hold.release();
  for (const wait of waits)
    (await wait).release();
});

test('permits of a semaphore', async () => {
  const n = name();
  const two = clients.one.semaphore(n, 3, { take: 2 });
  const hold = await two.acquire();
  const one = await clients.other.semaphore(n, 3).acquire({ timeout: LIMIT });
  assert.equal(await clients.other.semaphore(n, 3).tryAcquire(), null);
  hold.release();
  one.release();
});

test('readers together, a writer alone, and a writer that becomes a reader', async () => {
  const n = name();
  const one = clients.one.readWrite(n), other = clients.other.readWrite(n);
  const first = await one.read.acquire();
  const second = await other.read.acquire({ timeout: LIMIT });
  assert.equal(await one.write.tryAcquire(), null);
  first.release();
  second.release();
  const writer = await one.write.acquire({ timeout: LIMIT });
  assert.equal(await other.read.tryAcquire(), null);
  writer.downgrade();
  (await other.read.acquire({ timeout: LIMIT })).release();
  writer.release();
});

test('a hold that is broken is told: signal, state, check and release', async () => {
  const lock = clients.one.mutex(name());
  const hold = await lock.acquire();
  await clients.other.break(lock.name, hold.fence);
  if (!hold.signal.aborted)
    await once(hold.signal, 'abort');
  assert.equal(hold.state, 'lost');
  assert.ok(hold.signal.reason instanceof mortise.LostError);
  assert.throws(() => hold.check(), mortise.LostError);
  assert.throws(() => hold.release(), mortise.LostError);
});

test('an operator asks, and the holder gives the lock up', async () => {
  const lock = clients.one.mutex(name());
  const hold = await lock.acquire();
  const given = new Promise((resolve) => {
    hold.onRevoke((which) => {
      which.release();
      resolve(which);
    });
  });
  await clients.other.revoke(lock.name);
  assert.equal(await given, hold);
});

test('verify reads the hold at the store', async () => {
  const hold = await clients.one.mutex(name()).acquire();
  await hold.verify();
  hold.release();
  await assert.rejects(hold.verify(), mortise.UsageError);
  await assert.rejects(hold.verify({ timeout: Infinity }), /finite/);
});

test('a hold ends by itself after maxHold', async () => {
  const hold = await clients.one.mutex(name(), { maxHold: 100 }).acquire();
  if (!hold.signal.aborted)
    await once(hold.signal, 'abort');
  assert.throws(() => hold.release(), mortise.LostError);
});

test('an election: elected, leader, deposed', async () => {
  const n = name();
  const one = clients.one.election(n, { value: 'one' });
  const other = clients.other.election(n, { value: 'other' });
  const events = [];
  one.on('elected', (fence) => events.push(['elected', fence]));
  one.on('deposed', (fence) => events.push(['deposed', fence]));
  assert.equal(await other.leader(), null);
  const fence = await one.campaign({ timeout: LIMIT });
  assert.equal(one.leads, true);
  assert.equal(one.fence, fence);
  await assert.rejects(other.campaign({ timeout: 50 }), mortise.TimeoutError);
  const leader = await other.leader();
  assert.equal(leader.value.toString(), 'one');
  assert.equal(leader.fence, fence);
  const seen = [];
  other.on('leader', (who) => seen.push(who && who.value.toString()));
  other.observe();
  await until(() => seen.includes('one'));
  one.proclaim('uno');
  await until(() => seen.includes('uno'));
  one.resign();
  await until(() => events.length === 2);
  assert.deepEqual(events, [['elected', fence], ['deposed', fence]]);
  assert.ok(await other.campaign({ timeout: LIMIT }) > fence);
  other.resign();
});

test('a campaign that was resigned ends, and the next one is another', async () => {
  const n = name();
  const other = clients.other.election(n);
  await other.campaign({ timeout: LIMIT });
  const one = clients.one.election(n);
  const first = one.campaign();
  const resigned = assert.rejects(first, { name: 'TimeoutError', code: 'ECANCELLED' });
  one.resign();
  const second = one.campaign({ timeout: LIMIT });
  await resigned;
  other.resign();
  assert.equal(await second, one.fence);
  one.resign();
});

test('cells: versions, fences, conflicts', async () => {
  const n = name();
  assert.equal((await clients.one.getCell(n)).version, 0n);
  const version = await clients.one.setCell(n, 0n, 'a', 7n);
  const cell = await clients.other.getCell(n);
  assert.deepEqual([cell.version, cell.fence, cell.value.toString()], [version, 7n, 'a']);
  await assert.rejects(clients.other.setCell(n, 0n, 'b'), { code: 'ECONFLICT' });
  await assert.rejects(clients.other.setCell(n, version, 'b', 6n), mortise.LostError);
  await clients.other.deleteCell(n, version, 8n);
  assert.equal((await clients.one.getCell(n)).version, 0n);
});

test('list shows the holder, its label, and the waiter', async () => {
  const n = name();
  const hold = await clients.one.mutex(n).acquire();
  const waiting = clients.other.mutex(n).acquire();
  await until(async () => await queued(n) === 2);
  const [holder, waiter] = await clients.other.list(n);
  assert.deepEqual([holder.name, holder.kind, holder.place, holder.label, holder.fence],
    [n, 'mutex', 0, 'tests', hold.fence]);
  assert.equal(waiter.place, 1);
  assert.ok(holder.id > 0n && waiter.id > 0n && holder.id !== waiter.id);
  hold.release();
  (await waiting).release();
});

test('misuse is an error of the language, or of the library with its text', async () => {
  await assert.rejects(clients.one.mutex(name()).acquire({ timeout: '5' }), TypeError);
  await assert.rejects(clients.one.mutex(name()).acquire({ timeout: -1 }), /milliseconds, not -1/);
  assert.throws(() => clients.one.semaphore(name(), 0), RangeError);
  assert.throws(() => clients.one.mutex(''), { name: 'UsageError', code: 'ENAME' });
  assert.throws(() => clients.one.mutex('a\0b'), { name: 'UsageError', code: 'EINVALID' });
  assert.throws(() => clients.one.mutex('a\nb'), { name: 'UsageError', code: 'ENAME' });
  await assert.rejects(clients.one.setCell(name(), -1n, ''), RangeError);
  await assert.rejects(clients.one.setCell(name(), 1, ''), TypeError);
  await assert.rejects(mortise.Client.open('nonsense://x'),
    { name: 'ConfigError', code: 'ESCHEME' });
  await assert.rejects(mortise.Client.open(17), TypeError);
  await assert.rejects(mortise.Client.open(clients.url, { giveUp: 'soon' }), /giveUp is a number/);
});

test('close releases, and ends what waits', async () => {
  const n = name();
  const client = await mortise.Client.open(clients.url);
  const hold = await client.mutex(n).acquire();
  const lock = client.mutex(n);
  const waiting = lock.acquire();
  waiting.catch(() => {});
  assert.equal(await client.close(), true);
  await assert.rejects(waiting, { name: 'UsageError', code: 'ECLOSED' });
  assert.equal(hold.held, false);
  assert.equal(hold.state, 'released');
  hold.release();
  await client.close();
  await assert.rejects(lock.acquire(), { code: 'ECLOSED' });
  assert.throws(() => client.mutex(n), { code: 'ECLOSED' });
  await assert.rejects(client.list(), { code: 'ECLOSED' });
  (await clients.one.mutex(n).acquire({ timeout: LIMIT })).release();
});

const INSIDE = `
  const { Client } = require(process.env.MORTISE_PACKAGE);
  (async () => {
    const client = await Client.open(process.env.MORTISE_URL);
    const hold = await client.mutex(process.env.MORTISE_NAME).acquire();
    console.log('held');
    if (process.env.MORTISE_THEN === 'unref') client.unref();
    if (process.env.MORTISE_THEN === 'exit') process.exit(3);
  })();
`;

// Where the end of a session would give the lock back too late for a test.
function long() {
  return clients.url.replace('session=10s', 'session=1000s');
}

function program(n, then) {
  return spawn(process.execPath, ['-e', INSIDE], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MORTISE_PACKAGE: require.resolve('..'), MORTISE_NAME: n,
      MORTISE_URL: then === 'wait' ? clients.url : long(), MORTISE_THEN: then },
  });
}

test('a program that ends without closing leaves no lock', async () => {
  for (const [then, code] of [['unref', 0], ['exit', 3]]) {
    const n = name();
    const child = program(n, then);
    assert.deepEqual(await once(child, 'exit'), [code, null]);
    const hold = await clients.one.mutex(n).acquire({ timeout: LIMIT });
    hold.release();
  }
});

test('a program that is killed loses its lock to the next', async () => {
  const n = name();
  const child = program(n, 'wait');
  await once(child.stdout, 'data');
  const waiting = clients.one.mutex(n).acquire({ timeout: LIMIT });
  child.kill('SIGKILL');
  (await waiting).release();
});

test('worker threads have clients of their own, closed when they end', async () => {
  const n = name();
  const worker = new Worker(INSIDE, { eval: true, env: { ...process.env,
    MORTISE_PACKAGE: require.resolve('..'), MORTISE_URL: long(), MORTISE_NAME: n,
    MORTISE_THEN: 'wait' }, stdout: true });
  await once(worker.stdout, 'data');
  assert.equal(await clients.one.mutex(n).tryAcquire(), null);
  await worker.terminate();
  (await clients.one.mutex(n).acquire({ timeout: LIMIT })).release();
});

require('./several.test.js');
