/* One row a store. What is not built or not installed stays known, to say so. */
#include "store/stores.h"

#include "base/error.h"
#include "base/uri.h"
#include "store/memory/memory.h"
#include "store/module.h"

#include <string.h>

#ifndef MORTISE_SQLITE
static int not_built(const struct mrt_uri *uri, const struct mrt_store_options *options,
                     struct mrt_sink sink, struct mrt_store **store)
{
    (void)uri;
    (void)options;
    (void)sink;
    (void)store;
    return mrt_error(MORTISE_ENOTSUPPORTED, "this build of mortise has no embedded (sqlite) store");
}

const struct mrt_store_ops mrt_sqlite_store = {.scheme = "sqlite", .open = not_built};

int mrt_sqlite_default_path(char *path, size_t size)
{
    (void)path;
    (void)size;
    return not_built(NULL, NULL, (struct mrt_sink){0}, NULL);
}
#endif

#ifndef MORTISE_ZOOKEEPER
static int no_zookeeper(const struct mrt_uri *uri, const struct mrt_store_options *options,
                        struct mrt_sink sink, struct mrt_store **store)
{
    (void)uri;
    (void)options;
    (void)sink;
    (void)store;
    return mrt_error(MORTISE_ENOTSUPPORTED, "this build of mortise has no ZooKeeper (zk) store");
}

const struct mrt_store_ops mrt_zookeeper_store = {.scheme = "zk", .open = no_zookeeper};
#endif

#ifndef MORTISE_REDIS
static int no_redis(const struct mrt_uri *uri, const struct mrt_store_options *options,
                    struct mrt_sink sink, struct mrt_store **store)
{
    (void)uri;
    (void)options;
    (void)sink;
    (void)store;
    return mrt_error(MORTISE_ENOTSUPPORTED, "this build of mortise has no Redis (redis) store");
}

const struct mrt_store_ops mrt_redis_store = {.scheme = "redis", .open = no_redis};
#endif

static int find(const char *scheme, const struct mrt_store_ops **ops)
{
    static const struct mrt_store_ops *const built_in[] = {&mrt_sqlite_store, &mrt_memory_store,
                                                           &mrt_zookeeper_store, &mrt_redis_store,
                                                           &mrt_quorum_store};
    static const struct {
        const char *scheme, *name, *file;
    } modules[] = {
        {"postgresql", "PostgreSQL", "mortise-postgres.so"},
        {"postgres", "PostgreSQL", "mortise-postgres.so"},
        {"mysql", "MariaDB", "mortise-mariadb.so"},
        {"mariadb", "MariaDB", "mortise-mariadb.so"},
    };
    if (strcmp(scheme, "zks") == 0)
        scheme = mrt_zookeeper_store.scheme; /* which says that it has no TLS */
    if (strcmp(scheme, "rediss") == 0 || strcmp(scheme, "redis+unix") == 0)
        scheme = mrt_redis_store.scheme;
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (strcmp(built_in[i]->scheme, scheme) != 0)
            continue;
        *ops = built_in[i];
        return MORTISE_OK;
    }
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (strcmp(modules[i].scheme, scheme) == 0)
            return mrt_module_load(modules[i].file, modules[i].name, ops);
    return mrt_error(MORTISE_ESCHEME, "no store is known by the scheme \"%s\"", scheme);
}

int mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    int error = find(uri->scheme, ops);
    return error == MORTISE_OK && (*ops)->choose ? (*ops)->choose(uri, ops) : error;
}
