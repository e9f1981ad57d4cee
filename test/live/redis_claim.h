/* What the tests of claims on a real Redis server share: a server, a proxy in front of it, a raw
   connection to it. Those of what goes over the wire are in redis_claim.c, those at the port in
   redis_claim_port.c. */
#ifndef TEST_REDIS_CLAIM_H
#define TEST_REDIS_CLAIM_H

#include "cmocka_all.h"
#include "live/redis_proxy.h"
#include "live/zookeeper_place.h"
#include "store/redis_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST(script) mrt_redis_scripts[MRT_REDIS_##script].digest
#define PORT_LEASE_MS 60000 /* no renewal comes by itself */

extern struct redis_proxy *proxy;
extern redisContext *raw;

int set_up(void **state);
int tear_down(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* What a command answers, as text; "" for nil. */
const char *ask(const char *command);
/* What the server has been sent before is done: in each turn it reads all that has come. */
void let_server_work(void);

/* What a server may answer instead of doing it. */
struct refusal {
    const char *text;
    int error; /* if nothing was done */
};
#define REFUSALS 9
extern const struct refusal refusals[REFUSALS];

/* Those of redis_claim_port.c; how many failed. */
int run_at_port(void);

#endif
