/* SPDX-License-Identifier: Apache-2.0 */
// npm's redlock, locked and unlocked for so long: node redlock.js SECONDS URL... Prints one JSON
// object.
const Redis = require('ioredis');
const Redlock = require('redlock');

const [seconds, ...urls] = process.argv.slice(2);
const clients = urls.map((url) => new Redis(url));
const locks = new Redlock(clients, {retryCount: -1});

async function cycle() {
  const lock = await locks.lock('claim', 10000);
  await lock.unlock();
}

async function main() {
  const times = [];
  const now = () => Number(process.hrtime.bigint()) / 1e9;
  for (let i = 0; i < 200; i++) await cycle();
  const begin = now();
  let done = begin;
  while (done < begin + Number(seconds)) {
    const before = done;
    await cycle();
    done = now();
    times.push(done - before);
  }
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({acquisitions_per_s: times.length / (done - begin),
                              cycle_us: times[Math.floor(times.length / 2)] * 1e6}));
  clients.forEach((client) => client.disconnect());
}

main().catch((error) => {
  console.error(`redlock.js: ${error}`);
  process.exit(1);
});
