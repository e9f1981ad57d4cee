/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a server listens for, by its own list of addresses. */
#ifndef MRT_BASE_LISTEN_H
#define MRT_BASE_LISTEN_H

#include <stdbool.h>

/* Whether one of the addresses, which commas or blanks part, is not of this machine's loopback
   interface: so a name other than localhost, or "*". A "-" before one is Redis's "if there is such
   an address". An empty list has none. */
bool mrt_listens_for_others(const char *addresses);

#endif
