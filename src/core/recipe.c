/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recipes: what each kind of lock makes of the one queue.
 *
 * A mutex is one ticket of weight 1 in a queue of capacity 1 that stands for all threads
 * of a client. A semaphore has a ticket for each acquire, of as much weight as it asks
 * permits. In a read/write lock a writer weighs the whole capacity and a reader 1: so readers
 * stand together, a writer alone, and each waits for those who came before and no others.
 * An election is a mutex whose tickets have values and are not shared among threads.
 */
#include "core/recipe.h"

const struct mrt_recipe mrt_mutex = {.kind = "mutex", .capacity = 1, .reentrant = true};

const struct mrt_recipe mrt_semaphore_mutex = {.kind = "semaphore-mutex", .capacity = 1};

const struct mrt_recipe mrt_exclusive = {
    .kind = "exclusive", .capacity = 1, .reentrant = true, .claim = true};

const struct mrt_recipe mrt_read_write = {
    .kind = "read-write", .capacity = MRT_WRITER, .reentrant = true, .shared = true};

const struct mrt_recipe mrt_election = {.kind = "election", .capacity = 1, .shared = true};

struct mrt_recipe mrt_semaphore(uint64_t permits)
{
    return (struct mrt_recipe){.kind = "semaphore", .capacity = permits, .shared = true};
}
