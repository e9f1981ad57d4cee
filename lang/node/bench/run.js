// SPDX-License-Identifier: Apache-2.0
'use strict';
// Measures the Node package beside redlock from npm, on the same Redis server, in turns:
//
//   tools/servers with redis node lang/node/bench/run.js {} [ROUNDS]
//
// A round acquires and releases a free lock CYCLES times, and has TASKS tasks of as many clients
// take turns on one lock. A figure is the median of the rounds, in acquisitions a second. JSON.
const path = require('node:path');
const { execSync } = require('node:child_process');
const { Client } = require('..');

const modules = execSync('npm root -g', { encoding: 'utf8' }).trim();
const Redis = require(path.join(modules, 'ioredis'));
const Redlock = require(path.join(modules, 'redlock'));
const CYCLES = 2000, TASKS = 8, TURNS = 100;

async function timed(count, work) {
  const begin = process.hrtime.bigint();
  await work();
  return count / (Number(process.hrtime.bigint() - begin) / 1e9);
}

function ours(clients, name) {
  const locks = clients.map((client) => client.mutex(name));
  return async (i) => {
    const hold = await locks[i].acquire();
    return () => hold.release();
  };
}

// As its users set it: it tries again after so long until the lock is free.
function theirs(clients, name) {
  const locks = clients.map((client) => new Redlock([client],
    { retryCount: -1, retryDelay: 10, retryJitter: 5 }));
  return async (i) => {
    const lock = await locks[i].lock(name, 10000);
    return () => lock.unlock();
  };
}

async function alone(take) {
  return timed(CYCLES, async () => {
    for (let i = 0; i < CYCLES; i++)
      await (await take(0))();
  });
}

async function contended(take) {
  return timed(TASKS * TURNS, () => Promise.all(Array.from({ length: TASKS }, async (_, i) => {
    for (let turn = 0; turn < TURNS; turn++) {
      const give = await take(i);
      await give();
    }
  })));
}

function median(values) {
  return Math.round(values.sort((a, b) => a - b)[Math.floor(values.length / 2)]);
}

(async () => {
  const url = process.argv[2], rounds = Number(process.argv[3] || 5);
  const mine = await Promise.all(Array.from({ length: TASKS }, () => Client.open(url)));
  const others = Array.from({ length: TASKS }, () => new Redis(url));
  const takes = { mortise: ours(mine, 'bench'), redlock: theirs(others, 'bench-redlock') };
  const figures = {};
  for (let round = 0; round < rounds; round++)
    for (const [who, take] of Object.entries(takes))
      for (const [what, measure] of Object.entries({ alone, contended }))
        ((figures[what] ??= {})[who] ??= []).push(await measure(take));
  for (const what of Object.values(figures))
    for (const who of Object.keys(what))
      what[who] = median(what[who]);
  console.log(JSON.stringify({ unit: 'acquisitions a second', rounds, node: process.version,
    ...figures }, null, 2));
  await Promise.all(mine.map((client) => client.close()));
  others.forEach((client) => client.disconnect());
})();
