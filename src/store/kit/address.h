/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of addresses that the URIs of stores on a network have in common. */
#ifndef MRT_STORE_KIT_ADDRESS_H
#define MRT_STORE_KIT_ADDRESS_H

#include "base/parameter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRT_HOST_TEXT_SIZE 280
#define MRT_ENCRYPTED "; encrypted: "
/* How long opening a store waits for the look-up of its hosts. */
#define MRT_RESOLVE_AT_OPEN (200 * MRT_MILLISECOND)

struct mrt_host {
    char name[256]; /* a name, or a literal address without brackets */
    uint16_t port;
};

/* A parameter such as 10s or 500ms, of at least `least` milliseconds and at most an hour;
   without it `duration` stays. 0 or MORTISE_EURI. */
int mrt_address_duration(const struct mrt_uri *uri, const char *key, int64_t least,
                         mrt_time *duration);

/* "name", "name:port", "[v6]" or "[v6]:port": 0, or MORTISE_EURI with a wrong port named, and else
   with what `form` says. */
int mrt_host_parse(const char *text, size_t length, uint16_t port_by_default, const char *form,
                   struct mrt_host *host);
/* The same with the port, in one canonical form. */
void mrt_host_format(const struct mrt_host *host, char text[MRT_HOST_TEXT_SIZE]);
/* The words of mortise_server about the connection, behind the server's version. */
const char *mrt_address_encrypted(bool encrypted, bool checked);

#endif
