/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets in the URLs of stores: how the command recognises them, before any parser has seen the
 * text.
 *
 * A URL may be mistyped, and may name several stores. The rule therefore errs on the side of a
 * secret: a member has one if a ":" stands before a later "@", wherever those are, or if a
 * parameter's key ends in "password". Only members whose address is a path are excused from the
 * first half.
 * A recognised URL is shown as its scheme alone.
 */
#include "cli/frame/options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const mrt_cli_secrets[] = {"MORTISE_ZK_AUTH",     "MORTISE_REDIS_AUTH",
                                       "MORTISE_ETCD_AUTH",   "MORTISE_NATS_AUTH",
                                       "MORTISE_SERVE_TOKEN", NULL};

/* Bytes of a scheme with its ":" at the beginning of `text`; 0: there is none. */
static size_t scheme_length(const char *text)
{
    size_t length =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return length > 0 && text[length] == ':' ? length + 1 : 0;
}

/* Where the next member of a list begins: behind a comma, with a scheme and "//" or a path. */
static const char *next_member(const char *text)
{
    const char *comma = text;
    while ((comma = strchr(comma, ','))) {
        size_t scheme = scheme_length(++comma);
        if (scheme > 0 && comma[scheme] == '/')
            return comma;
    }
    return text + strlen(text);
}

static bool is_path(const char *member)
{
    return strncasecmp(member, "sqlite:", 7) == 0 || strncasecmp(member, "memory:", 7) == 0;
}

static bool has_user_password(const char *member, const char *end)
{
    size_t scheme = scheme_length(member);
    const char *address = member[scheme] == '/' ? member + scheme : member; /* else "user:..." */
    const char *colon = memchr(address, ':', (size_t)(end - address));
    return !is_path(member) && colon && memchr(colon, '@', (size_t)(end - colon));
}

bool mrt_cli_has_password(const char *url)
{
    if (!url)
        return false;
    if (strcasestr(url, "password="))
        return true;
    const char *member = url, *end;
    if (strncasecmp(url, "redlock:", 8) == 0)
        member += 8;
    for (; *member; member = end) {
        end = next_member(member);
        if (has_user_password(member, end))
            return true;
    }
    return false;
}

void mrt_cli_redact(const char *url, char *text, size_t size)
{
    size_t scheme = scheme_length(url);
    if (mrt_cli_has_password(url))
        snprintf(text, size, "%.*s***", (int)scheme, url);
    else
        snprintf(text, size, "%s", url);
}
