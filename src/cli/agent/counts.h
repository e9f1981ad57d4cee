/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of an agent (INFO), for what watches it: counts.c. They are exact, not sampled. */
#ifndef MRT_CLI_AGENT_COUNTS_H
#define MRT_CLI_AGENT_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRT_COUNTED_TIMES 64

struct mrt_counted_times {
    uint64_t count, sum_us;
    uint64_t below[MRT_COUNTED_TIMES]; /* [i]: less than 2 to the i microseconds */
};

struct mrt_counted {
    uint64_t clients, sessions, tickets, holders;           /* now */
    uint64_t connections, refused, ended, commands, grants; /* since it started */
    struct mrt_counted_times waits, holds;                  /* of LOCKs */
};

/* The socket of the agent that a URL names, chosen as mrt_uri_choose does; false: it is of a store.
 */
bool mrt_counted_socket(const char *url, char *path, size_t size);
/* Fetches them; false: it does not answer, or does not serve this user. */
bool mrt_counted_read(const char *path, struct mrt_counted *counted);

#endif
