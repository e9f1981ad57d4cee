/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tests of claims on a real Redis server share: a server, a proxy in front of
 * it, a raw connection to it, two clients of which one goes through the proxy. */
#ifndef TEST_REDIS_CLAIM_H
#define TEST_REDIS_CLAIM_H

#include "cmocka_all.h"
#include "live/redis_proxy.h"
#include "live/zookeeper_place.h"
#include "store/redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MS 1500
#define KEY "jobs:nightly"
#define DIGEST(script) mrt_redis_scripts[MRT_REDIS_##script].digest
#define RENEWAL DIGEST(SESSION)
#define PORT_LEASE_MS 60000 /* no renewal comes by itself */

extern struct redis_proxy *proxy;
extern redisContext *raw;
extern mortise_client *client, *other;

int set_up(void **state);
int tear_down(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A command's answer, as text; "" for nil. */
const char *ask(const char *command);
/* Returns when the server has done all earlier requests: in each turn it reads all that has come.
 */
void let_server_work(void);

/* A client at that port: the server's, or the proxy's. */
mortise_client *open_at(uint16_t port);
/* For the client no moment is too slow then, and nothing is renewed. */
void be_patient(void);
/* The claim on KEY. */
mortise_lock *lock_of(mortise_client *of);

/* Answers of a server that did not execute a request. */
struct refusal {
    const char *text;
    int error; /* if nothing was done */
};
#define REFUSALS 9
extern const struct refusal refusals[REFUSALS];

/* The tests of redis_claim_port.c and redis_claim_loss.c; how many failed. */
int run_at_port(void);
int run_losses(void);

/* The program's other form: it holds KEY, see redis_claim_loss.c. */
int hold_claim(const char *uri);

#endif
