// SPDX-License-Identifier: Apache-2.0
'use strict';
// Where the tests run: the store of $MORTISE_TEST_URL or of the first argument, or a file. A wait that
// should end may take LIMIT, so that a busy machine fails no test.
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before } = require('node:test');
const { Client } = require('..');

const LIMIT = 60000;
let url = process.env.MORTISE_TEST_URL || process.argv[2];
let directory;
let number = 0;
let clients;

/** A client for the tests, and one as of another process. */
function place() {
  if (clients)
    return clients;
  clients = {};
  before(async () => {
    if (!url) {
      directory = fs.mkdtempSync(path.join(os.tmpdir(), 'mortise-node-'));
      url = `sqlite:${directory}/locks.db`;
    }
    clients.url = url;
    clients.one = await Client.open(url, { label: 'tests' });
    clients.other = await Client.open(url);
  });
  after(async () => {
    await clients.one.close();
    await clients.other.close();
    if (directory)
      fs.rmSync(directory, { recursive: true });
  });
  return clients;
}

function name() {
  return `node-${process.pid}-${++number}`;
}

/** A condition that comes true by itself. */
async function until(condition) {
  for (let i = 0; i < LIMIT / 10; i++) {
    if (await condition())
      return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('it did not come true');
}

module.exports = { LIMIT, place, name, until };
