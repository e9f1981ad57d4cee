/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of OpenSSL in words. */
#ifndef MRT_TLS_FAULT_H
#define MRT_TLS_FAULT_H

#include "tls/tls.h"

#include <openssl/ssl.h>

/* Why a file was not accepted, or a key (path: NULL); empties the thread's queue of errors. */
void mrt_tls_file_fault(const char *what, const char *path, char fault[MRT_TLS_FAULT_SIZE]);
/* Why a connection failed; empties the queue. */
void mrt_tls_connection_fault(const SSL *ssl, const char *host, char fault[MRT_TLS_FAULT_SIZE]);

#endif
