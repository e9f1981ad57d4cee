/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store as a host's: the module's own objects, and libpq. */
#include "host.h"
#include "stream.h"

#include "store/kit/module_glue.h"

#include <stdio.h>

/* It is no module here. */
bool mrt_module_greet(const struct mrt_module_host *greeting)
{
    (void)greeting;
    return true;
}

/* All that libpq would look up elsewhere is said. */
static void write_uri(const struct world *world, char *text, size_t size)
{
    const struct profile *p = &world->drawn;
    snprintf(text, size,
             "postgresql://mortise:word@127.0.0.1:6379,127.0.0.1:6380/locks"
             "?sslmode=disable&gssencmode=disable&lease=%lldms&connect=%lldms",
             (long long)(p->lease_us / 1000), (long long)host_connect_ms(p));
}

mrt_module_entry mortise_store_module;

const struct host_kind *pg_host_kind(void)
{
    static struct host_kind kind = {
        .write_uri = write_uri, .cut = streams_cut, .free = streams_free};
    kind.ops = mortise_store_module(NULL);
    return &kind;
}
