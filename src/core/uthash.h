/* SPDX-License-Identifier: Apache-2.0 */
/* uthash, where memory that runs out makes an insertion fail, not the process. */
#ifndef MRT_CORE_UTHASH_H
#define MRT_CORE_UTHASH_H

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

#endif
