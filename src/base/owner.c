/* SPDX-License-Identifier: Apache-2.0 */
/* How a client describes itself; see owner.h. A label and a host contain no line feeds. */
#include "base/owner.h"

#include "base/name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void mrt_owner_format(const struct mrt_owner *owner, char text[MRT_OWNER_SIZE])
{
    if (owner->pid == 0)
        snprintf(text, MRT_OWNER_SIZE, "%s", owner->label);
    else
        snprintf(text, MRT_OWNER_SIZE, "%s\n%s\n%" PRId64, owner->label, owner->host, owner->pid);
}

void mrt_owner_describe(const char *label, bool tells, char text[MRT_OWNER_SIZE])
{
    struct utsname system;
    struct mrt_owner owner = {.pid = 0};
    snprintf(owner.label, sizeof owner.label, "%s", label);
    if (tells) {
        owner.pid = getpid();
        if (uname(&system) == 0 && strlen(system.nodename) < sizeof owner.host &&
            mrt_text_is_clean(system.nodename, strlen(system.nodename)))
            memcpy(owner.host, system.nodename, strlen(system.nodename) + 1);
    }
    mrt_owner_format(&owner, text);
}

/* Copies a line without its end, and gives what follows it. */
static const char *take_line(const char *text, char *line, size_t size)
{
    size_t length = strcspn(text, "\n");
    if (length < size && mrt_text_is_clean(text, length))
        snprintf(line, size, "%.*s", (int)length, text);
    return text[length] ? text + length + 1 : text + length;
}

void mrt_owner_parse(const char *text, struct mrt_owner *owner)
{
    *owner = (struct mrt_owner){.pid = 0};
    text = take_line(text, owner->label, sizeof owner->label);
    text = take_line(text, owner->host, sizeof owner->host);
    size_t digits = strspn(text, "0123456789");
    if (text[digits] != '\0' || digits > 10)
        return;
    for (size_t i = 0; i < digits; i++)
        owner->pid = owner->pid * 10 + (text[i] - '0');
}
