/*
 * The command's environment, and a `mortise run` of a lock that an outer one
 * holds already.
 *
 * MORTISE_HELD is a list of lines "fence TAB store TAB name", one for each outer
 * run. An entry is only a claim: it counts if the store itself shows a holder of
 * that name with that very fence, which no other grant ever has. Then the inner
 * run has nothing to do and becomes the command; signals, the exit code and the
 * end of the process group are the outer one's affair.
 */
#include "cli/run.h"

#include "base/name.h"
#include "base/uri.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The store's address, and its namespace if it is not the usual one: what makes
   names the same. Allocated; NULL: no memory. */
static char *make_address(const struct mrt_run *run)
{
    struct mrt_uri uri;
    char *address;
    const char *text = run->cli->url ? run->cli->url : getenv("MORTISE_URL");
    const char *name_space = NULL;
    if (text && *text && mrt_uri_parse(text, &uri) == 0)
        name_space = mrt_uri_parameter(&uri, "namespace");
    if (name_space && strcmp(name_space, "mortise") == 0)
        name_space = NULL; /* the usual one, spelled out */
    int length = asprintf(&address, "%s%s%s", mortise_url(run->client),
                          name_space ? "?namespace=" : "", name_space ? name_space : "");
    return length < 0 ? NULL : address;
}

struct claim {
    uint64_t fence;
    bool confirmed;
};

static int confirm(void *argument, const mortise_entry *entry)
{
    struct claim *claim = argument;
    claim->confirmed = entry->place == 0 && entry->fence == claim->fence;
    return claim->confirmed;
}

/* The fence of the entry that `line` begins with, if it is of this store and name. */
static bool match_line(const char *line, const char *store_and_name, uint64_t *fence)
{
    char *end;
    size_t length = strlen(store_and_name);
    errno = 0;
    unsigned long long number = strtoull(line, &end, 10);
    if (errno != 0 || end == line || *end != '\t')
        return false;
    *fence = number;
    end++;
    return strncmp(end, store_and_name, length) == 0 &&
           (end[length] == '\n' || end[length] == '\0');
}

bool mrt_run_is_held_outside(const struct mrt_run *run, uint64_t *fence)
{
    const char *line = getenv("MORTISE_HELD");
    if (!line || !*line)
        return false;
    struct claim claim = {.confirmed = false};
    char *store_and_name = NULL;
    char *address = make_address(run);
    if (!address || asprintf(&store_and_name, "%s\t%s", address, run->name) < 0)
        store_and_name = NULL;
    while (store_and_name && line && !claim.confirmed) {
        if (match_line(line, store_and_name, &claim.fence))
            mortise_list(run->client, run->name, confirm, &claim);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    free(store_and_name);
    free(address);
    *fence = claim.fence;
    return claim.confirmed;
}

/* Adds our entry to MORTISE_HELD. An address that would not fit into a line is left
   out: an inner run then waits, as without the list. */
static bool add_held(const struct mrt_run *run)
{
    char *list;
    const char *outer = getenv("MORTISE_HELD");
    char *address = make_address(run);
    if (!address)
        return false;
    bool done = true;
    if (mrt_text_is_clean(address, strlen(address))) {
        bool more = outer && *outer;
        int length = asprintf(&list, "%" PRIu64 "\t%s\t%s%s%s", run->fence, address, run->name,
                              more ? "\n" : "", more ? outer : "");
        done = length >= 0 && setenv("MORTISE_HELD", list, 1) == 0;
        if (length >= 0)
            free(list);
    }
    free(address);
    return done;
}

static bool set_number(const char *variable, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return setenv(variable, text, 1) == 0;
}

/* The command has no use for what mortise shows the server. */
static bool drop_secrets(void)
{
    return unsetenv("MORTISE_ZK_AUTH") == 0 && unsetenv("MORTISE_REDIS_AUTH") == 0;
}

bool mrt_run_set_environment(const struct mrt_run *run)
{
    return drop_secrets() && setenv("MORTISE_NAME", run->name, 1) == 0 &&
           set_number("MORTISE_FENCE", run->fence) &&
           set_number("MORTISE_LOCK_FD", (uint64_t)run->lost_pipe[0]) && add_held(run);
}

int mrt_run_replace(const struct mrt_run *run)
{
    int64_t kept = -1;
    const char *text = getenv("MORTISE_LOCK_FD");
    if (!drop_secrets() || setenv("MORTISE_NAME", run->name, 1) < 0 ||
        !set_number("MORTISE_FENCE", run->fence))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    if (text && !mrt_cli_number(text, 3, INT32_MAX, &kept))
        kept = -1;
    if (!run->keep_descriptors)
        mrt_run_shed_descriptors((int)kept);
    execvp(run->command[0], run->command);
    return mrt_run_fail_exec(run, errno);
}
