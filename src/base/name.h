/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock names and labels: what may stand in one. Names are data everywhere and
 * never part of a path, a statement or a script.
 */
#ifndef MRT_BASE_NAME_H
#define MRT_BASE_NAME_H

#include "mortise.h"

#include <stdbool.h>
#include <stddef.h>

/* UTF-8 as RFC 3629 has it (no overlong forms, no surrogates), without C0, DEL and C1 controls. */
bool mrt_text_is_clean(const char *text, size_t length);
#define MRT_NAMESPACE_MAX 127
#define MRT_FULL_NAME_SIZE (MRT_NAMESPACE_MAX + 2 + MORTISE_NAME_MAX)
/* The prefix of each name in the store: the namespace and "/"; nothing if it is empty.
   `space` NULL: the default. 0, or MORTISE_EURI saying what is wrong with it. */
int mrt_namespace_prefix(const char *space, char prefix[MRT_NAMESPACE_MAX + 2]);
/* 0, or MORTISE_ENAME saying what is wrong with it. */
int mrt_name_check(const char *name);
/* 0, or MORTISE_EINVALID. */
int mrt_label_check(const char *label);

#endif
