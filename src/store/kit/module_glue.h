/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a module's entry function. */
#ifndef MRT_STORE_KIT_MODULE_GLUE_H
#define MRT_STORE_KIT_MODULE_GLUE_H

#include "store/module.h"

#include <stdbool.h>

/* False: the host is another version, and the entry returns NULL. */
bool mrt_module_greet(const struct mrt_module_host *host);

#endif
