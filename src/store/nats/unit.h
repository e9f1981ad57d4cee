/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of what a NATS server sends: a line, and the message behind it if the line announces one.
 * libnats (3.4.1) trusts the server. A size near 2^31 makes it read far outside its buffer; what it
 * has of a message that is cut off is never freed; a line or a message has no largest size. So it
 * is given whole units alone, which this file has found to be sound.
 */
#ifndef MRT_STORE_NATS_UNIT_H
#define MRT_STORE_NATS_UNIT_H

#include <stddef.h>

#define MRT_NATS_UNIT_MAX 65536

/* How long the first unit is. 0: it has not come whole. -1: there is none. */
ptrdiff_t mrt_nats_unit(const char *bytes, size_t size);

#endif
