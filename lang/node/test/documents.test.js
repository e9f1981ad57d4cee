// SPDX-License-Identifier: Apache-2.0
'use strict';
// The programs that the documents show: each is run, and must end well.
const test = require('node:test');
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { spawnSync } = require('node:child_process');
const { LIMIT } = require('./place');

const root = path.join(__dirname, '..');
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'mortise-node-'));
fs.mkdirSync(`${directory}/node_modules`);
fs.symlinkSync(root, `${directory}/node_modules/mortise`);
test.after(() => fs.rmSync(directory, { recursive: true }));

const expected = { 'README.md': 5, 'from-redlock.md': 1 };
for (const [document, count] of Object.entries(expected)) {
  const text = fs.readFileSync(path.join(root, document), 'utf8');
  const programs = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1]);
  test(`${document} has its programs`, () => assert.equal(programs.length, count));
  for (const [i, program] of programs.entries()) {
    test(`program ${i + 1} of ${document} runs`, () => {
      fs.writeFileSync(`${directory}/program.js`, program);
      const result = spawnSync(process.execPath, [`${directory}/program.js`], {
        encoding: 'utf8', timeout: LIMIT,
        env: { MORTISE_URL: `sqlite:${directory}/locks.db`, ...process.env,
          ...(process.env.MORTISE_TEST_URL && { MORTISE_URL: process.env.MORTISE_TEST_URL }) },
      });
      assert.equal(result.stderr, '');
      assert.equal(result.status, 0);
    });
  }
}
