/*
 * What the stores on SQL servers have in common and is no SQL: their parameters. A value is data
 * and goes to the server as one, never as part of a statement; the one exception, the schema's
 * name, is a word of small letters, digits and "_", so that it needs no quoting anywhere.
 */
#ifndef MRT_STORE_SQL_TEXT_H
#define MRT_STORE_SQL_TEXT_H

#include "base/time.h"
#include "base/uri.h"

#include <stdbool.h>

/* Longest name of a schema: PostgreSQL takes 63 bytes, MariaDB 64 characters. */
#define MRT_SQL_SCHEMA_MAX 48
#define MRT_SQL_OWNER_MAX 63
/* Fences a ticket owns: its number shifted by so many bits, as on SQLite. */
#define MRT_SQL_FENCE_BITS 16

/* What every URI says, once read. */
struct mrt_sql_address {
    char schema[MRT_SQL_SCHEMA_MAX + 1];
    char
        owner[MRT_SQL_OWNER_MAX + 1]; /* whose schema may be used besides one's own; "": nobody's */
    mrt_time lease;
    mrt_time connect; /* how long a command waits for a connection */
    bool synchronous; /* a server is refused whose commits do not wait for a replica */
    char shown[512];  /* without secrets */
};

/* A duration such as 10s or 500ms, at least `least` and at most a day; *duration stays if it is not
   given. 0 or MORTISE_EURI with particulars. */
int mrt_sql_duration(const struct mrt_uri *uri, const char *key, mrt_time least,
                     mrt_time *duration);

/* The name of a schema; NULL: "mortise". 0 or MORTISE_EURI. */
int mrt_sql_schema(const char *name, char schema[MRT_SQL_SCHEMA_MAX + 1]);

/* lease=, connect= and synchronous=, or what they are by default. 0 or MORTISE_EURI. */
int mrt_sql_common(const struct mrt_uri *uri, struct mrt_sql_address *address);

#endif
