/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpq takes its words in order, and a later word overrides an earlier one: first the store's
 * defaults, then the URI's own part, then its parameters, and last the words that must not change.
 */
#include "store/postgres/uri.h"

#include "base/error.h"
#include "base/parameter.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ours[] = {MRT_URI_COMMON, "lease",  "connect", "schema",
                                   "owner",        "pooler", "form",    "synchronous",
                                   "tls",          "tls_ca", NULL};
/* Words that the store sets itself, or could not work with. */
static const char *const refused[] = {"client_encoding", "target_session_attrs", "replication",
                                      NULL};

static bool is_among(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word) != 0)
        list++;
    return *list;
}

static bool add_option(struct mrt_pg_connection_options *words, const char *word, const char *value)
{
    char *copy = strdup(value);
    if (!copy || words->count == MRT_PG_WORDS_MAX) {
        free(copy);
        return false;
    }
    words->words[words->count] = word;
    words->values[words->count++] = copy;
    return true;
}

/* libpq's own constant for a word it knows, or NULL. */
static const char *known_word(const PQconninfoOption *options, const char *word)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, word) == 0)
            return is_among(word, refused) ? NULL : options->keyword;
    return NULL;
}

static const char *value_of(const PQconninfoOption *options, const char *word)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, word) == 0 && options->val)
            return options->val;
    return "";
}

static const char *host_of(const struct mrt_uri *uri, const PQconninfoOption *options)
{
    const char *host = value_of(options, "host"), *given = mrt_uri_parameter(uri, "host");
    return *host || !given ? host : given;
}

/* Writes the part of libpq's options that is no secret. */
static void write_shown(const struct mrt_uri *uri, const PQconninfoOption *options,
                        struct mrt_sql_address *address)
{
    const char *user = value_of(options, "user"), *port = value_of(options, "port");
    const char *host = host_of(uri, options), *given = mrt_uri_parameter(uri, "port");
    const char *database = value_of(options, "dbname");
    if (!*port && given)
        port = given;
    bool local = *host == '/';
    snprintf(address->shown, sizeof address->shown,
             "postgresql://%.64s%s%.200s%s%.40s/%.64s%s%.100s", user, *user ? "@" : "",
             local ? "" : host, *port ? ":" : "", port, database, local ? "?host=" : "",
             local ? host : "");
}

/* Whether the address is cut where its author meant it. A password with an unescaped "/" or "?"
   would be taken for a port and a database, and be shown as such. */
static bool is_cut_well(const PQconninfoOption *options)
{
    const char *port = value_of(options, "port");
    return port[strspn(port, "0123456789,")] == '\0' && !strchr(value_of(options, "dbname"), '@');
}

/* Notes the hosts to be looked up: none if their addresses are given. Whether all are local; what
   libpq takes from its environment or a service's file, too. */
static bool read_hosts(const struct mrt_uri *uri, const PQconninfoOption *options,
                       const PQconninfoOption *defaults, struct mrt_sql_address *shared)
{
    bool all = true;
    const char *address = mrt_uri_parameter(uri, "hostaddr"), *host = host_of(uri, options);
    char one[256];
    if (!*host)
        host = value_of(defaults, "host");
    if (address)
        host = address;
    for (size_t length;; host += length + 1) {
        length = strcspn(host, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, host);
        all &= mrt_sql_is_local(one);
        if (!address)
            mrt_sql_add_host(shared, one);
        if (!host[length])
            return all;
    }
}

/* Before what the URI says, which may be a sslmode of its own. One of the environment's is not
   replaced, nor what a service's file may hold. */
static int read_tls(const struct mrt_uri *uri, const PQconninfoOption *options,
                    struct mrt_sql_address *address, struct mrt_pg_connection_options *words)
{
    PQconninfoOption *defaults = PQconndefaults();
    if (!defaults)
        return MORTISE_ENOMEM;
    int error = mrt_sql_read_tls(uri, read_hosts(uri, options, defaults, address), address);
    bool says = mrt_uri_parameter(uri, "sslmode") || mrt_uri_parameter(uri, "service") ||
                *value_of(defaults, "service") ||
                strcmp(value_of(defaults, "sslmode"), "prefer") != 0;
    PQconninfoFree(defaults);
    if (error == MORTISE_OK && mrt_uri_parameter(uri, "tls") && mrt_uri_parameter(uri, "sslmode"))
        return mrt_error(MORTISE_EURI, "tls= and sslmode= say the same: give one of them");
    if (error == MORTISE_OK && !mrt_uri_parameter(uri, "tls") && says)
        address->tls = MRT_SQL_TLS_LIBRARY;
    if (error == MORTISE_OK && *address->tls_ca &&
        !add_option(words, "sslrootcert", address->tls_ca))
        error = MORTISE_ENOMEM;
    static const char *const modes[] = {
        [MRT_SQL_TLS_OFF] = "disable",
        [MRT_SQL_TLS_REQUIRED] = "require",
        [MRT_SQL_TLS_VERIFY] = "verify-full",
    };
    if (error == MORTISE_OK && address->tls != MRT_SQL_TLS_LIBRARY &&
        !add_option(words, "sslmode", modes[address->tls]))
        error = MORTISE_ENOMEM;
    return error;
}

