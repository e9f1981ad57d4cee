// SPDX-License-Identifier: Apache-2.0
'use strict';
// Loads the addon: the file that MORTISE_NODE_ADDON names, or what node-gyp has built.
const path = require('node:path');

const file = process.env.MORTISE_NODE_ADDON ||
  path.join(__dirname, '..', 'build', 'Release', 'mortise.node');

const native = require(file);
if (!native.version().startsWith('0.2.'))
  throw new Error(`mortise: this package needs the library's version 0.2, not ${native.version()}`);

// A worker's clients are closed by the addon when it ends; process.exit() runs no hooks of addons.
process.on('exit', () => native.closeAll());

module.exports = native;
