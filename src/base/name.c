/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks names. One walk over the bytes finds the first that a name may not contain. The
 * refusal quotes the name with everything unprintable escaped, so the message is always one
 * line.
 */
#include "base/name.h"

#include "base/error.h"
#include "mortise.h"

#include <stdint.h>
#include <string.h>

#define QUOTED_BYTES 48 /* how much of a refused name is shown */

/* Length of the well-formed UTF-8 sequence at `text`, and its code point; 0 if it is none. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 4;
    if (length == 4 && first >> 3 != 30)
        return 0;
    if (length > left)
        return 0;
    uint32_t value = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        value = value << 6 | (text[i] & 0x3fu);
    }
    if (length > 1 && value < smallest[length])
        return 0;
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *point = value;
    return length;
}

static const char *const not_utf8 = "not UTF-8";
static const char *const control = "control character";

/* Offset of the first fault and what it is; `length` and NULL if there is none. */
static size_t find_fault(const char *text, size_t length, const char **fault)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t at = 0;
    *fault = NULL;
    while (at < length) {
        uint32_t point = 0;
        size_t step = decode(bytes + at, length - at, &point);
        if (step == 0)
            *fault = not_utf8;
        else if (point < 0x20 || (point >= 0x7f && point < 0xa0))
            *fault = control;
        if (*fault)
            return at;
        at += step;
    }
    return length;
}

bool mrt_text_is_clean(const char *text, size_t length)
{
    const char *fault;
    find_fault(text, length, &fault);
    return !fault;
}

/* The beginning of `text`, everything but printable ASCII as \xNN. */
static void quote(const char *text, char quoted[QUOTED_BYTES * 4 + 4])
{
    static const char digits[] = "0123456789abcdef";
    char *end = quoted;
    size_t i = 0;
    for (; text[i] && i < QUOTED_BYTES; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte < 0x7f) {
            *end++ = text[i];
            continue;
        }
        *end++ = '\\';
        *end++ = 'x';
        *end++ = digits[byte >> 4];
        *end++ = digits[byte & 15];
    }
    memcpy(end, text[i] ? "..." : "", text[i] ? 4 : 1);
}

static int check(const char *what, const char *text, size_t limit, int error)
{
    char quoted[QUOTED_BYTES * 4 + 4];
    size_t length = strnlen(text, limit + 1);
    if (length > limit) {
        quote(text, quoted);
        return mrt_error(error, "%s \"%s\" is longer than %zu bytes", what, quoted, limit);
    }
    const char *fault;
    size_t at = find_fault(text, length, &fault);
    if (!fault)
        return MORTISE_OK;
    quote(text, quoted);
    return mrt_error(error, "%s \"%s\": %s at byte %zu", what, quoted, fault, at + 1);
}

int mrt_name_check(const char *name)
{
    if (!name || !*name)
        return mrt_error(MORTISE_ENAME, "lock name is empty");
    return check("lock name", name, MORTISE_NAME_MAX, MORTISE_ENAME);
}

int mrt_label_check(const char *label)
{
    if (!label)
        return MORTISE_OK;
    return check("label", label, MORTISE_LABEL_MAX, MORTISE_EINVALID);
}

int mrt_namespace_prefix(const char *space, char prefix[MRT_NAMESPACE_MAX + 2])
{
    space = space ? space : "mortise";
    size_t length = strlen(space);
    *prefix = '\0';
    if (length == 0)
        return MORTISE_OK;
    /* A namespace with a "/" would share locks with a shorter one: "a/b" and "c" with "a" and
     * "b/c". */
    if (length > MRT_NAMESPACE_MAX || !mrt_text_is_clean(space, length) || strchr(space, '/'))
        return mrt_error(MORTISE_EURI,
                         "the namespace must be UTF-8 without control characters and \"/\", of at "
                         "most %d bytes",
                         MRT_NAMESPACE_MAX);
    memcpy(prefix, space, length);
    memcpy(prefix + length, "/", 2);
    return MORTISE_OK;
}
