/*
 * Tells, when a suite ends, which locks it made on which stores: for the matrix that
 * tools/run-tests makes of it. The functions that make a lock are wrapped by the linker in
 * every suite of the library; a child process of a test tells nothing.
 */
#include "mortise.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEMES_MAX 16

enum { MUTEX, SEMAPHORE_MUTEX, EXCLUSIVE, SEMAPHORE, READ_WRITE, RECIPES };
static const char *const names[RECIPES] = {"mutex", "semaphore-mutex", "exclusive", "semaphore",
                                           "read-write"};
/* As an address begins. */
static const char *const schemes[] = {"memory",  "sqlite",     "zk",   "redis",
                                      "redlock", "postgresql", "mysql"};
#define SCHEMES (sizeof schemes / sizeof schemes[0])
static atomic_bool made[RECIPES][SCHEMES];
static pid_t process;

static int note(int recipe, const mortise_client *client, int error)
{
    const char *url = error == MORTISE_OK ? mortise_url(client) : "";
    for (size_t i = 0; i < SCHEMES; i++) {
        size_t length = strlen(schemes[i]);
        if (strncmp(url, schemes[i], length) == 0 && url[length] == ':')
            made[recipe][i] = true;
    }
    return error;
}

#define WRAPPED(function, recipe, parameters, client, arguments)  \
    int __real_##function parameters;                             \
    int __wrap_##function parameters;                             \
    int __wrap_##function parameters                              \
    {                                                             \
        return note(recipe, client, __real_##function arguments); \
    }
#define OPTIONS const mortise_lock_options *options

WRAPPED(mortise_mutex_new, MUTEX,
        (mortise_client * client, const char *name, OPTIONS, mortise_lock **lock), client,
        (client, name, options, lock))
WRAPPED(mortise_semaphore_mutex_new, SEMAPHORE_MUTEX,
        (mortise_client * client, const char *name, OPTIONS, mortise_lock **lock), client,
        (client, name, options, lock))
WRAPPED(mortise_exclusive_new, EXCLUSIVE,
        (mortise_client * client, const char *name, OPTIONS, mortise_lock **lock), client,
        (client, name, options, lock))
WRAPPED(mortise_semaphore_new, SEMAPHORE,
        (mortise_client * client, const char *name, uint32_t permits, OPTIONS, mortise_lock **lock),
        client, (client, name, permits, options, lock))
WRAPPED(mortise_read_write_new, READ_WRITE,
        (mortise_client * client, const char *name, OPTIONS, mortise_lock **read,
         mortise_lock **write),
        client, (client, name, options, read, write))

__attribute__((constructor)) static void begin(void)
{
    process = getpid();
}

__attribute__((destructor)) static void tell(void)
{
    for (int recipe = 0; recipe < RECIPES && getpid() == process; recipe++)
        for (size_t i = 0; i < SCHEMES; i++)
            if (made[recipe][i])
                printf("# made %s %s\n", names[recipe], schemes[i]);
}
