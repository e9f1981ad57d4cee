/* SPDX-License-Identifier: Apache-2.0 */
/* Each text is checked whole, byte by byte, before anything is made of it. */
#include "store/sql/text.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 9
#define LEASE_MIN (500 * MRT_MILLISECOND)
#define MOST (24 * 3600 * MRT_SECOND)

static mrt_time unit_of(const char *text)
{
    if (strcmp(text, "s") == 0)
        return MRT_SECOND;
    return strcmp(text, "ms") == 0 ? MRT_MILLISECOND : 0;
}

int mrt_sql_duration(const struct mrt_uri *uri, const char *key, mrt_time least, mrt_time *duration)
{
    const char *text = mrt_uri_parameter(uri, key);
    if (!text)
        return MORTISE_OK;
    size_t digits = strspn(text, "0123456789");
    mrt_time number = 0, unit = unit_of(text + digits);
    for (size_t i = 0; i < digits && i < DIGITS_MAX; i++)
        number = number * 10 + (text[i] - '0');
    if (digits == 0 || digits > DIGITS_MAX || unit == 0 || number * unit < least ||
        number * unit > MOST)
        return mrt_error(
            MORTISE_EURI,
            "%s=%.32s is not a duration such as 10s, or it is less than %d ms or more than a day",
            key, text, (int)(least / MRT_MILLISECOND));
    *duration = number * unit;
    return MORTISE_OK;
}

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
    address->lease = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = mrt_sql_duration(uri, "lease", LEASE_MIN, &address->lease);
    if (error == MORTISE_OK)
        error = mrt_sql_duration(uri, "connect", MRT_MILLISECOND, &address->connect);
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

static int read_tls_ca(const struct mrt_uri *uri, struct mrt_sql_address *address)
{
    const char *file = mrt_uri_parameter(uri, "tls_ca");
    if (file && address->tls != MRT_SQL_TLS_VERIFY)
        return mrt_error(MORTISE_EURI, "tls_ca= is used with tls=verify only");
    if (file && (!*file || strlen(file) >= sizeof address->tls_ca))
        return mrt_error(MORTISE_EURI, "tls_ca= is empty or too long");
    if (file)
        memcpy(address->tls_ca, file, strlen(file) + 1);
    return MORTISE_OK;
}

int mrt_sql_read_tls(const struct mrt_uri *uri, bool local, struct mrt_sql_address *address)
{
    static const char *const words[] = {
        [MRT_SQL_TLS_OFF] = "off",
        [MRT_SQL_TLS_REQUIRED] = "required",
        [MRT_SQL_TLS_VERIFY] = "verify",
    };
    const char *text = mrt_uri_parameter(uri, "tls");
    address->tls = local ? MRT_SQL_TLS_LIBRARY : MRT_SQL_TLS_REQUIRED;
    int tls = MRT_SQL_TLS_OFF;
    while (text && tls <= MRT_SQL_TLS_VERIFY && strcmp(text, words[tls]) != 0)
        tls++;
    if (text && tls > MRT_SQL_TLS_VERIFY)
        return mrt_error(MORTISE_EURI, "tls=%.32s is not off, required or verify", text);
    if (text)
        address->tls = (enum mrt_sql_tls)tls;
    return read_tls_ca(uri, address);
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
