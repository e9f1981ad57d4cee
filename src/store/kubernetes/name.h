/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Leases. A lock whose full name may be the name of a Lease is kept in the Lease of that
 * name, so that it can be one that client-go keeps. Every other name becomes
 *
 *   WORDS.xDIGITS    WORDS: the name's letters and digits, for people; DIGITS: 32 hexadecimal
 *                    digits, half of the name's SHA-256
 *
 * A name that looks so itself is encoded, too: so no two names share a Lease unless their hashes
 * are equal, and then the full name in the Lease's annotation tells them apart.
 */
#ifndef MRT_STORE_KUBERNETES_NAME_H
#define MRT_STORE_KUBERNETES_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define MRT_K8S_NAME_MAX 253
#define MRT_K8S_NAME_SIZE (MRT_K8S_NAME_MAX + 1)

/* Whether it is a subdomain of at most `most` bytes as RFC 1123 has it, in lower case. */
bool mrt_k8s_is_name(const char *text, size_t most);
/* The Lease of a lock's full name. */
void mrt_k8s_name(const char *full, char name[MRT_K8S_NAME_SIZE]);

#endif
