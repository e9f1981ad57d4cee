/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real SQL server with a replica that follows it asynchronously, for a test program that is one
 * for both products. The primary is sql_place.h's server, until it is killed.
 */
#ifndef TEST_SQL_REPLICA_H
#define TEST_SQL_REPLICA_H

#include "live/sql_place.h"

/* cmocka's group set-up: starts both and makes the schema. */
int replica_place_start(void **state);
uint16_t replica_port(void);
/* The replica hears nothing of the primary from now on; hears of it again. */
void replica_cut(void);
void replica_join(void);
/* Waits until the replica has all that the primary has now. */
void replica_catch_up(void);
/* Whether commits of the primary are answered only when the replica has them. It takes
   effect a little later. */
void replica_set_synchronous(bool on);
/* How many commits of the store's clients wait for the replica. */
long replica_waits(void);
/* Whether a session ends without waiting for the replica. */
extern const bool replica_not_for_ends;
/* The replica becomes a server that can be written to. */
void replica_promote(void);

/* For the products' files: the second port in what tools/servers says. */
uint16_t replica_find_port(void);

#endif
