/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the command: a name server that never answers for names that begin with "slow".
 * Literal addresses and all other names are as ever.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);

__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **found)
{
    look_up *real = (look_up *)dlsym(RTLD_NEXT, "getaddrinfo");
    int literal = hints && hints->ai_flags & AI_NUMERICHOST;
    if (name && !literal && strncmp(name, "slow", 4) == 0)
        sleep(600);
    return real(name, service, hints, found);
}
