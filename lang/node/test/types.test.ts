// SPDX-License-Identifier: Apache-2.0
// Compiled with types checked, to a JavaScript that has no `await using` of its own, and run.
import test from 'node:test';
import assert from 'node:assert/strict';
import * as mortise from 'mortise';
import { LIMIT, name, place } from './place';

const clients: { url: string; one: mortise.Client } = place();

test('await using gives the lock back at the end of the block', async () => {
  const lock: mortise.Lock = clients.one.mutex(name());
  {
    await using hold: mortise.Hold = await lock.acquire({ timeout: LIMIT });
    const fence: bigint = hold.fence;
    assert.ok(fence >= 0n && hold.held);
    assert.equal(await lock.tryAcquire(), null);
  }
  const hold: mortise.Hold | null = await lock.tryAcquire();
  assert.ok(hold);
  hold.release();
});

test('await using gives several locks back', async () => {
  const locks: mortise.Lock[] = [clients.one.mutex(name()), clients.one.semaphore(name(), 2)];
  {
    await using holds: mortise.Holds = await mortise.acquireAll(locks, { timeout: LIMIT });
    const [first, second]: mortise.Hold[] = holds;
    assert.ok(first.held && second.held);
    assert.equal(await locks[0].tryAcquire(), null);
  }
  for (const hold of await mortise.acquireAll(locks, { timeout: 0 }))
    hold.release();
});

test('a lock is detached, and adopted by its token', async () => {
  const lock: mortise.Lock = clients.one.mutex(name());
  const token: string = await (await lock.acquire({ timeout: LIMIT })).detach();
  await using hold: mortise.Hold = await lock.adopt(token);
  assert.ok(hold.held);
});

test('await using closes a client', async () => {
  let client: mortise.Client;
  {
    await using inside = await mortise.Client.open(clients.url);
    client = inside;
    const number: number = await inside.mutex(name()).run(async (hold) => hold.remaining);
    assert.ok(number > 0);
  }
  assert.equal(client.open, false);
});

test('a type that is wrong is refused', async () => {
  // @ts-expect-error: a timeout is a number
  await assert.rejects(clients.one.mutex(name()).acquire({ timeout: 'soon' }), TypeError);
  // @ts-expect-error: a mutex has no permits
  assert.equal(clients.one.mutex(name()).setPermits, undefined);
  // @ts-expect-error: permits are given
  assert.throws(() => clients.one.semaphore(name()), RangeError);
  // @ts-expect-error: a version is a BigInt
  await assert.rejects(clients.one.setCell(name(), 0, ''), TypeError);
});
