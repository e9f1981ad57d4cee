// SPDX-License-Identifier: Apache-2.0
'use strict';
// Measures the Node package beside redlock from npm, on the same Redis server, in turns:
//
//   tools/servers --production with redis node lang/node/bench/run.js {} [ROUNDS [SECONDS]]
//
// In each case of a round either takes and gives back a lock for SECONDS: one task a free lock
// (`alone`), TASKS tasks of one client and of as many clients one lock together (`shared`,
// `contended`). A figure is the median of the rounds, in acquisitions a second; a ratio is taken
// within a round, because a busy moment hits both, and is the median of these. `share` is that of the
// task that had the lock least often, of what would be its part. JSON.
const path = require('node:path');
const { execSync } = require('node:child_process');
const { Client } = require('..');

const modules = execSync('npm root -g', { encoding: 'utf8' }).trim();
const Redis = require(path.join(modules, 'ioredis'));
const Redlock = require(path.join(modules, 'redlock'));
const TASKS = 8;
const CASES = { alone: { tasks: 1 }, shared: { tasks: TASKS }, contended: { tasks: TASKS, clients: true } };

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

/** How often the tasks had the lock, in sum a second, and the least of them. */
async function measure(take, { tasks, clients }, seconds) {
  const counts = Array(tasks).fill(0), begin = performance.now();
  const end = begin + seconds * 1000;
  await Promise.all(counts.map(async (_, i) => {
    while (performance.now() < end) {
      const give = await take(clients ? i : 0);
      await give();
      counts[i]++;
    }
  }));
  const sum = counts.reduce((a, b) => a + b);
  return { rate: sum * 1000 / (performance.now() - begin), share: Math.min(...counts) * tasks / sum };
}

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

function result(rounds) {
  const of = (who, what) => median(rounds.map((round) => round[who][what]));
  return {
    mortise: Math.round(of('mortise', 'rate')), redlock: Math.round(of('redlock', 'rate')),
    ratio: Number(median(rounds.map(({ mortise, redlock }) => mortise.rate / redlock.rate)).toFixed(2)),
    share: { mortise: Number(of('mortise', 'share').toFixed(2)),
      redlock: Number(of('redlock', 'share').toFixed(2)) },
  };
}

(async () => {
  const [, , url, rounds = '7', seconds = '1'] = process.argv;
  const mine = await Promise.all(Array.from({ length: TASKS }, () => Client.open(url)));
  const others = Array.from({ length: TASKS }, () => new Redis(url));
  const takes = { mortise: ours(mine, 'bench'), redlock: theirs(others, 'bench-redlock') };
  const measured = {};
  for (let round = 0; round <= Number(rounds); round++)
    for (const [name, kind] of Object.entries(CASES)) {
      const figures = {};
      for (const [who, take] of Object.entries(takes))
        figures[who] = await measure(take, kind, Number(seconds));
      if (round > 0) // the first one warms the compiler
        (measured[name] ??= []).push(figures);
    }
  const cases = Object.entries(measured).map(([name, figures]) => [name, result(figures)]);
  console.log(JSON.stringify({ unit: 'acquisitions a second', rounds: Number(rounds),
    node: process.version, ...Object.fromEntries(cases) }, null, 1));
  await Promise.all(mine.map((client) => client.close()));
  others.forEach((client) => client.disconnect());
})();
