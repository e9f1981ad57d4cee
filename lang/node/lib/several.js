// SPDX-License-Identifier: Apache-2.0
'use strict';
// Several locks as one, of any kinds and clients. Which is taken first is the library's to decide,
// so that two calls for the same locks cannot wait for each other.
const native = require('./native');
const { Lock } = require('./lock');
const { call, translate } = require('./errors');
const { milliseconds } = require('./times');

/** The holds of acquireAll, in the order of its locks. */
class Holds extends Array {
  static get [Symbol.species]() {
    return Array;
  }

  /** Gives all back, whatever becomes of each; then throws the first error. */
  release() {
    const errors = [];
    for (let i = this.length; i-- > 0;)
      try {
        this[i].release();
      } catch (error) {
        errors.push(error);
      }
    if (errors.length > 0)
      throw errors[0];
  }

  async [Symbol.asyncDispose || Symbol.for('Symbol.asyncDispose')]() {
    this.release();
  }

  [Symbol.dispose || Symbol.for('Symbol.dispose')]() {
    this.release();
  }
}

/** The reason of the signal, or that a client was closed, for what either has ended. */
function reasonOf(error, signal, clients) {
  if (error.code !== 'ECANCELLED')
    return translate(error);
  if (signal?.aborted)
    return signal.reason;
  return translate(clients.every((client) => client.open) ? error : native.errorOf(-4));
}

/** The call, which keeps each of its clients open until it has ended. */
async function acquireBy(handles, clients, limit, signal) {
  let timer;
  const stop = () => handles.forEach((handle) => native.cancelWaiters(handle));
  const abort = () => {
    stop();
    timer = setInterval(stop, 10); // between two locks it waits by none
  };
  try {
    const job = call(native.acquireAll, handles, limit);
    for (const client of clients)
      client.keepOpen(job, stop);
    signal?.addEventListener('abort', abort, { once: true });
    return await job;
  } catch (error) {
    throw reasonOf(error, signal, clients);
  } finally {
    clearInterval(timer);
    signal?.removeEventListener('abort', abort);
  }
}

/** Acquires all of these locks or none: { timeout: ms, signal: AbortSignal }. */
async function acquireAll(locks, { timeout = Infinity, signal } = {}) {
  const limit = milliseconds('timeout', timeout), all = [...locks];
  if (!all.every((lock) => lock instanceof Lock))
    throw new TypeError('mortise: acquireAll takes an array of locks');
  signal?.throwIfAborted();
  const handles = all.map((lock) => lock.lend());
  const clients = [...new Set(all.map((lock) => lock.client))];
  try {
    const made = await acquireBy(handles, clients, limit, signal);
    return Holds.from(made, ({ value, fence }, i) => all[i].holdOf(value, fence));
  } finally {
    all.forEach((lock, i) => lock.takeBack(handles[i]));
  }
}

module.exports = { acquireAll, Holds };
