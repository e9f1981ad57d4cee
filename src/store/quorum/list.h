/* SPDX-License-Identifier: Apache-2.0 */
/* mortise_list: core/store.h; also while members work, if they answer it beside their other work.
 */
#ifndef MRT_STORE_QUORUM_LIST_H
#define MRT_STORE_QUORUM_LIST_H

#include "core/store.h"

int mrt_quorum_list(struct mrt_store *port, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument);

#endif
