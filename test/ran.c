/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells, when a suite ends, which locks it acquired on which stores: for the matrix that
 * tools/run-tests makes of it. The functions where a client and a hold begin are wrapped by the
 * linker in every suite of the library; a child process of a test tells nothing.
 */
#include "api/client.h"
#include "core/engine_internal.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As the kinds of the recipes are called. */
static const char *const recipes[] = {"mutex", "semaphore-mutex", "exclusive", "semaphore",
                                      "read-write"};
#define RECIPES (sizeof recipes / sizeof recipes[0])
/* As an address begins. */
static const char *const schemes[] = {"memory",     "sqlite", "zk",   "redis", "redlock",
                                      "postgresql", "mysql",  "etcd", "k8s",   "nats"};
#define SCHEMES (sizeof schemes / sizeof schemes[0])

/* Where each client's locks are. An engine may have the address of one that has ended, and then it
 * has its entry; none is removed, so a look needs no lock. */
struct place {
    const struct mrt_engine *_Atomic engine;
    _Atomic size_t scheme;
};
#define PLACES 65536
static struct place places[PLACES];
static atomic_bool acquired[RECIPES][SCHEMES];
static pid_t process;

static size_t find_scheme(const char *url)
{
    size_t i = 0;
    while (i < SCHEMES &&
           (strncmp(url, schemes[i], strlen(schemes[i])) != 0 || url[strlen(schemes[i])] != ':'))
        i++;
    return i;
}

/* The engine's own, or a free one, which is its own then if `take`. NULL: there is none. */
static struct place *find_place(const struct mrt_engine *engine, bool take)
{
    size_t at = (uintptr_t)engine / 64 % PLACES;
    for (size_t i = 0; i < PLACES; i++, at = (at + 1) % PLACES) {
        const struct mrt_engine *there = atomic_load(&places[at].engine);
        if (!there && !take)
            return NULL;
        if (there == engine ||
            (!there && atomic_compare_exchange_strong(&places[at].engine, &there, engine)))
            return &places[at];
    }
    return NULL;
}

static void note(const mortise_client *client)
{
    struct place *place = find_place(client->driver.engine, true);
    if (place)
        atomic_store(&place->scheme, find_scheme(mortise_url(client)));
}

int __real_mortise_open(const char *uri, const mortise_client_options *options,
                        mortise_client **client);
int __wrap_mortise_open(const char *uri, const mortise_client_options *options,
                        mortise_client **client);
int __wrap_mortise_open(const char *uri, const mortise_client_options *options,
                        mortise_client **client)
{
    int error = __real_mortise_open(uri, options, client);
    if (!error)
        note(*client);
    return error;
}

int __real_mortise_open_quorum(const char *const *uris, size_t count, int32_t answer_ms,
                               const mortise_client_options *options, mortise_client **client);
int __wrap_mortise_open_quorum(const char *const *uris, size_t count, int32_t answer_ms,
                               const mortise_client_options *options, mortise_client **client);
int __wrap_mortise_open_quorum(const char *const *uris, size_t count, int32_t answer_ms,
                               const mortise_client_options *options, mortise_client **client)
{
    int error = __real_mortise_open_quorum(uris, count, answer_ms, options, client);
    if (!error)
        note(*client);
    return error;
}

void __real_mrt_hold_begin(const struct mrt_waiter *waiter, struct mrt_ticket *ticket,
                           mrt_time now);
void __wrap_mrt_hold_begin(const struct mrt_waiter *waiter, struct mrt_ticket *ticket,
                           mrt_time now);
void __wrap_mrt_hold_begin(const struct mrt_waiter *waiter, struct mrt_ticket *ticket, mrt_time now)
{
    const char *kind = mrt_queue_recipe(waiter->queue)->kind;
    const struct place *place = find_place(waiter->engine, false);
    size_t scheme = place ? atomic_load(&place->scheme) : SCHEMES, recipe = 0;
    while (recipe < RECIPES && strcmp(kind, recipes[recipe]) != 0)
        recipe++;
    if (scheme < SCHEMES && recipe < RECIPES && !atomic_load(&acquired[recipe][scheme]))
        atomic_store(&acquired[recipe][scheme], true);
    __real_mrt_hold_begin(waiter, ticket, now);
}

__attribute__((constructor)) static void begin(void)
{
    process = getpid();
}

__attribute__((destructor)) static void tell(void)
{
    for (size_t recipe = 0; recipe < RECIPES && getpid() == process; recipe++)
        for (size_t i = 0; i < SCHEMES; i++)
            if (acquired[recipe][i])
                printf("# acquired %s %s\n", recipes[recipe], schemes[i]);
}
