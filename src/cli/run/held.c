/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's environment, and a `mortise run` of a lock that an outer one
 * holds already.
 *
 * MORTISE_HELD is a list of lines "fence TAB mode TAB store TAB name", one for each lock of
 * each outer run. An entry is only a claim: it counts if the store itself shows a holder of
 * that name with that very fence, which no other grant ever has. Then the inner
 * run has nothing to do and becomes the command; signals, the exit code and the
 * end of the process group are the outer one's affair.
 *
 * Secrets: what mortise shows the server is wiped from where the process was given it as soon
 * as the client is open, so that neither the guard nor the command has it.
 */

#include "cli/run/held.h"
#include "base/name.h"
#include "base/uri.h"
#include "cli/run/command.h"

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
    const char *text = run->cli->url;
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

/* The modes as the list has them. */
static void write_mode(const struct mrt_run *run, char *text, size_t size)
{
    if (run->mode == MRT_RUN_PERMITS)
        snprintf(text, size, "%" PRIu32 "/%" PRIu32, run->weight, run->permits);
    else
        snprintf(text, size, "%s",
                 run->mode == MRT_RUN_SHARED   ? "shared"
                 : run->mode == MRT_RUN_LEADER ? "leader"
                                               : "exclusive");
}

/* Whether a hold in the mode at `text` satisfies what the run asks for. */
static enum mrt_cover compare_mode(const struct mrt_run *run, const char *text, size_t length)
{
    bool shared = length == 6 && strncmp(text, "shared", length) == 0;
    bool exclusive = length == 9 && strncmp(text, "exclusive", length) == 0;
    if (run->mode == MRT_RUN_PERMITS || run->mode == MRT_RUN_LEADER) {
        char own[32];
        write_mode(run, own, sizeof own);
        return strlen(own) == length && strncmp(text, own, length) == 0 ? MRT_COVER_WHOLE
                                                                        : MRT_COVER_NONE;
    }
    if (exclusive || (shared && run->mode == MRT_RUN_SHARED))
        return MRT_COVER_WHOLE;
    return shared ? MRT_COVER_CIRCULAR : MRT_COVER_NONE;
}

/* Takes a line apart if it is of this store and name. */
static bool match_line(const struct mrt_run *run, const char *line, const char *store_and_name,
                       uint64_t *fence, enum mrt_cover *cover)
{
    char *end;
    size_t length = strlen(store_and_name);
    errno = 0;
    unsigned long long number = strtoull(line, &end, 10);
    if (errno != 0 || end == line || *end != '\t')
        return false;
    *fence = number;
    const char *mode = end + 1;
    size_t mode_length = strcspn(mode, "\t\n");
    const char *rest = mode + mode_length;
    if (*rest++ != '\t' || strncmp(rest, store_and_name, length) != 0)
        return false;
    *cover = compare_mode(run, mode, mode_length);
    return rest[length] == '\n' || rest[length] == '\0';
}