static int read_base(const struct mrt_uri *uri, struct mrt_sql_address *address,
                     struct mrt_pg_connection_options *words)
{
    char text[MRT_URI_MAX + sizeof "postgresql:"];
    char *fault = NULL;
    snprintf(text, sizeof text, "postgresql:%s", uri->rest);
    PQconninfoOption *options =
        strncmp(uri->rest, "//", 2) == 0 ? PQconninfoParse(text, &fault) : NULL;
    PQfreemem(fault); /* it may quote the password */
    int error = MORTISE_OK;
    if (options && !is_cut_well(options)) {
        error =
            mrt_error(MORTISE_EURI, "the store URI for PostgreSQL has a port that is no number, "
                                    "or an @ behind its host; in a user or a password write "
                                    "%%40 for @, %%2F for / and %%3F for ?");
    } else if (options) {
        write_shown(uri, options, address);
        words->several = strchr(host_of(uri, options), ',');
        error = read_tls(uri, options, address, words);
        if (error == MORTISE_OK && !add_option(words, "dbname", text))
            error = MORTISE_ENOMEM;
    } else {
        error =
            mrt_error(MORTISE_EURI,
                      "a store URI for PostgreSQL begins as postgresql://user@host:port/database");
    }
    PQconninfoFree(options);
    explicit_bzero(text, sizeof text);
    return error;
}

static int read_parameters(const struct mrt_uri *uri, struct mrt_pg_connection_options *words)
{
    PQconninfoOption *defaults = PQconndefaults();
    int error = defaults ? MORTISE_OK : MORTISE_ENOMEM;
    for (size_t i = 0; i < uri->count && error == MORTISE_OK; i++) {
        const char *key = uri->parameters[i].key;
        if (is_among(key, ours))
            continue;
        const char *word = known_word(defaults, key);
        if (!word)
            error = mrt_error(MORTISE_EURI, "store URI %s:...: unknown parameter \"%.64s\"",
                              uri->scheme, key);
        else if (!add_option(words, word, uri->parameters[i].value))
            error = MORTISE_ENOMEM;
    }
    PQconninfoFree(defaults);
    return error;
}

/* A server or a network that says nothing any more is noticed within the lease. */
static bool put_timeouts(mrt_time lease, struct mrt_pg_connection_options *words)
{
    char idle[24], whole[24];
    mrt_time third = lease / (3 * MRT_SECOND);
    snprintf(idle, sizeof idle, "%lld", (long long)(third > 0 ? third : 1));
    snprintf(whole, sizeof whole, "%lld", (long long)(lease / MRT_MILLISECOND));
    return add_option(words, "keepalives_idle", idle) &&
           add_option(words, "keepalives_interval", "1") &&
           add_option(words, "keepalives_count", "3") &&
           add_option(words, "tcp_user_timeout", whole) &&
           add_option(words, "fallback_application_name", "mortise");
}

/* It stands in the script of mortise init, so it needs no quoting there. */
static int read_owner(const struct mrt_uri *uri, char owner[MRT_SQL_OWNER_MAX + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *name = mrt_uri_parameter(uri, "owner");
    size_t length = name ? strlen(name) : 0, at = 0;
    while (at < length && (strchr(letters, name[at]) || strchr("_-.@", name[at])))
        at++;
    if (name && (length == 0 || length > MRT_SQL_OWNER_MAX || at < length))
        return mrt_error(MORTISE_EURI,
                         "owner=%.64s is not a role's name of letters, digits, _ - . and @, of at "
                         "most %d bytes",
                         name, MRT_SQL_OWNER_MAX);
    snprintf(owner, MRT_SQL_OWNER_MAX + 1, "%s", name ? name : "");
    return MORTISE_OK;
}

int mrt_pg_read_pooler(const struct mrt_uri *uri, enum mrt_pg_pooler *pooler)
{
    static const char *const modes[] = {
        [MRT_PG_POOLER_AUTO] = "auto",          [MRT_PG_POOLER_NO] = "no",
        [MRT_PG_POOLER_SESSION] = "session",    [MRT_PG_POOLER_TRANSACTION] = "transaction",
        [MRT_PG_POOLER_TRANSACTION + 1] = NULL,
    };
    static const struct mrt_parameter row[] = {{"pooler", MRT_PARAMETER_WORD, 0, 0, 0, modes},
                                               {.key = NULL}};
    *pooler = MRT_PG_POOLER_AUTO;
    return mrt_parameters_read_known(uri, row, pooler);
}

int mrt_pg_uri_parse(const struct mrt_uri *uri, struct mrt_sql_address *address,
                     struct mrt_pg_connection_options *words)
{
    memset(address, 0, sizeof *address);
    memset(words, 0, sizeof *words);
    int error = mrt_sql_schema(mrt_uri_parameter(uri, "schema"), address->schema);
    if (error == MORTISE_OK)
        error = read_owner(uri, address->owner);
    if (error == MORTISE_OK)
        error = mrt_sql_common(uri, address);
    if (error == MORTISE_OK)
        error = mrt_pg_read_pooler(uri, &words->pooler);
    if (error == MORTISE_OK && !put_timeouts(address->lease, words))
        error = MORTISE_ENOMEM;
    if (error == MORTISE_OK)
        error = read_base(uri, address, words);
    if (error == MORTISE_OK)
        error = read_parameters(uri, words);
    if (error == MORTISE_OK && !(add_option(words, "client_encoding", "UTF8") &&
                                 add_option(words, "target_session_attrs", "read-write")))
        error = MORTISE_ENOMEM;
    return error;
}

void mrt_pg_words_free(struct mrt_pg_connection_options *words)
{
    for (size_t i = 0; i < words->count; i++) {
        explicit_bzero(words->values[i], strlen(words->values[i]));
        free(words->values[i]);
    }
    words->count = 0;
}
