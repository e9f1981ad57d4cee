/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --lease: how long a hold outlives a client that has fallen silent. Each store has a parameter of
 * its own for it in its address; this file sets it.
 */

#include "cli/run/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *scheme, *parameter;
} words[] = {
    {"zk:", "session"},
    {"redis:", "session"},
    {"rediss:", "session"},
    {"redis+unix:", "session"},
    {"redis+sentinel:", "session"},
    {"redis+cluster:", "session"},
    {"rediss+sentinel:", "session"},
    {"rediss+cluster:", "session"},
    {"postgresql:", "lease"},
    {"postgres:", "lease"},
    {"mysql:", "lease"},
    {"mariadb:", "lease"},
    {"etcd:", "lease"},
    {"etcds:", "lease"},
    {"nats:", "lease"},
    {"natss:", "lease"},
    {"k8s:", "lease"},
};

/* The parameter's name for the store at `url`; NULL: it has no lease, or none of its own. */
static const char *find_word(const char *url)
{
    for (size_t i = 0; url && i < sizeof words / sizeof words[0]; i++)
        if (strncmp(url, words[i].scheme, strlen(words[i].scheme)) == 0)
            return words[i].parameter;
    return NULL;
}

int mrt_run_set_lease(struct mrt_run *run)
{
    const char *url = run->cli->url, *word = find_word(url);
    if (run->lease == 0)
        return 0;
    if (!word)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--lease: this store has no lease that can be chosen");
    if (asprintf(&run->leased_url, "%s%c%s=%" PRId64 "ms", url, strchr(url, '?') ? '&' : '?', word,
                 run->lease / MRT_MILLISECOND) < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    run->cli->url = run->leased_url;
    return 0;
}
