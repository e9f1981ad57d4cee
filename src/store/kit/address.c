/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses addresses. Every part is checked whole, and written back in one canonical form (`shown`),
 * which contains no password. A malformed part is never quoted where it may be a part of a password
 * that was put in the wrong place.
 */
#include "store/kit/address.h"

#include "base/error.h"
#include "base/listen.h"
#include "base/name.h"
#include "store/kit/credentials.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static bool is_name(const char *name)
{
    return *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_")] == '\0';
}

/* "[v6]" or a name or v4 address into host; what follows it, or NULL. */
static const char *read_host_name(const char *text, size_t length, struct mrt_host *host)
{
    struct in6_addr binary;
    const char *from = text, *end = text + length, *to;
    bool bracketed = *text == '[';
    if (bracketed) {
        from++;
        to = memchr(from, ']', (size_t)(end - from));
    } else {
        to = memchr(from, ':', length);
        to = to ? to : end;
    }
    if (!to || (size_t)(to - from) >= sizeof host->name)
        return NULL;
    memcpy(host->name, from, (size_t)(to - from));
    host->name[to - from] = '\0';
    if (bracketed ? inet_pton(AF_INET6, host->name, &binary) != 1 : !is_name(host->name))
        return NULL;
    if (bracketed)
        inet_ntop(AF_INET6, &binary, host->name, sizeof host->name);
    return bracketed ? to + 1 : to;
}

int mrt_host_parse(const char *text, size_t length, uint16_t port_by_default, const char *form,
                   struct mrt_host *host)
{
    const char *rest = length > 0 ? read_host_name(text, length, host) : NULL;
    int port = port_by_default;
    if (rest && rest != text + length)
        port = *rest == ':' ? mrt_uri_port(rest + 1, length - (size_t)(rest + 1 - text)) : -1;
    if (!rest || port < 0)
        return mrt_error(MORTISE_EURI, "%s", form);
    if (port == 0) /* without the number, which may be a password */
        return mrt_error(MORTISE_EURI, "the port of %s is not from 1 to 65535", host->name);
    host->port = (uint16_t)port;
    return MORTISE_OK;
}

int mrt_hosts_parse(const char *text, size_t length, const char *family, uint16_t port_by_default,
                    struct mrt_host hosts[MRT_HOSTS_MAX], size_t *count)
{
    const char *end = text + length;
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t part = (size_t)((comma ? comma : end) - text);
        char form[80]; /* without the host, which may be a part of a password */
        if (*count == MRT_HOSTS_MAX)
            return mrt_error(MORTISE_EURI, "more than %d hosts in %s URI", MRT_HOSTS_MAX, family);
        snprintf(form, sizeof form, "host %zu in %s URI is not of the form host:port", *count + 1,
                 family);
        int error = mrt_host_parse(text, part, port_by_default, form, &hosts[(*count)++]);
        if (error || !comma)
            return error;
        text = comma + 1;
    }
}

void mrt_host_format(const struct mrt_host *host, char text[MRT_HOST_TEXT_SIZE])
{
    bool v6 = strchr(host->name, ':');
    snprintf(text, MRT_HOST_TEXT_SIZE, "%s%s%s:%u", v6 ? "[" : "", host->name, v6 ? "]" : "",
             (unsigned)host->port);
}

size_t mrt_hosts_format(const struct mrt_host *hosts, size_t count, char *text, size_t size,
                        size_t length)
{
    char host[MRT_HOST_TEXT_SIZE];
    for (size_t i = 0; i < count && length < size; i++) {
        mrt_host_format(&hosts[i], host);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? "," : "", host);
    }
    return length;
}

const char *mrt_user_parse(const char *text, const char *family, const char *variable, char *user,
                           size_t size)
{
    const char *at = memrchr(text, '@', strcspn(text, "/"));
    if (!at)
        return text;
    size_t length = (size_t)(at - text);
    if (memchr(text, ':', length)) {
        mrt_error(MORTISE_EURI,
                  "%s URI may not carry a password: put it into the file of credentials=/path, or "
                  "into %s",
                  family, variable);
        return NULL;
    }
    if (length > 0 && length < size) {
        memcpy(user, text, length);
        if (mrt_uri_decode(user) == 0 && user[0] && mrt_text_is_clean(user, strlen(user)))
            return at + 1;
    }
    mrt_error(MORTISE_EURI, "the user in %s URI is not well formed", family);
    return NULL;
}

