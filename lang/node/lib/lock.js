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
  #make; // a further handle of the same lock
  #spare = [];

  constructor(client, name, handle, make) {
    this.#client = client;
    this.#handle = handle;
    this.#make = make;
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

  /** Acquires by the token that hold.detach gave: waits for the store only, not for the lock. */
  async adopt(token) {
    const { value, fence } = await this.#client.job(native.adopt, this.#handle, String(token));
    return this.holdOf(value, fence);
  }

  // Of the other files of the package.

  get client() {
    return this.#client;
  }

  get handle() {
    return this.#handle;
  }

  holdOf(value, fence) {
    return new Hold(this.#client, this, value, fence);
  }

  /** A handle for one call alone, because what ends that call ends all that wait by the handle. */
  lend() {
    return this.#spare.pop() ?? this.#make();
  }

  takeBack(handle) {
    this.#spare.push(handle);
  }

  async #acquire(timeout, signal) {
    signal?.throwIfAborted();
    const client = this.#client;
    let waiting;
    const abort = () => client.open && native.cancel(client.handle, waiting);
    try {
      const { value, fence } = await client.wait((id) => {
        waiting = native.acquire(client.handle, this.#handle, timeout, id);
        signal?.addEventListener('abort', abort, { once: true });
      });
      return this.holdOf(value, fence);
    } catch (error) {
      throw signal?.aborted && error.code === 'ECANCELLED' ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }
}

/** A lock of several permits, of which not all need be in use. */
class Semaphore extends Lock {
  /** Reads how many permits are in use. */
  async permits() {
    return this.client.job(native.getPermits, this.handle);
  }

  /**
   * Changes how many are in use, for all clients: 0 to as many as the semaphore has. Waits until so
   * many are free, by default for ever; a TimeoutError: nothing has changed.
   */
  async setPermits(permits, { timeout = Infinity } = {}) {
    if (!Number.isInteger(permits) || permits < 0 || permits > 0xffffffff)
      throw new RangeError('mortise: permits in use are whole numbers from 0 to 4294967295');
    return this.client.longJob(native.setPermits, this.handle, permits,
      milliseconds('timeout', timeout));
  }
}

module.exports = { Lock, Semaphore };
