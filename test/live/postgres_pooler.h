/* SPDX-License-Identifier: Apache-2.0 */
/* A connection pooler, pgbouncer, before the server of postgres_place.h. */
#ifndef TEST_POSTGRES_POOLER_H
#define TEST_POSTGRES_POOLER_H

#include "live/postgres_place.h"

#include <sys/types.h>

struct pg_pooler {
    pid_t process;
    uint16_t port;
    char file[64];
};

/* In this mode, "session" or "transaction", which has one connection to the server: so what one
   client leaves in it is what the next one finds. */
void pg_pooler_start(struct pg_pooler *pooler, const char *mode);
void pg_pooler_stop(struct pg_pooler *pooler);

#endif
