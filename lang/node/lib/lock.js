// SPDX-License-Identifier: Apache-2.0
'use strict';
// A lock: acquires, with a timeout, an AbortSignal or neither.
const native = require('./native');
const { Hold } = require('./hold');
const { BusyError } = require('./errors');
const { milliseconds } = require('./times');

class Lock {
  #client;
  #handle;

  constructor(client, name, handle) {
    this.#client = client;
    this.#handle = handle;
    this.name = name;
  }

  /** Waits for the lock, by default for ever: { timeout: ms, signal: AbortSignal }. */
  async acquire({ timeout = Infinity, signal } = {}) {
    return this.#acquire(milliseconds('timeout', timeout), signal);
  }

  /** A hold, or null if the lock is in use. */
  async tryAcquire() {
    try {
      return await this.#acquire(0);
    } catch (error) {
      if (error instanceof BusyError && error.code === 'EBUSY')
        return null;
      throw error;
    }
  }

  /** Runs work(hold) while the lock is held, and gives it back whatever becomes of that. */
  async run(work, options) {
    const hold = await this.acquire(options);
    try {
      const result = await work(hold);
      hold.release();
      return result;
    } catch (error) {
      hold.discard(); // the error of the work is the one to report
      throw error;
    }
  }

  async #acquire(timeout, signal) {
    signal?.throwIfAborted();
    const client = this.#client;
    let waiting;
    const abort = () => client.open && native.cancel(client.handle, waiting);
    try {
      const { value, fence, key } = await client.wait((id) => {
        waiting = native.acquire(client.handle, this.#handle, timeout, id);
        signal?.addEventListener('abort', abort, { once: true });
      });
      return client.remember(key, new Hold(client, this, value, fence), value);
    } catch (error) {
      throw signal?.aborted && error.code === 'ECANCELLED' ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }
}

module.exports = { Lock };
