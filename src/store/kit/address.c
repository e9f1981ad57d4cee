/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses addresses. Every part is checked whole. A malformed part is never quoted where it may be
 * a part of a password that was put in the wrong place.
 */
#include "store/kit/address.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

int mrt_address_duration(const struct mrt_uri *uri, const char *key, int64_t least,
                         mrt_time *duration)
{
    const struct mrt_parameter row[] = {
        {key, MRT_PARAMETER_DURATION, .least = mrt_time_from_ms(least), .most = 3600 * MRT_SECOND},
        {.key = NULL}};
    return mrt_parameters_read_known(uri, row, duration);
}

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

void mrt_host_format(const struct mrt_host *host, char text[MRT_HOST_TEXT_SIZE])
{
    bool v6 = strchr(host->name, ':');
    snprintf(text, MRT_HOST_TEXT_SIZE, "%s%s%s:%u", v6 ? "[" : "", host->name, v6 ? "]" : "",
             (unsigned)host->port);
}

const char *mrt_address_encrypted(bool encrypted, bool checked)
{
    if (!encrypted)
        return MRT_ENCRYPTED "no";
    return checked ? MRT_ENCRYPTED "yes, checked" : MRT_ENCRYPTED "yes, certificate not checked";
}
