/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgresql://user@host:port,host:port/database?lease=10s&connect=5s&schema=mortise&pooler=auto
 *
 * The rest of the URI is libpq's, in libpq's own form, and so are its credentials: password file,
 * service file and environment. A password may stand in the URI. It is never shown: neither the URI
 * itself nor libpq's opinion of a malformed URI is repeated, because that quotes it.
 */
#ifndef MRT_STORE_POSTGRES_URI_H
#define MRT_STORE_POSTGRES_URI_H

#include "store/sql/text.h"

#include <stdbool.h>

#define MRT_PG_WORDS_MAX (MRT_URI_PARAMETERS_MAX + 16)

/* pooler=: what stands before the server, as far as the user knows. */
enum mrt_pg_pooler {
    MRT_PG_POOLER_AUTO,       /* each connection shows it */
    MRT_PG_POOLER_NO,         /* and is refused if it shows one */
    MRT_PG_POOLER_SESSION,    /* perhaps one that gives each client a session of its own */
    MRT_PG_POOLER_TRANSACTION /* one that does not */
};

struct mrt_pg_connection_options {
    enum mrt_pg_pooler pooler;
    bool several; /* hosts, and one of them may be about to become the primary */
    /* For PQconnectStartParams, NULL-ended; the values are ours. */
    const char *words[MRT_PG_WORDS_MAX + 1];
    char *values[MRT_PG_WORDS_MAX + 1];
    size_t count;
};

/* 0 or MORTISE_EURI. */
int mrt_pg_read_pooler(const struct mrt_uri *uri, enum mrt_pg_pooler *pooler);
/* 0, MORTISE_EURI, MORTISE_ENOMEM. The caller frees `words` also after a failure. */
int mrt_pg_uri_parse(const struct mrt_uri *uri, struct mrt_sql_address *address,
                     struct mrt_pg_connection_options *words);
/* Overwrites the values, because a password may be among them. */
void mrt_pg_words_free(struct mrt_pg_connection_options *words);

#endif
