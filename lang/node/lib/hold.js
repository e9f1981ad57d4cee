// SPDX-License-Identifier: Apache-2.0
'use strict';
// A hold: what an acquire gives. It is a lease, so it can be lost: `signal` is aborted then.
//
// The library computes each property of a hold from its clock, at each call. Only a hold whose signal
// or revocation the program uses is watched, because that costs the client a thread more.
const native = require('./native');
const { call, translate, ConfigError, LostError, UsageError } = require('./errors');
const { milliseconds } = require('./times');

const STATES = ['released', 'held', 'suspended', 'lost'];

class Hold {
  #client;
  #handle;
  #end = null; // 'released' or 'lost', once it is given back
  #lost = null;
  #revoked = null;
  #key = null; // of the client's watched holds

  constructor(client, lock, handle, fence) {
    this.#client = client;
    this.#handle = handle;
    /** The lock that is held. */
    this.lock = lock;
    /** Grows with each grant of the lock; 0n where the store has none. */
    this.fence = fence;
  }

  /** 'held', or 'suspended' while the store does not answer; 'lost', 'released'. */
  get state() {
    if (this.#end)
      return this.#end;
    return this.#client.open ? STATES[native.state(this.#client.handle, this.#handle)] : 'released';
  }

  /** Aborted when the hold is lost; its reason is a LostError. */
  get signal() {
    if (!this.#lost) {
      this.#lost = new AbortController();
      this.#watch();
    }
    return this.#lost.signal;
  }

  /** Whether it is held at this instant, by the clock and without a request. */
  get held() {
    const state = this.state;
    return state === 'held' || state === 'suspended';
  }

  /** Milliseconds that it stays held if the store never answers again. */
  get remaining() {
    return this.#end || !this.#client.open
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

  /**
   * Ends the hold and leaves the lock taken, by nobody, until lock.adopt takes it by the token that
   * this gives. Of an UnknownOutcomeError `token` is the one to try.
   */
  async detach() {
    if (this.#end)
      throw translate(native.errorOf(this.#end === 'lost' ? -5 : -6));
    this.#end = 'released';
    try {
      const token = await this.#client.job(native.detach, this.#handle);
      this.#forget();
      return token;
    } catch (error) {
      if (error instanceof UsageError || error instanceof ConfigError)
        this.#end = null; // nothing has changed
      else
        this.#finish(error instanceof LostError ? 'lost' : 'released');
      throw error;
    }
  }

  /** Called when an operator asks the holder to give the lock up. */
  onRevoke(listener) {
    this.#revoked = listener;
    this.#key ??= this.#client.watched(this, this.#handle);
    call(native.watchRevoke, this.#client.handle, this.#handle);
  }

  /**
   * Gives the lock back. Does not wait for the store. A second call does nothing; the first one
   * throws a LostError if the hold was lost.
   */
  release() {
    if (this.#end || !this.#client.open)
      return;
    this.#finish('released');
    try {
      call(native.release, this.#client.handle, this.#handle);
    } catch (error) {
      if (error instanceof LostError)
        this.#finish('lost');
      throw error;
    }
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
    if (STATES[state] === 'lost' && !this.#end)
      this.#abort();
  }

  revoked() {
    if (this.#revoked && !this.#end)
      this.#revoked(this);
  }

  /** From now on the library reports a loss; one that came before is found here. */
  #watch() {
    const state = this.state;
    if (state === 'released')
      return;
    try {
      if (state !== 'lost') {
        this.#key ??= this.#client.watched(this, this.#handle);
        call(native.watch, this.#client.handle, this.#handle);
        return;
      }
    } catch (error) {
      if (!(error instanceof LostError))
        throw error;
    }
    this.#abort();
  }

  #abort() {
    this.#lost?.abort(translate(native.errorOf(-5)));
  }

  #finish(end) {
    this.#end = end;
    this.#forget();
    if (end === 'lost')
      this.#abort();
  }

  #forget() {
    if (this.#key)
      this.#client.forget(this.#key);
  }
}

module.exports = { Hold };
