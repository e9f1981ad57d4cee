/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of a client as a module, mortise-tls.so: loaded when a URI demands TLS of a store whose
 * client library has none, so that no other program loads OpenSSL.
 *
 * It knows no socket. The store gives it what came from the peer, and takes what must be sent to
 * it; so nothing here waits, and no signal can arise.
 *
 * Threads: a context may be used by several at a time; calls on one connection come one at a time.
 */
#ifndef MRT_TLS_TLS_H
#define MRT_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>

#define MRT_TLS_FAULT_SIZE 192

struct mrt_tls_context;
struct mrt_tls;

struct mrt_tls_options {
    bool check;              /* the peer's certificate and name */
    const char *ca;          /* a file of CAs; NULL: the system's */
    const char *certificate; /* a file, of the client and those above it; NULL: none */
    const char *key;         /* its private key itself, as PEM */
};

enum mrt_tls_step { MRT_TLS_GOES_ON, MRT_TLS_DONE, MRT_TLS_FAILED };

struct mrt_tls_ops {
    const char *version; /* of mortise: a module goes with the library it was built with */
    /* NULL: `fault` says why. */
    struct mrt_tls_context *(*context_new)(const struct mrt_tls_options *options,
                                           char fault[MRT_TLS_FAULT_SIZE]);
    void (*context_free)(struct mrt_tls_context *context);
    /* A connection to a peer whose certificate must be of this host name or address; it may
       outlive the context. NULL: no memory. */
    struct mrt_tls *(*begin)(struct mrt_tls_context *context, const char *host);
    /* Sends nothing, as also a forked child may end a connection that its parent uses. */
    void (*end)(struct mrt_tls *tls);
    /* Bytes that came from the peer; false: no memory. */
    bool (*input)(struct mrt_tls *tls, const char *bytes, size_t length);
    /* Goes on with the handshake. */
    enum mrt_tls_step (*shake)(struct mrt_tls *tls);
    /* After it: what the peer said, so many bytes; 0: nothing yet. -1: the peer has ended, or there
       is a fault. */
    long (*read)(struct mrt_tls *tls, char *bytes, size_t size);
    bool (*write)(struct mrt_tls *tls, const char *bytes, size_t length);
    /* The bytes that must be sent to the peer, also after a failure; how many. */
    size_t (*output)(struct mrt_tls *tls, const char **bytes);
    void (*sent)(struct mrt_tls *tls, size_t length);
    /* Why shake, read or write failed; "": the peer ended the connection. */
    const char *(*fault)(const struct mrt_tls *tls);
};

#define MRT_TLS_ENTRY "mortise_tls_module"
typedef const struct mrt_tls_ops *mrt_tls_entry(void);

#endif
