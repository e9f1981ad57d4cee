/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of a user of the server (ACL). */
#ifndef MRT_STORE_REDIS_RIGHTS_H
#define MRT_STORE_REDIS_RIGHTS_H

#include "base/uri.h"
#include "mortise.h"

/* Prints the command that gives the URI's user the rights that locks need, and no others; the
   passwords stay. Contacts no server. 0 or MORTISE_EURI. */
int mrt_redis_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
