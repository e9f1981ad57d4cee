/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of an operation on a free lock: bench_requests.c, for bench.c. */
#ifndef MRT_CLI_TOOLS_BENCH_H
#define MRT_CLI_TOOLS_BENCH_H

#include "mortise.h"

struct mrt_bench_cost {
    uint64_t acquire_requests, acquire_round_trips;
    uint64_t release_requests, release_round_trips;
};

/* Of a client with MORTISE_FOREIGN_LOOP. 0 or an error of the library. */
int mrt_bench_count_requests(mortise_client *client, const char *name, struct mrt_bench_cost *cost);

#endif