/* ------------------------------------------------------------------ servers */

const char *const mrt_tls_words[] = {"off", "required", "verify", NULL};

static int take_tls(const struct mrt_uri *uri, const struct mrt_servers_form *form,
                    struct mrt_servers *servers)
{
    bool secure = strcmp(uri->scheme, form->scheme) != 0, said = mrt_uri_parameter(uri, "tls");
    bool secret = servers->user[0] || (form->tokens && mrt_uri_parameter(uri, "credentials"));
    if (secure && !said)
        servers->tls = MRT_ADDRESS_TLS_VERIFY;
    if (secure && servers->tls == MRT_ADDRESS_TLS_OFF)
        return mrt_error(MORTISE_EURI, "tls=off is not for %s:, which is encrypted", uri->scheme);
    if (servers->tls_ca[0] && servers->tls != MRT_ADDRESS_TLS_VERIFY)
        return mrt_error(MORTISE_EURI, "tls_ca= is used with tls=verify only");
    for (size_t i = 0; secret && !secure && !said && i < servers->host_count; i++)
        if (mrt_listens_for_others(servers->hosts[i].name))
            return mrt_error(MORTISE_EURI,
                             "the password would go to %.200s unencrypted: use %ss:, or allow it "
                             "by tls=off",
                             servers->hosts[i].name, form->scheme);
    return MORTISE_OK;
}

int mrt_servers_parse(const struct mrt_uri *uri, const struct mrt_servers_form *form,
                      struct mrt_servers *servers)
{
    if (strncmp(uri->rest, "//", 2) != 0)
        return mrt_error(MORTISE_EURI, "%s URI begins as %s://host:port", form->family,
                         form->scheme);
    const char *hosts = mrt_user_parse(uri->rest + 2, form->family, form->variable, servers->user,
                                       sizeof servers->user);
    if (!hosts)
        return MORTISE_EURI;
    size_t length = strcspn(hosts, "/");
    if (hosts[length] && hosts[length + 1])
        return mrt_error(MORTISE_EURI, "%s URI has no path: namespace= says where its names begin",
                         form->family);
    int error = mrt_hosts_parse(hosts, length, form->family, form->port, servers->hosts,
                                &servers->host_count);
    if (error == MORTISE_OK)
        error = take_tls(uri, form, servers);
    if (error != MORTISE_OK)
        return error;
    int begin = snprintf(servers->shown, sizeof servers->shown, "%s://%s%s", uri->scheme,
                         servers->user, servers->user[0] ? "@" : "");
    mrt_hosts_format(servers->hosts, servers->host_count, servers->shown, sizeof servers->shown,
                     (size_t)begin);
    return MORTISE_OK;
}

int mrt_servers_secret_read(const struct mrt_uri *uri, const struct mrt_servers_form *form,
                            const struct mrt_servers *servers, char secret[MRT_SECRET_MAX])
{
    char origin[MRT_CREDENTIALS_ORIGIN_SIZE];
    secret[0] = '\0';
    if (!servers->user[0] && !mrt_uri_parameter(uri, "credentials"))
        return MORTISE_OK;
    int error = mrt_credentials_read(uri, form->variable, secret, MRT_SECRET_MAX, origin);
    if (error != MORTISE_OK)
        return error;
    if (!mrt_text_is_clean(secret, strlen(secret)))
        return mrt_error(MORTISE_EURI, "credentials %s are not one line, the password", origin);
    if (!servers->user[0] && !form->tokens)
        return mrt_error(MORTISE_EURI, "credentials= needs a user: %s://user@host", form->scheme);
    if (!secret[0])
        return mrt_error(
            MORTISE_EURI,
            "%s URI with a user needs that user's password, by credentials=/path or %s",
            form->family, form->variable);
    return MORTISE_OK;
}

const char *mrt_address_encrypted(bool encrypted, bool checked)
{
    if (!encrypted)
        return MRT_ENCRYPTED "no";
    return checked ? MRT_ENCRYPTED "yes, checked" : MRT_ENCRYPTED "yes, certificate not checked";
}
