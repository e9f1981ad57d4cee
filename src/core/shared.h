/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of locks with several holders: shared.c.
 */
#ifndef MRT_CORE_SHARED_H
#define MRT_CORE_SHARED_H

#include "core/policy.h"

extern const struct mrt_policy mrt_shared_policy;

#endif
