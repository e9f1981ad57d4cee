/* SPDX-License-Identifier: Apache-2.0 */
/* The URI is cut up left to right, in a copy; what may be a secret is not quoted. */
#include "store/mariadb/uri.h"

#include "base/error.h"
#include "base/parameter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT 3306

static int malformed(void)
{
    return mrt_error(MORTISE_EURI,
                     "a store URI for MariaDB is mysql://user@host:port/database?lease=10s...");
}

/* "user:password@" at the beginning of `text`; what follows it, or NULL. */
static char *take_user(char *text, struct mrt_mariadb_connection_options *words)
{
    char *at = strrchr(text, '@');
    if (!at)
        return text;
    *at = '\0';
    char *colon = strchr(text, ':');
    if (colon) {
        *colon = '\0';
        words->password = colon + 1;
        if (mrt_uri_decode(colon + 1) != 0)
            return NULL;
    }
    words->user = text;
    return mrt_uri_decode(text) == 0 && *text ? at + 1 : NULL;
}

/* "host:port", "[address]:port", or one without the port. */
static int take_host(char *text, struct mrt_mariadb_connection_options *words)
{
    char *end = *text == '[' ? strchr(text, ']') : text + strcspn(text, ":");
    int port = DEFAULT_PORT;
    if (!end)
        return malformed();
    bool bracketed = *end == ']', more = end[bracketed] == ':';
    const char *digits = end + bracketed + more;
    if (more)
        port = mrt_uri_port(digits, strlen(digits));
    if (port < 0 || (!more && end[bracketed]))
        return malformed();
    *end = '\0';
    words->host = text + bracketed;
    words->port = (unsigned)port;
    words->by_port = more && !*words->socket;
    if (!*words->host || mrt_uri_decode(text + bracketed) != 0)
        return malformed();
    if (port == 0)
        return mrt_error(MORTISE_EURI, "the port of %.250s is not from 1 to 65535", words->host);
    return MORTISE_OK;
}

static int read_base(const struct mrt_uri *uri, struct mrt_mariadb_connection_options *words)
{
    if (strncmp(uri->rest, "//", 2) != 0 || strlen(uri->rest) >= sizeof words->text)
        return malformed();
    snprintf(words->text, sizeof words->text, "%s", uri->rest + 2);
    char *path = strchr(words->text, '/');
    if (path)
        *path++ = '\0';
    char *host = take_user(words->text, words);
    if (!host || (!*host && !*words->socket))
        return malformed();
    int error = *host ? take_host(host, words) : MORTISE_OK;
    if (error)
        return error;
    return mrt_sql_schema(path && *path ? path : NULL, words->database);
}

/* Writes the part of the URI that is no secret. */
static void write_shown(const struct mrt_mariadb_connection_options *words, char shown[512])
{
    char host[280]; /* so that all of it fits */
    bool literal = words->host && strchr(words->host, ':');
    if (words->host)
        snprintf(host, sizeof host, literal ? "[%.250s]:%u" : "%.250s:%u", words->host,
                 words->port);
    snprintf(shown, 512, "mysql://%.64s%s%s/%s%s%.100s", words->user ? words->user : "",
             words->user ? "@" : "", words->host ? host : "", words->database,
             *words->socket ? "?socket=" : "", words->socket);
}

int mrt_mariadb_uri_parse(const struct mrt_uri *uri, struct mrt_sql_address *address,
                          struct mrt_mariadb_connection_options *words)
{
    static const struct mrt_parameter parameters[] = {
        {"socket", MRT_PARAMETER_TEXT, offsetof(struct mrt_mariadb_connection_options, socket), 0,
         sizeof words->socket, NULL},
        {"option_file", MRT_PARAMETER_TEXT,
         offsetof(struct mrt_mariadb_connection_options, option_file), 0, sizeof words->option_file,
         NULL},
        {"option_group", MRT_PARAMETER_TEXT,
         offsetof(struct mrt_mariadb_connection_options, option_group), 0,
         sizeof words->option_group, NULL},
        /* those that mrt_sql_common and mrt_sql_read_tls read */
        {.key = "form"},
        {.key = "lease"},
        {.key = "connect"},
        {.key = "synchronous"},
        {.key = "tls"},
        {.key = "tls_ca"},
        {.key = NULL}};
    memset(address, 0, sizeof *address);
    memset(words, 0, sizeof *words);
    int error = mrt_parameters_read(uri, parameters, words);
    if (error == MORTISE_OK)
        error = mrt_sql_common(uri, address);
    if (error == MORTISE_OK)
        error = read_base(uri, words);
    if (error == MORTISE_OK)
        error = mrt_sql_read_tls(uri, *words->socket || mrt_sql_is_local(words->host), address);
    if (error == MORTISE_OK && words->host && !*words->socket)
        mrt_sql_add_host(address, words->host);
    words->connect = address->connect;
    words->tls = address->tls;
    memcpy(words->tls_ca, address->tls_ca, sizeof words->tls_ca);
    memcpy(address->schema, words->database, sizeof address->schema);
    write_shown(words, address->shown);
    return error;
}
