// SPDX-License-Identifier: Apache-2.0
'use strict';
// A hold: what an acquire gives. It is a lease, so it can be lost: `signal` is aborted then.
const native = require('./native');
const { call, translate, LostError } = require('./errors');
const { milliseconds } = require('./times');

const STATES = ['released', 'held', 'suspended', 'lost'];

class Hold {
  #client;
  #handle;
  #released = false;
  #lost = new AbortController();
  #revoked = null;

  constructor(client, lock, handle, fence) {
    this.#client = client;
    this.#handle = handle;
    /** The lock that is held. */
    this.lock = lock;
    /** Grows with each grant of the lock; 0n where the store has none. */
    this.fence = fence;
    /** 'held', or 'suspended' while the store does not answer; 'lost', 'released'. */
    this.state = 'held';
  }

  /** Aborted when the hold is lost; its reason is a LostError. */
  get signal() {
    return this.#lost.signal;
  }

  /** Whether it is held at this instant, by the clock and without a request. */
  get held() {
    return !this.#released && this.#client.open && native.isHeld(this.#client.handle, this.#handle);
  }

  /** Milliseconds that it stays held if the store never answers again. */
  get remaining() {
    return this.#released || !this.#client.open
      ? 0 : native.remaining(this.#client.handle, this.#handle);
  }

  /** Throws a LostError if it is not held at this instant. */
  check() {
    if (!this.held)
      throw translate(native.errorOf(-5));
  }

  /** Reads from the store whether it is held there. */
  async verify({ timeout = 5000 } = {}) {
    if (timeout === Infinity)
      throw new TypeError('mortise: verify takes a thread while it waits: give it a finite timeout');
    return this.#client.job(native.verify, this.#handle, milliseconds('timeout', timeout));
  }

  /** A write side becomes a read side, and no writer comes in between. */
  downgrade() {
    call(native.downgrade, this.#client.handle, this.#handle);
  }

  /** Called when an operator asks the holder to give the lock up. */
  onRevoke(listener) {
    this.#revoked = listener;
    call(native.watchRevoke, this.#client.handle, this.#handle);
  }

  /**
   * Gives the lock back. Does not wait for the store. A second call does nothing; the first one
   * throws a LostError if the hold was lost.
   */
  release() {
    if (this.#released || !this.#client.open)
      return;
    this.#released = true;
    this.#client.forget(this);
    if (this.state !== 'lost')
      this.state = 'released';
    call(native.release, this.#client.handle, this.#handle);
  }

  async [Symbol.asyncDispose || Symbol.for('Symbol.asyncDispose')]() {
    this.release();
  }

  [Symbol.dispose || Symbol.for('Symbol.dispose')]() {
    this.release();
  }

  /** Gives it back, whatever has become of it. */
  discard() {
    try {
      this.release();
    } catch {
      // it was lost
    }
  }

  /** Of the client: the library has seen a change of state, or a request to give it up. */
  changed(state) {
    if (this.#released)
      return;
    this.state = STATES[state];
    if (this.state === 'lost')
      this.#lost.abort(translate(native.errorOf(-5)));
  }

  revoked() {
    if (this.#revoked && !this.#released)
      this.#revoked(this);
  }
}

module.exports = { Hold, LostError };
