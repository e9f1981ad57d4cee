/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of waiting in a store's URI: policy.c. */
#ifndef MRT_IO_POLICY_H
#define MRT_IO_POLICY_H

#include "base/uri.h"
#include "core/engine.h"

#define MRT_GIVE_UP_MAX_MS (3600 * 1000)

/* Puts the URI's settings of waiting into `config`, over those that it has. 0 or MORTISE_EURI. */
int mrt_policy_read(const struct mrt_uri *uri, struct mrt_engine_config *config);

#endif
