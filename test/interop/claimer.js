/* SPDX-License-Identifier: Apache-2.0 */
// The same with npm's redlock: node claimer.js URL NAME COUNTER ROUNDS LEASE LETTERS.
const fs = require('fs');
const Redis = require('ioredis');
const Redlock = require('redlock');

const [url, name, counter, rounds, lease, letters] = process.argv.slice(2);
const client = new Redis(url);
const locks = new Redlock([client], {retryCount: -1, retryDelay: 5, retryJitter: 10});

async function main() {
  await (await locks.lock(name, 1000 * Number(lease))).unlock();
  console.log('ready');
  await new Promise((resolve) => process.stdin.resume().once('end', resolve));
  process.stdin.destroy();
  let met = false;
  for (let i = 0; i < Number(rounds) || !met; i++) {
    const lock = await locks.lock(name, 1000 * Number(lease));
    fs.closeSync(fs.openSync(counter + '.busy', 'wx'));
    const value = Number(fs.readFileSync(counter, 'utf8'));
    fs.writeFileSync(counter, `${value + 1}\n`);
    fs.appendFileSync(counter + '.turns', 'n');
    met = met || Array.from(letters).every(
      (letter) => fs.readFileSync(counter + '.turns', 'ascii').includes(letter));
    fs.unlinkSync(counter + '.busy');
    await lock.unlock();
  }
  client.disconnect();
}

main().catch((error) => {
  console.error(`claimer.js: ${error}`);
  process.exit(1);
});
