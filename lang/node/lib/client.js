// SPDX-License-Identifier: Apache-2.0
'use strict';
// A client of a store.
//
// Invariant: the addon's client is closed only when no job of it is under way; those that may wait
// for ever are ended, and acquires that wait end with ECLOSED then. Messages of the library arrive
// in #receive, one after the other.
const { EventEmitter } = require('node:events');
const native = require('./native');
const { call, translate } = require('./errors');
const { Lock, Semaphore } = require('./lock');
const { milliseconds } = require('./times');
const { Election } = require('./election');

const [ACQUIRED, CAMPAIGNED, STATE, REVOKE, ELECTED, DEPOSED, LEADER, CONTACT] = Array(8).keys();

/** Emits 'away' with an error when the store does not answer, and 'back' when it does again. */
class Client extends EventEmitter {
  #handle = native.newClient((...message) => this.#receive(...message));
  #open = false;
  #closing = null;
  #jobs = new Map(); // each with what makes it end, if it may wait for ever
  #waits = new Map(); // acquires and campaigns, by number
  #elections = new Map();
  #holds = new Map(); // that are watched, by the library's slot and generation
  #next = 1;

  /**
   * Opens a client on a store: 'zk://a,b,c', 'redis://host', 'sqlite:/path', ...; without a URL on
   * $MORTISE_URL, or this user's file. Options: label, giveUp and timeout in milliseconds.
   */
  static async open(url, { label, giveUp = 0, timeout = 0 } = {}) {
    const client = new Client();
    try {
      /** The store's address, without secrets. */
      client.url = await native.open(client.#handle, url, label, milliseconds('giveUp', giveUp),
        milliseconds('timeout', timeout));
    } catch (error) {
      native.abandon(client.#handle);
      throw translate(error);
    }
    client.#open = true;
    return client;
  }

  get open() {
    return this.#open;
  }

  get handle() {
    return this.#handle;
  }

  /** A mutex. Options: maxHold, linger, lockDelay in milliseconds. It is not reentrant. */
  mutex(name, options) {
    return this.#locks('mutex', name, 1, options)[0];
  }

  /** A semaphore of so many permits; each acquire takes `take` of them. */
  semaphore(name, permits, options) {
    return this.#locks('semaphore', name, permits, options)[0];
  }

  /** A read/write lock: { read, write }. */
  readWrite(name, options) {
    const [read, write] = this.#locks('read-write', name, 1, options);
    return { read, write };
  }

  /** A lock that promises no order, and shares its key with other libraries on Redis. */
  exclusive(name, options) {
    return this.#locks('exclusive', name, 1, options)[0];
  }

  /** A candidate in an election; `value` is what it proclaims. */
  election(name, { value = '' } = {}) {
    const id = this.#next++;
    const election = new Election(this, name, value, id);
    this.#elections.set(id, election);
    return election;
  }

  /** Reads a cell: { version, fence, value }; version 0n: there is none. */
  getCell(name) {
    return this.job(native.cellGet, String(name));
  }

  /** Writes a cell that still has this version (0n: there is none); the new version. */
  setCell(name, version, value, fence = 0n) {
    return this.job(native.cellCas, String(name), version, fence, Buffer.from(value));
  }

  async deleteCell(name, version, fence = 0n) {
    await this.job(native.cellCas, String(name), version, fence);
  }

  /** Holders and waiters of a lock, or of all, each queue in its order. */
  list(name) {
    return this.job(native.list, name);
  }

  /** Asks the holder with this fence to give the lock up; 0n: all holders. */
  revoke(name, fence = 0n) {
    return this.job(native.revoke, String(name), fence);
  }

  /** Removes the ticket with this fence from the queue, whether its client agrees or not. */
  break(name, fence) {
    return this.job(native.breakTicket, String(name), fence);
  }

  /**
   * Releases what is held, ends what waits, and closes. The promise of whether the store has
   * acknowledged; if not, the session ends by itself.
   */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** An open client keeps the process alive, as a socket does; from now on it does not. */
  unref() {
    this.#call(native.keep, false);
    return this;
  }

  ref() {
    this.#call(native.keep, true);
    return this;
  }

  async [Symbol.asyncDispose || Symbol.for('Symbol.asyncDispose')]() {
    await this.close();
  }

  async #close() {
    this.#open = false;
    const stop = () => this.#jobs.forEach((end) => end?.());
    stop();
    const timer = setInterval(stop, 10); // one that waits at no moment is missed
    await Promise.allSettled(this.#jobs.keys());
    clearInterval(timer);
    this.#holds.clear();
    return native.close(this.#handle);
  }

  #locks(kind, name, permits, { maxHold = 0, linger = 0, lockDelay = 0, take = 1 } = {}) {
    if (!Number.isInteger(permits) || permits < 1 || permits > 0xffffffff ||
        !Number.isInteger(take) || take < 1 || take > 0xffffffff)
      throw new RangeError('mortise: permits are whole numbers from 1 to 4294967295');
    const Kind = kind === 'semaphore' ? Semaphore : Lock;
    const make = () => this.#call(native.newLock, kind, String(name), permits,
      milliseconds('maxHold', maxHold), milliseconds('linger', linger),
      milliseconds('lockDelay', lockDelay), kind === 'semaphore' ? take : 0);
    return make().map((handle, side) => new Kind(this, String(name), handle, () => make()[side]));
  }

