/* SPDX-License-Identifier: Apache-2.0 */
/* Each text is checked whole, byte by byte, before anything is made of it. */
#include "store/sql/text.h"

#include "base/error.h"
#include "base/parameter.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LEASE_MIN (500 * MRT_MILLISECOND)
#define MOST (24 * 3600 * MRT_SECOND)

/* No replica has a lock of the server's own. */
static int read_synchronous(const struct mrt_uri *uri, bool *synchronous)
{
    const char *text = mrt_uri_parameter(uri, "synchronous");
    *synchronous = text;
    if (!text || (strcmp(text, "required") == 0 && !mrt_uri_parameter(uri, "form")))
        return MORTISE_OK;
    return mrt_error(MORTISE_EURI,
                     "synchronous=%.32s is not \"required\", or stands beside form=", text);
}

int mrt_sql_common(const struct mrt_uri *uri, struct mrt_sql_address *address)
{
    static const struct mrt_parameter rows[] = {
        {"lease", MRT_PARAMETER_DURATION, offsetof(struct mrt_sql_address, lease), LEASE_MIN, MOST,
         NULL},
        {"connect", MRT_PARAMETER_DURATION, offsetof(struct mrt_sql_address, connect),
         MRT_MILLISECOND, MOST, NULL},
        {.key = NULL}};
    address->lease = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = mrt_parameters_read_known(uri, rows, address);
    return error ? error : read_synchronous(uri, &address->synchronous);
}

int mrt_sql_schema(const char *name, char schema[MRT_SQL_SCHEMA_MAX + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_", digits[] = "0123456789";
    if (!name)
        name = "mortise";
    size_t length = strlen(name), at = 0;
    while (at < length && (strchr(letters, name[at]) || (at > 0 && strchr(digits, name[at]))))
        at++;
    if (length == 0 || length > MRT_SQL_SCHEMA_MAX || at < length || strncmp(name, "pg_", 3) == 0)
        return mrt_error(MORTISE_EURI,
                         "schema=%.64s is not a name of a to z, 0 to 9 and _, of at most %d bytes",
                         name, MRT_SQL_SCHEMA_MAX);
    memcpy(schema, name, length + 1);
    return MORTISE_OK;
}

bool mrt_sql_is_local(const char *host)
{
    return !*host || *host == '/' || *host == '@' || strcmp(host, "localhost") == 0 ||
           strcmp(host, "::1") == 0 ||
           (strncmp(host, "127.", 4) == 0 && host[strspn(host, "0123456789.")] == '\0');
}

void mrt_sql_add_host(struct mrt_sql_address *address, const char *name)
{
    if (address->host_count == MRT_SQL_HOSTS_MAX || mrt_sql_is_local(name))
        return;
    struct mrt_host *host = &address->hosts[address->host_count++];
    *host = (struct mrt_host){.port = 0};
    snprintf(host->name, sizeof host->name, "%s", name);
}

int mrt_sql_read_tls(const struct mrt_uri *uri, bool local, struct mrt_sql_address *address)
{
    static const char *const words[] = {"off", "required", "verify", NULL}; /* from TLS_OFF on */
    static const struct mrt_parameter tls[] = {{"tls", MRT_PARAMETER_WORD, 0, 0, 0, words},
                                               {.key = NULL}};
    static const struct mrt_parameter ca[] = {
        {"tls_ca", MRT_PARAMETER_TEXT, 0, 0, sizeof address->tls_ca, NULL}, {.key = NULL}};
    int said = -1;
    int error = mrt_parameters_read_known(uri, tls, &said);
    if (error == MORTISE_OK)
        error = mrt_parameters_read_known(uri, ca, address->tls_ca);
    address->tls = said >= 0 ? MRT_SQL_TLS_OFF + (unsigned)said
                   : local   ? MRT_SQL_TLS_LIBRARY
                             : MRT_SQL_TLS_REQUIRED;
    bool names_file = mrt_uri_parameter(uri, "tls_ca");
    if (error == MORTISE_OK && names_file && address->tls != MRT_SQL_TLS_VERIFY)
        error = mrt_error(MORTISE_EURI, "tls_ca= is used with tls=verify only");
    if (error == MORTISE_OK && names_file && !*address->tls_ca)
        error = mrt_error(MORTISE_EURI, "tls_ca= is empty");
    return error;
}

const char *mrt_sql_tls_advice(enum mrt_sql_tls tls)
{
    switch (tls) {
    case MRT_SQL_TLS_REQUIRED:
        return "; servers on other hosts must encrypt unless tls=off";
    case MRT_SQL_TLS_VERIFY:
        return "; tls=verify checks the certificate against tls_ca= and the host's name";
    default:
        return "";
    }
}
