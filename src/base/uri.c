/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser works in place on its own copy of the text: it cuts at ":", "?",
 * "&" and "=", and decodes values where they stand. Everything after the scheme
 * may hold a password, so no message quotes it; a parameter that nobody knows is
 * named by its key alone.
 */
#include "base/uri.h"

#include "base/error.h"
#include "base/name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_scheme_byte(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/* Cuts the scheme off, in lower case; the rest, or NULL if there is no scheme. */
static char *cut_scheme(char *text)
{
    char *c = text;
    if (!is_letter(*c))
        return NULL;
    for (; is_scheme_byte(*c); c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    if (*c != ':')
        return NULL;
    *c = '\0';
    return c + 1;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int mrt_uri_decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex_value(in[1]);
        int low = high < 0 ? -1 : hex_value(in[2]);
        if (low < 0 || high + low == 0)
            return -1;
        *out++ = (char)(high << 4 | low);
        in += 2;
    }
    *out = '\0';
    return 0;
}

/* Takes "key=value" apart into the next parameter; what is wrong with it, or NULL. */
static const char *add_parameter(struct mrt_uri *uri, char *text)
{
    char *value = strchr(text, '=');
    if (!value || value == text)
        return "a parameter is not of the form key=value";
    *value++ = '\0';
    if (mrt_uri_decode(value) < 0)
        return "a parameter's value has a malformed % escape";
    if (!mrt_text_is_clean(value, strlen(value)))
        return "a parameter's value is not plain UTF-8 text";
    if (mrt_uri_parameter(uri, text))
        return "a parameter is given twice";
    if (uri->count == MRT_URI_PARAMETERS_MAX)
        return "too many parameters";
    uri->parameters[uri->count].key = text;
    uri->parameters[uri->count].value = value;
    uri->count++;
    return NULL;
}

static const char *parse_query(struct mrt_uri *uri, char *query)
{
    const char *fault = NULL;
    for (char *next = query; next && !fault;) {
        char *parameter = next;
        next = strchr(parameter, '&');
        if (next)
            *next++ = '\0';
        fault = add_parameter(uri, parameter);
    }
    return fault;
}

int mrt_uri_parse(const char *text, struct mrt_uri *uri)
{
    size_t length = text ? strnlen(text, MRT_URI_MAX) : 0;
    uri->count = 0;
    if (length == 0)
        return mrt_error(MORTISE_EURI, "store URI is empty");
    if (length == MRT_URI_MAX)
        return mrt_error(MORTISE_EURI, "store URI is longer than %d bytes", MRT_URI_MAX - 1);
    if (!mrt_text_is_clean(text, length))
        return mrt_error(MORTISE_EURI, "store URI is not plain UTF-8 text");
    memcpy(uri->text, text, length + 1);
    char *rest = cut_scheme(uri->text);
    if (!rest)
        return mrt_error(MORTISE_EURI, "store URI has no scheme, as sqlite: in sqlite:///path");
    uri->scheme = uri->text;
    uri->rest = rest;
    char *query = strchr(rest, '?');
    if (!query)
        return MORTISE_OK;
    *query++ = '\0';
    const char *fault = *query ? parse_query(uri, query) : NULL;
    if (fault)
        return mrt_error(MORTISE_EURI, "store URI %s:...: %s", uri->scheme, fault);
    return MORTISE_OK;
}

const char *mrt_uri_parameter(const struct mrt_uri *uri, const char *key)
{
    for (size_t i = 0; i < uri->count; i++)
        if (strcmp(uri->parameters[i].key, key) == 0)
            return uri->parameters[i].value;
    return NULL;
}

int mrt_uri_port(const char *text, size_t length)
{
    int port = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        port = port > 65535 ? port : port * 10 + (text[i] - '0');
    }
    return length == 0 ? -1 : port > 65535 ? 0 : port;
}

const char *mrt_uri_choose(const char *given)
{
    if (!given || !*given)
        given = secure_getenv("MORTISE_URL");
    return given && *given ? given : "sqlite:";
}
