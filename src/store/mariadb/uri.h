/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mysql://user:password@host:port/database?lease=10s&connect=5s&socket=/path
 *       &option_file=/path&option_group=name&tls=verify&tls_ca=/path
 *
 * The database is the schema: its tables belong to the store only. Further options of the client
 * library, TLS and a password among them, may stand in an option file in the library's own
 * form, which is read only if the URI names it. A password in the URI is never shown.
 */
#ifndef MRT_STORE_MARIADB_URI_H
#define MRT_STORE_MARIADB_URI_H

#include "store/sql/text.h"

struct mrt_mariadb_connection_options {
    char text[MRT_URI_MAX];             /* the parts point into it; it is wiped at the end */
    const char *user, *password, *host; /* NULL: not given */
    unsigned port;
    bool by_port; /* the URI has a port: TCP, also to localhost, which without a port means the
                     socket */
    char database[MRT_SQL_SCHEMA_MAX + 1];
    char socket[108], option_file[512], option_group[64]; /* "": not given */
    mrt_time connect;
    enum mrt_sql_tls tls;
    char tls_ca[512];
};

/* 0, or MORTISE_EURI with particulars. */
int mrt_mariadb_uri_parse(const struct mrt_uri *uri, struct mrt_sql_address *address,
                          struct mrt_mariadb_connection_options *words);

#endif
