/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secret that a store shows its server, one line:
 *
 *   ?credentials=/path   from a file that nobody else can read; it is preferred
 *   a variable           of the environment
 *
 * The secret is never in a URI or in arguments, and no message quotes it. Each store family reads
 * the line in its own way.
 */
#ifndef MRT_STORE_KIT_CREDENTIALS_H
#define MRT_STORE_KIT_CREDENTIALS_H

#include "base/uri.h"

#define MRT_CREDENTIALS_ORIGIN_SIZE 256

/* `text` is "" if there is none; the caller wipes it. `origin` says in messages where it is
   from. 0; EURI, EUNSAFE, EPERMISSION, EUNREACHABLE with particulars. */
int mrt_credentials_read(const struct mrt_uri *uri, const char *variable, char *text, size_t size,
                         char origin[MRT_CREDENTIALS_ORIGIN_SIZE]);
/* Such a file whole; its last line's end is dropped. */
int mrt_credentials_read_file(const char *path, char *text, size_t size);
/* The same by the parameter `key`; `variable`: NULL: no variable counts. */
int mrt_credentials_read_as(const struct mrt_uri *uri, const char *key, const char *variable,
                            char *text, size_t size, char origin[MRT_CREDENTIALS_ORIGIN_SIZE]);

#endif
