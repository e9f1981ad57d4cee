/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of the stores on SQL servers, the part that is no SQL. A value is data and goes to
 * the server as data, never as part of a statement. The only exception is the schema's name: it
 * is a word of small letters, digits and "_", so it needs no quoting anywhere.
 */
#ifndef MRT_STORE_SQL_TEXT_H
#define MRT_STORE_SQL_TEXT_H

#include "base/time.h"
#include "base/uri.h"
#include "store/kit/address.h"

#include <stdbool.h>

/* Longest name of a schema: PostgreSQL takes 63 bytes, MariaDB 64 characters. */
#define MRT_SQL_SCHEMA_MAX 48
#define MRT_SQL_OWNER_MAX 63
#define MRT_SQL_HOSTS_MAX 8
/* Fences a ticket owns: its number shifted by so many bits, as on SQLite. */
#define MRT_SQL_FENCE_BITS 16

/* How the server is spoken to. LIBRARY: as the client library is told by its own settings. */
enum mrt_sql_tls {
    MRT_SQL_TLS_LIBRARY,
    MRT_SQL_TLS_OFF,
    MRT_SQL_TLS_REQUIRED, /* encrypted; the server is not verified */
    MRT_SQL_TLS_VERIFY    /* and it is the host that is named */
};

/* The parameters that every URI of these stores has, once read. */
struct mrt_sql_address {
    char schema[MRT_SQL_SCHEMA_MAX + 1];
    char
        owner[MRT_SQL_OWNER_MAX + 1]; /* whose schema may be used besides one's own; "": nobody's */
    mrt_time lease;
    mrt_time connect; /* how long a command waits for a connection */
    bool synchronous; /* a server is refused whose commits do not wait for a replica */
    enum mrt_sql_tls tls;
    char tls_ca[512]; /* a file for VERIFY; "": not given */
    char shown[512];  /* without secrets */
    /* Resolved before the client library does so, which would keep the loop waiting. */
    struct mrt_host hosts[MRT_SQL_HOSTS_MAX];
    size_t host_count;
};

/* Adds a host to those that are looked up, unless it is this machine. */
void mrt_sql_add_host(struct mrt_sql_address *address, const char *name);

/* The name of a schema; NULL: "mortise". 0 or MORTISE_EURI. */
int mrt_sql_schema(const char *name, char schema[MRT_SQL_SCHEMA_MAX + 1]);

/* Whether a host's name, or a directory of a socket, or "", can be nobody's but this machine's. */
bool mrt_sql_is_local(const char *host);

/* tls= and tls_ca=; without them REQUIRED, or LIBRARY on this machine. 0 or MORTISE_EURI. */
int mrt_sql_read_tls(const struct mrt_uri *uri, bool local, struct mrt_sql_address *address);

/* Advice on a failure of TLS: an end of a sentence. */
const char *mrt_sql_tls_advice(enum mrt_sql_tls tls);

/* lease=, connect= and synchronous=, or what they are by default. 0 or MORTISE_EURI. */
int mrt_sql_common(const struct mrt_uri *uri, struct mrt_sql_address *address);

#endif
