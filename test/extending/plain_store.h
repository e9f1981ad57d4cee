/* SPDX-License-Identifier: Apache-2.0 */
/* The example of a store: doc/extending.md. */
#ifndef TEST_EXTENDING_PLAIN_STORE_H
#define TEST_EXTENDING_PLAIN_STORE_H

#include "core/store.h"

extern const struct mrt_store_ops example_plain_store;

#endif
