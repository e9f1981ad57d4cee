/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses addresses. Every part is checked whole. A malformed part is never quoted where it may be
 * a part of a password that was put in the wrong place.
 */
#include "store/kit/address.h"

#include "base/error.h"
#include "base/name.h"

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

const char *mrt_address_encrypted(bool encrypted, bool checked)
{
    if (!encrypted)
        return MRT_ENCRYPTED "no";
    return checked ? MRT_ENCRYPTED "yes, checked" : MRT_ENCRYPTED "yes, certificate not checked";
}
