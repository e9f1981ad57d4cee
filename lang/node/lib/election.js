// SPDX-License-Identifier: Apache-2.0
'use strict';
// A candidate in an election. Emits 'elected' and 'deposed' in turns, each with the term's fence,
// and 'leader' with { fence, value } once observe() has been called.
const { EventEmitter } = require('node:events');
const native = require('./native');
const { call } = require('./errors');
const { milliseconds } = require('./times');

class Election extends EventEmitter {
  #client;
  #handle;

  constructor(client, name, value, id) {
    super();
    this.#client = client;
    this.name = name;
    this.#handle = call(native.newElection, client.handle, name, Buffer.from(value), id);
  }

  /** Waits until this candidate leads, by default for ever; the term's fence. */
  async campaign({ timeout = Infinity } = {}) {
    const limit = milliseconds('timeout', timeout);
    await this.#client.wait((id) => native.campaign(this.#client.handle, this.#handle, limit, id));
    return this.fence;
  }

  /** Ends the leadership, or the campaign, whose promise is rejected with ECANCELLED. */
  resign() {
    call(native.resign, this.#client.handle, this.#handle);
  }

  /** Changes the value of this candidate, for this term and those to come. */
  proclaim(value) {
    call(native.proclaim, this.#client.handle, this.#handle, Buffer.from(value));
  }

  /** Whether it leads at this instant, by the clock. */
  get leads() {
    return this.#client.open && native.isLeader(this.#client.handle, this.#handle);
  }

  /** The fence of its term; 0n: it does not lead. */
  get fence() {
    return this.#client.open ? native.leaderFence(this.#client.handle, this.#handle) : 0n;
  }

  /** Reads who leads: { fence, value }, or null. */
  async leader() {
    try {
      return await this.#client.job(native.leader, this.#handle);
    } catch (error) {
      if (error.code === 'ENOLEADER')
        return null;
      throw error;
    }
  }

  /** From now on 'leader' is emitted with who leads, and with each change of that. */
  observe() {
    call(native.observe, this.#client.handle, this.#handle);
  }
}

module.exports = { Election };
