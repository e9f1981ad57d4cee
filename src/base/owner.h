/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a client describes itself beside its tickets, as the one text that stores keep: its label
 * and, if it names its process, the host and the process number on lines of their own. The text
 * is for people. Another client may write anything there, so no decision depends on it.
 */
#ifndef MRT_BASE_OWNER_H
#define MRT_BASE_OWNER_H

#include "mortise.h"

#include <stdbool.h>

#define MRT_HOST_MAX 64
#define MRT_OWNER_SIZE (MORTISE_LABEL_MAX + MRT_HOST_MAX + 24)

struct mrt_owner {
    char label[MORTISE_LABEL_MAX + 1];
    char host[MRT_HOST_MAX + 1]; /* "": not told */
    int64_t pid;                 /* 0: not told */
};

/* The text of a client with this label. `tells`: with this process and its host; without a host
 * whose name is no clean text. */
void mrt_owner_describe(const char *label, bool tells, char text[MRT_OWNER_SIZE]);
void mrt_owner_format(const struct mrt_owner *owner, char text[MRT_OWNER_SIZE]);
/* Of any text; parts that are not clean or too long are left out. */
void mrt_owner_parse(const char *text, struct mrt_owner *owner);

#endif
