/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of addresses that the URIs of stores on a network have in common. */
#ifndef MRT_STORE_KIT_ADDRESS_H
#define MRT_STORE_KIT_ADDRESS_H

#include "base/parameter.h"
#include "base/uri.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRT_HOST_TEXT_SIZE 280
#define MRT_HOSTS_MAX 16
#define MRT_ENCRYPTED "; encrypted: "
/* Of a user's name and of the secret that goes with it. */
#define MRT_USER_MAX 128
#define MRT_SECRET_MAX 512
#define MRT_CA_PATH_MAX 512
/* How long opening a store waits for the look-up of its hosts. */
#define MRT_RESOLVE_AT_OPEN (200 * MRT_MILLISECOND)

struct mrt_host {
    char name[256]; /* a name, or a literal address without brackets */
    uint16_t port;
};

/* "name", "name:port", "[v6]" or "[v6]:port": 0, or MORTISE_EURI with a wrong port named, and else
   with what `form` says. */
int mrt_host_parse(const char *text, size_t length, uint16_t port_by_default, const char *form,
                   struct mrt_host *host);
/* Such hosts between commas, behind those that there are. 0, or MORTISE_EURI; `family` of the URI,
   such as "a zk:", is in the particulars. */
int mrt_hosts_parse(const char *text, size_t length, const char *family, uint16_t port_by_default,
                    struct mrt_host hosts[MRT_HOSTS_MAX], size_t *count);
/* A host with its port, in one canonical form. */
void mrt_host_format(const struct mrt_host *host, char text[MRT_HOST_TEXT_SIZE]);
/* Adds hosts to a text of this length, with commas between them: the length that it would have. */
size_t mrt_hosts_format(const struct mrt_host *hosts, size_t count, char *text, size_t size,
                        size_t length);
/* "user@" at the beginning of a URI's authority, decoded, into `user`, which stays if there is
   none: what follows, or NULL with particulars. `variable` may have a password; the URI may not. */
const char *mrt_user_parse(const char *text, const char *family, const char *variable, char *user,
                           size_t size);

enum mrt_address_tls { MRT_ADDRESS_TLS_OFF, MRT_ADDRESS_TLS_REQUIRED, MRT_ADDRESS_TLS_VERIFY };

/* Servers of which each serves, and what a client shows them:
   SCHEME://[user@]host[:port][,host...][/]?credentials=/path&tls=off|required|verify&tls_ca=/path
   SCHEMEs://... is the same with tls=verify, if the URI has no tls=. */
struct mrt_servers {
    struct mrt_host hosts[MRT_HOSTS_MAX];
    size_t host_count;
    char user[MRT_USER_MAX]; /* "": none */
    int tls;                 /* enum mrt_address_tls */
    char tls_ca[MRT_CA_PATH_MAX];
    char shown[768]; /* canonical, for people */
};

extern const char *const mrt_tls_words[]; /* the words of tls=, for a row of parameters */

struct mrt_servers_form {
    const char *scheme, *family; /* "etcd", "an etcd:" */
    const char *variable;        /* of the environment, which may have the secret */
    uint16_t port;               /* by default */
    bool tokens;                 /* without a user, the secret is a token */
};
/* The rest of the URI, whose parameters have been read. 0, or MORTISE_EURI with particulars. */
int mrt_servers_parse(const struct mrt_uri *uri, const struct mrt_servers_form *form,
                      struct mrt_servers *servers);
/* The password or the token into secret, "" for none; the caller wipes it. 0, or an error of
   mrt_credentials_read. */
int mrt_servers_secret_read(const struct mrt_uri *uri, const struct mrt_servers_form *form,
                            const struct mrt_servers *servers, char secret[MRT_SECRET_MAX]);

/* The words of mortise_server about the connection, behind the server's version. */
const char *mrt_address_encrypted(bool encrypted, bool checked);

#endif
