/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address counts as open to others unless it certainly belongs to the loopback interface. A
 * needless warning is read and dismissed; a missing warning is never noticed.
 */
#include "base/listen.h"

#include <stddef.h>
#include <string.h>

#define PARTS ", "

static bool is(const char *text, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(text, wanted, length) == 0;
}

static bool is_loopback(const char *text, size_t length)
{
    return (length > 4 && memcmp(text, "127.", 4) == 0 && strspn(text, "0123456789.") >= length) ||
           is(text, length, "::1") || is(text, length, "localhost");
}

bool mrt_listens_for_others(const char *addresses)
{
    const char *text = addresses + strspn(addresses, PARTS);
    while (*text) {
        text += *text == '-';
        size_t length = strcspn(text, PARTS);
        if (!is_loopback(text, length))
            return true;
        text += length;
        text += strspn(text, PARTS);
    }
    return false;
}
