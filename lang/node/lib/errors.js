// SPDX-License-Identifier: Apache-2.0
'use strict';
// Errors: a class for each kind, so that a program catches the reaction that it can take. Codes,
// kinds and texts are the library's.

/** Any error of mortise. `code` is the name, as 'ETIMEOUT'; `detail` has the particulars. */
class MortiseError extends Error {
  constructor(error) {
    super(error.message);
    this.name = this.constructor.name;
    this.code = error.code;
    this.number = error.number;
    this.detail = error.detail;
    if (error.token)
      this.token = error.token;
  }
}

class BusyError extends MortiseError {}
class TimeoutError extends MortiseError {}
class RetryError extends MortiseError {}
class LostError extends MortiseError {}
class DeniedError extends MortiseError {}
class UsageError extends MortiseError {}
class ConfigError extends MortiseError {}
class UnknownOutcomeError extends MortiseError {}
class InternalError extends MortiseError {}

// In the order of mortise_error_kind.
const kinds = [MortiseError, BusyError, TimeoutError, RetryError, LostError, DeniedError,
  UsageError, ConfigError, UnknownOutcomeError, InternalError];

/** The addon's error as one of these classes; anything else as it is. */
function translate(error) {
  if (!(error instanceof Error) || typeof error.kind !== 'number')
    return error;
  const Kind = kinds[error.kind] || MortiseError;
  const result = new Kind(error);
  Error.captureStackTrace(result, translate);
  return result;
}

/** Calls a function of the addon that returns at once. */
function call(work, ...parameters) {
  try {
    return work(...parameters);
  } catch (error) {
    throw translate(error);
  }
}

module.exports = { call, translate, MortiseError, BusyError, TimeoutError, RetryError, LostError,
  DeniedError, UsageError, ConfigError, UnknownOutcomeError, InternalError };
