// SPDX-License-Identifier: Apache-2.0
// Times are milliseconds. Fences and versions are BigInt.
import { EventEmitter } from 'node:events';

/** The version of the library that was loaded. */
export const version: string;

/** Any error of mortise; the classes below are the reactions that a program can take. */
export class MortiseError extends Error {
  /** The name of the code in mortise.h, as 'ETIMEOUT'. */
  readonly code: string;
  readonly number: number;
  /** The particulars, for people; '' if there are none. */
  readonly detail: string;
}
/** Another client holds, or has changed it meanwhile: try later. */
export class BusyError extends MortiseError {}
/** The time was over, or the wait was ended. */
export class TimeoutError extends MortiseError {}
/** A passing fault: the same call may succeed. */
export class RetryError extends MortiseError {}
/** The hold is gone. */
export class LostError extends MortiseError {}
export class DeniedError extends MortiseError {}
/** The call itself is wrong: a fault in the program. */
export class UsageError extends MortiseError {}
/** The URL, an option or the environment is wrong. */
export class ConfigError extends MortiseError {}
/** It may or may not have happened. */
export class UnknownOutcomeError extends MortiseError {
  /** Of a detach: by this token lock.adopt finds out. */
  readonly token?: string;
}
export class InternalError extends MortiseError {}

export interface ClientOptions {
  /** Shown to people beside what this client holds. Not secret. */
  label?: string;
  /** An acquire that waits for the store ends when no server has answered for so long. */
  giveUp?: number;
  /** How long open waits for the server, and close for what is to be released. */
  timeout?: number;
}

export interface LockOptions {
  /** The hold ends by itself after this time. */
  maxHold?: number;
  /** The client keeps a lock that was given back for so long, unless another one queues. */
  linger?: number;
  /** If the holder dies, nobody is granted the lock for so long. */
  lockDelay?: number;
}

export interface SemaphoreOptions extends LockOptions {
  /** How many permits an acquire takes; 1. */
  take?: number;
}

export interface AcquireOptions {
  /** By default Infinity. */
  timeout?: number;
  /** Ends the wait; the promise is rejected with its reason. */
  signal?: AbortSignal;
}

export interface Cell {
  /** Grows with each write; 0n: there is no such cell. */
  version: bigint;
  /** The largest fence that it was written with. */
  fence: bigint;
  value: Buffer;
}

export interface Leader {
  fence: bigint;
  value: Buffer;
}

/** A holder (place 0) or a waiter. */
export interface Entry {
  name: string;
  kind: string;
  label: string;
  host: string;
  pid: number;
  fence: bigint;
  place: number;
  /** Milliseconds since 1970; 0: not known. */
  since: number;
  weight: number;
  capacity: number;
  detached: boolean;
  /** Stays as it is while the ticket is there; see mortise_entry. */
  id: bigint;
}

export type State = 'held' | 'suspended' | 'lost' | 'released';
export type Value = string | Uint8Array;

export class Client extends EventEmitter {
  /** Opens a client on a store; without a URL on $MORTISE_URL, or this user's file. */
  static open(url?: string, options?: ClientOptions): Promise<Client>;
  /** The store's address, without secrets. */
  readonly url: string;
  readonly open: boolean;
  mutex(name: string, options?: LockOptions): Lock;
  semaphore(name: string, permits: number, options?: SemaphoreOptions): Semaphore;
  readWrite(name: string, options?: LockOptions): { read: Lock; write: Lock };
  exclusive(name: string, options?: LockOptions): Lock;
  election(name: string, options?: { value?: Value }): Election;
  getCell(name: string): Promise<Cell>;
  /** Writes a cell that still has this version (0n: there is none); the new version. */
  setCell(name: string, version: bigint, value: Value, fence?: bigint): Promise<bigint>;
  deleteCell(name: string, version: bigint, fence?: bigint): Promise<void>;
  /** Holders and waiters of a lock, or of all. */
  list(name?: string): Promise<Entry[]>;
  /** Asks the holder with this fence to give the lock up; 0n: all. */
  revoke(name: string, fence?: bigint): Promise<void>;
  /** Removes the ticket with this fence, whether its client agrees or not. */
  break(name: string, fence: bigint): Promise<void>;
  /** Releases what is held and ends what waits. Whether the store has acknowledged. */
  close(): Promise<boolean>;
  /** An open client keeps the process alive, as a socket does; from now on it does not. */
  unref(): this;
  ref(): this;
  [Symbol.asyncDispose](): Promise<void>;
  /** The store does not answer; the client goes on trying. */
  on(event: 'away', listener: (error: MortiseError) => void): this;
  /** It answers again. */
  on(event: 'back', listener: () => void): this;
}

export class Lock {
  protected constructor();
  readonly name: string;
  acquire(options?: AcquireOptions): Promise<Hold>;
  /** null if the lock is in use. */
  tryAcquire(): Promise<Hold | null>;
  /** Runs the work while the lock is held, and gives it back whatever becomes of that. */
  run<T>(work: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  /** Acquires by the token that hold.detach gave: waits for the store only, not for the lock. */
  adopt(token: string): Promise<Hold>;
}

export class Semaphore extends Lock {
  private constructor();
  /** Reads how many permits are in use. */
  permits(): Promise<number>;
  /** Changes how many are in use, for all clients; waits until so many are free. */
  setPermits(permits: number, options?: { timeout?: number }): Promise<void>;
}

/** The holds of acquireAll, in the order of its locks. */
export class Holds extends Array<Hold> {
  private constructor();
  /** Gives all back, whatever becomes of each; then throws the first error. */
  release(): void;
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/**
 * Acquires all of these locks or none, of any kinds and clients. Two calls for the same locks
 * cannot wait for each other, whatever their order.
 */
export function acquireAll(locks: Iterable<Lock>, options?: AcquireOptions): Promise<Holds>;

export class Hold {
  private constructor();
  readonly lock: Lock;
  /** Grows with each grant of the lock; 0n where the store has none. */
  readonly fence: bigint;
  readonly state: State;
  /** Whether it is held at this instant, by the clock. */
  readonly held: boolean;
  /** Milliseconds that it stays held if the store never answers again. */
  readonly remaining: number;
  /** Aborted when the hold is lost; its reason is a LostError. */
  readonly signal: AbortSignal;
  /** Throws a LostError if it is not held at this instant. */
  check(): void;
  /** Reads from the store whether it is held there. */
  verify(options?: { timeout?: number }): Promise<void>;
  /** A write side becomes a read side. */
  downgrade(): void;
  /** Ends the hold and leaves the lock taken, until lock.adopt takes it by this token. */
  detach(): Promise<string>;
  /** Called when an operator asks the holder to give the lock up. */
  onRevoke(listener: (hold: Hold) => void): void;
  /** Gives the lock back. Throws a LostError if it had been lost. */
  release(): void;
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

export class Election extends EventEmitter {
  private constructor();
  readonly name: string;
  /** Whether it leads at this instant, by the clock. */
  readonly leads: boolean;
  /** The fence of its term; 0n: it does not lead. */
  readonly fence: bigint;
  /** Waits until this candidate leads; the term's fence. */
  campaign(options?: { timeout?: number }): Promise<bigint>;
  resign(): void;
  proclaim(value: Value): void;
  leader(): Promise<Leader | null>;
  /** From now on 'leader' is emitted. */
  observe(): void;
  on(event: 'elected' | 'deposed', listener: (fence: bigint) => void): this;
  on(event: 'leader', listener: (leader: Leader | null) => void): this;
}