enum mrt_cover mrt_run_find_cover(struct mrt_run *run, struct mrt_run_lock *lock, const char *list)
{
    char *store_and_name;
    enum mrt_cover found = MRT_COVER_NONE;
    if (asprintf(&store_and_name, "%s\t%s", run->address, lock->name) < 0)
        return MRT_COVER_NONE;
    for (const char *line = list; line && found != MRT_COVER_WHOLE;) {
        struct claim claim = {.confirmed = false};
        enum mrt_cover cover = MRT_COVER_NONE;
        if (match_line(run, line, store_and_name, &claim.fence, &cover) && cover != MRT_COVER_NONE)
            mortise_list(run->client, lock->name, confirm, &claim);
        if (claim.confirmed) {
            found = cover;
            lock->fence = claim.fence;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    free(store_and_name);
    return found;
}

int mrt_run_find_outer(struct mrt_run *run)
{
    const char *list = secure_getenv("MORTISE_HELD");
    if (!list || !*list || !*run->command)
        return 0;
    for (size_t i = 0; i < run->count; i++) {
        enum mrt_cover cover = mrt_run_find_cover(run, &run->locks[i], list);
        run->locks[i].is_outer = cover == MRT_COVER_WHOLE;
        if (cover == MRT_COVER_CIRCULAR)
            return mrt_cli_fail(MRT_EXIT_USAGE,
                                "%s: an outer run holds it shared, and would be waited for",
                                run->locks[i].name);
    }
    return 0;
}

int mrt_run_write_held(const struct mrt_run_lock *lock, char *text, size_t size)
{
    char mode[32];
    write_mode(lock->run, mode, sizeof mode);
    return snprintf(text, size, "%" PRIu64 "\t%s\t%s\t%s", lock->fence, mode, lock->run->address,
                    lock->name);
}

/* Puts a lock into MORTISE_HELD. */
static bool add_held(const struct mrt_run_lock *lock)
{
    char *list, line[MRT_RUN_HELD_SIZE];
    const char *outer = secure_getenv("MORTISE_HELD");
    bool more = outer && *outer;
    if (mrt_run_write_held(lock, line, sizeof line) >= (int)sizeof line)
        return true; /* as with an address that is not UTF-8 */
    int length = asprintf(&list, "%s%s%s", line, more ? "\n" : "", more ? outer : "");
    bool done = length >= 0 && setenv("MORTISE_HELD", list, 1) == 0;
    if (length >= 0)
        free(list);
    return done;
}

/* Adds our locks to MORTISE_HELD. An address that would not fit into a line is left
   out: an inner run then waits, as without the list. */
static bool add_all_held(const struct mrt_run *run)
{
    bool done = true;
    if (mrt_text_is_clean(run->address, strlen(run->address)))
        for (size_t i = 0; i < run->count && done; i++)
            done = run->locks[i].is_outer || add_held(&run->locks[i]);
    return done;
}

static bool set_number(const char *variable, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    return setenv(variable, text, 1) == 0;
}

/* Takes a variable out of the environment, and its value out of the memory that
   /proc/PID/environ shows. */
static void wipe(const char *variable)
{
    char *value = getenv(variable);
    if (!value)
        return;
    explicit_bzero(value, strlen(value));
    unsetenv(variable);
}

bool mrt_run_wipe_secrets(struct mrt_run *run)
{
    if (!run->address)
        run->address = make_address(run); /* a copy of the URL, which may be wiped */
    for (const char *const *variable = mrt_cli_secrets; *variable; variable++)
        wipe(*variable);
    const char *url = getenv("MORTISE_URL");
    /* An inner run then fails, rather than to use another store in silence. */
    if (url && mrt_cli_has_password(url)) {
        wipe("MORTISE_URL");
        if (setenv("MORTISE_URL", "removed-because-of-its-password:", 1) < 0)
            return false;
    }
    return run->address != NULL;
}

uint64_t mrt_run_fence(const struct mrt_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->locks[i].name == run->name)
            return run->locks[i].fence;
    return 0;
}

static bool set_name_and_fence(const struct mrt_run *run)
{
    return setenv("MORTISE_NAME", run->name, 1) == 0 &&
           set_number("MORTISE_FENCE", mrt_run_fence(run));
}

bool mrt_run_set_environment(const struct mrt_run *run)
{
    return set_name_and_fence(run) && set_number("MORTISE_LOCK_FD", (uint64_t)run->lost_pipe[0]) &&
           add_all_held(run);
}

bool mrt_run_are_all_outer(const struct mrt_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (!run->locks[i].is_outer)
            return false;
    return true;
}

int mrt_run_replace(const struct mrt_run *run)
{
    int64_t kept = -1;
    const char *text = secure_getenv("MORTISE_LOCK_FD");
    if (!set_name_and_fence(run))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    if (text && !mrt_cli_number(text, 3, INT32_MAX, &kept))
        kept = -1;
    if (!run->keep_descriptors)
        mrt_run_shed_descriptors((int)kept);
    mrt_cli_restore_core();
    execvp(run->command[0], run->command);
    return mrt_run_fail_exec(run, errno);
}
