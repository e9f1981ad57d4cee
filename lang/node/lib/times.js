// SPDX-License-Identifier: Apache-2.0
'use strict';
// Times as programs give them.

/** For the library: whole milliseconds, and -1 for ever. */
function milliseconds(name, value) {
  if (typeof value !== 'number' || Number.isNaN(value) || value < 0)
    throw new TypeError(`mortise: ${name} is a number of milliseconds, not ${String(value)}`);
  return value === Infinity ? -1 : Math.min(Math.ceil(value), Number.MAX_SAFE_INTEGER);
}

module.exports = { milliseconds };
