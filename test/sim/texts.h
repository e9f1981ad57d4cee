/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutants of what the simulated servers read: Redis's scripts (redis_script.c has the original and
 * the replacement of each) and PostgreSQL's statements (pg_statement.c). Those of the sources are
 * in test/mutants.
 */
#ifndef SIM_TEXTS_H
#define SIM_TEXTS_H

#include "mutants.h"

/* X(name, suite, text), as test/mutants/README.md has them. */
#define SIM_TEXT_MAP(X)                                                                         \
    X(REDIS_LUA_OLD_EPOCH, "sim redis from 69",                                                 \
      "commands of a connection that was given up are done")                                    \
    X(REDIS_LUA_NO_PUSH, "sim redis", "a waiter that may run now is not told")                  \
    X(REDIS_LUA_DEAD_STAY, "sim redis", "a renewal buries nobody")                              \
    X(REDIS_LUA_NUMBER_FORGOTTEN, "sim redis from 134",                                         \
      "numbers begin again when a server forgets")                                              \
    X(REDIS_LUA_APPEND_TWICE, "sim redis", "a ticket that is there already is appended again")  \
    X(REDIS_LUA_VALUE_KEPT, "sim redis", "the value of a ticket that is gone is kept")          \
    X(REDIS_LUA_CHANGE_UNTOLD, "sim redis", "an observer is not told of another leader")        \
    X(REDIS_LUA_FIRST_LEAVES, "sim redis",                                                      \
      "the first ticket in the queue goes, whichever client gives up")                          \
    X(REDIS_LUA_ALL_MUTEXES, "sim redis",                                                       \
      "a ticket of any lock that waits is taken for a mutex's")                                 \
    X(SQL_PG_HURRIED_PAST, "sim postgres from 255",                                             \
      "a ticket that others wait behind goes before it is on disk")                             \
    X(SQL_PG_NO_NOTIFY, "sim postgres", "a waiter that may run now is not told")                \
    X(SQL_PG_CHANGE_UNTOLD, "sim postgres", "an observer is not told of a leader's end")        \
    X(SQL_PG_UNLOCKED, "sim postgres", "a ticket that leaves does not lock the queue")          \
    X(SQL_PG_ONE_STATEMENT, "sim postgres",                                                     \
      "a ticket that comes does not lock the queue before it looks")                            \
    X(SQL_PG_FROZEN_NOW, "sim postgres",                                                        \
      "a lease begins with the transaction, not after its waits")                               \
    X(SQL_PG_SPLIT, "sim postgres",                                                             \
      "a ticket is put in outside of the transaction that has the queue's row locked")          \
    X(SQL_PG_OLD_EPOCH, "sim postgres", "tickets of a connection that was given up are put in") \
    X(SQL_PG_REAP_ALL, "sim postgres", "the living sessions are ended with the dead")           \
    X(SQL_PG_CELL_BLIND, "sim postgres", "a cell is written whatever its version")              \
    X(SQL_PG_GONE_COUNTS, "sim postgres mixed from 619",                                        \
      "a ticket whose session was ended makes room as it goes")                                 \
    X(SQL_PG_LAST_UNLOCKED, "sim postgres",                                                     \
      "a ticket that comes while the last one goes is not told of it")                          \
    X(SQL_PG_LAST_UNCHECKED, "sim postgres",                                                    \
      "a ticket goes as the last one, though others are behind")                                \
    X(SQL_PG_LINGER_UNTOLD, "sim postgres mixed",                                               \
      "a lingering client is not told of one that queues")                                      \
    X(REDIS_LUA_LINGER_UNTOLD, "sim redis mixed",                                               \
      "a client that queues does not tell one that lingers")

enum {
#define SIM_TEXT_NAME(name, suite, text) SIM_TEXT_##name,
    SIM_TEXT_BEGIN = MRT_MUTANT_COUNT - 1,
    SIM_TEXT_MAP(SIM_TEXT_NAME)
#undef SIM_TEXT_NAME
};

#endif
