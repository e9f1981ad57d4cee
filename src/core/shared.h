/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of what several may hold at once: shared.c.
 */
#ifndef MRT_CORE_SHARED_H
#define MRT_CORE_SHARED_H

#include "core/policy.h"

extern const struct mrt_policy mrt_shared_policy;

#endif
