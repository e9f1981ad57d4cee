/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret that a store is to show its server, one line:
 *
 *   ?credentials=/path   from a file that nobody else can read
 *   a variable           of the environment; the file goes first
 *
 * It never stands in a URI or in arguments, and no message quotes it. What the line looks
 * like inside is the store's affair.
 */
#ifndef MRT_STORE_KIT_CREDENTIALS_H
#define MRT_STORE_KIT_CREDENTIALS_H

#include "base/uri.h"

#define MRT_CREDENTIALS_ORIGIN_SIZE 256

/* `text` is "" if there is none; the caller wipes it. `origin` says in messages where it is
   from. 0; EURI, EUNSAFE, EPERMISSION, EUNREACHABLE with particulars. */
int mrt_credentials_read(const struct mrt_uri *uri, const char *variable, char *text, size_t size,
                         char origin[MRT_CREDENTIALS_ORIGIN_SIZE]);

#endif