  #call(work, ...parameters) {
    if (this.#closing)
      throw translate(native.errorOf(-4));
    return call(work, this.#handle, ...parameters);
  }

  // Of the other files of the package.

  /** A call that a thread of the pool makes. */
  async job(work, ...parameters) {
    const job = this.#call(work, ...parameters);
    this.keepOpen(job);
    try {
      return await job;
    } catch (error) {
      throw translate(error);
    }
  }

  /** One that may wait for ever, on a thread of its own. */
  async longJob(work, ...parameters) {
    const job = this.#call(work, ...parameters);
    this.keepOpen(job, () => native.interrupt(this.#handle));
    try {
      return await job;
    } catch (error) {
      throw translate(this.#closing && error.code === 'ECANCELLED' ? native.errorOf(-4) : error);
    }
  }

  /** The addon's client stays until this promise is settled; stop() hastens that. */
  keepOpen(job, stop) {
    const ended = () => this.#jobs.delete(job);
    this.#jobs.set(job, stop);
    job.then(ended, ended);
  }

  /** begin(id) starts what the library ends by a message with this number. */
  async wait(begin) {
    if (this.#closing)
      throw translate(native.errorOf(-4));
    const id = this.#next++;
    const end = new Promise((resolve, reject) => {
      this.#waits.set(id, { resolve, reject });
    });
    try {
      begin(id);
    } catch (error) {
      this.#waits.delete(id);
      throw translate(error);
    }
    try {
      return await end;
    } catch (error) {
      throw translate(error);
    }
  }

  /** Messages about this hold reach it from now on; the key that ends that. */
  watched(hold, handle) {
    const key = this.#call(native.key, handle);
    this.#holds.set(key, hold);
    return key;
  }

  forget(key) {
    this.#holds.delete(key);
  }

  #receive(kind, id, value, fence, key) {
    const election = this.#elections.get(id);
    const wait = this.#waits.get(id);
    switch (kind) {
      case ACQUIRED:
      case CAMPAIGNED:
        this.#waits.delete(id);
        return value instanceof Error ? wait.reject(value) : wait.resolve({ value, fence });
      case STATE:
        return this.#holds.get(key)?.changed(value);
      case REVOKE:
        return this.#holds.get(key)?.revoked();
      case ELECTED:
        return election.emit('elected', fence);
      case DEPOSED:
        return election.emit('deposed', fence);
      case LEADER:
        return election.emit('leader', fence === 0n ? null : { fence, value });
      case CONTACT:
        return value ? this.emit('away', translate(value)) : this.emit('back');
      default:
        throw new Error(`mortise: message ${kind} of the library is not known`);
    }
  }
}

module.exports = { Client };
