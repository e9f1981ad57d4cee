/* SPDX-License-Identifier: Apache-2.0 */
/* The example of a subcommand: doc/extending.md. */
#ifndef TEST_EXTENDING_HELD_SUBCOMMAND_H
#define TEST_EXTENDING_HELD_SUBCOMMAND_H

#include "cli/frame/options.h"

extern const struct mrt_subcommand example_held_subcommand;

#endif
