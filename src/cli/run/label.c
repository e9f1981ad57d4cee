/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label that lists show beside a lock without --label. For a command it is the command's name,
 * without a path and without arguments, which may be secret. For a keeper it adds the process that
 * the keeper keeps the lock for, since the process in the list is the keeper. For a candidate it is
 * its value.
 */

#include "base/name.h"
#include "cli/run/run.h"

#include <stdio.h>
#include <string.h>

static void set(struct mrt_run *run, const char *text)
{
    size_t length = strlen(text);
    if (run->cli->label || length == 0 || length > MORTISE_LABEL_MAX ||
        !mrt_text_is_clean(text, length))
        return;
    memcpy(run->label, text, length + 1);
    run->cli->label = run->label;
}

/* The first word of what a shell is to run, unless it sets a variable. */
static void name_string(const char *string, char name[MORTISE_LABEL_MAX + 1])
{
    const char *word = string + strspn(string, " \t\n");
    size_t length = strcspn(word, " \t\n;&|<>()");
    if (length <= MORTISE_LABEL_MAX && !memchr(word, '=', length))
        snprintf(name, MORTISE_LABEL_MAX + 1, "%.*s", (int)length, word);
}

void mrt_run_set_label(struct mrt_run *run)
{
    char word[MORTISE_LABEL_MAX + 1] = "";
    if (run->value)
        set(run, run->value);
    if (run->string)
        name_string(run->string, word);
    else if (run->command && *run->command && strlen(*run->command) <= MORTISE_LABEL_MAX)
        snprintf(word, sizeof word, "%s", *run->command);
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    if (run->no_fork && *name)
        mrt_run_set_label_of(run, name, run->asker);
    else
        set(run, name);
}

void mrt_run_set_label_of(struct mrt_run *run, const char *name, pid_t pid)
{
    char text[MORTISE_LABEL_MAX + 1];
    int length = snprintf(text, sizeof text, "%s (%d)", name, (int)pid);
    if (length < (int)sizeof text)
        set(run, text);
}
