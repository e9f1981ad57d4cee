/* SPDX-License-Identifier: Apache-2.0 */
/* See ticket.h. A text that is not exactly of this form is not ours. */
#include "store/etcd/ticket.h"

#include "store/kit/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(char byte)
{
    unsigned char code = (unsigned char)byte;
    return code > ' ' && code != '%' && code != 127;
}

static void escape(const char *text, char *to, size_t size)
{
    mrt_line_escape(text, strlen(text), '%', is_plain, to, size);
}

static bool unescape(const char *from, size_t length, char *to, size_t size)
{
    return mrt_line_unescape(from, length, '%', to, size);
}

size_t mrt_etcd_ticket_format(const struct mrt_etcd_ticket *ticket, char line[MRT_ETCD_LINE_SIZE])
{
    char kind[3 * MRT_ETCD_KIND_SIZE], label[3 * MRT_OWNER_SIZE + 4], id[MRT_ID_TEXT_SIZE];
    escape(ticket->kind, kind, sizeof kind);
    escape(ticket->label, label, sizeof label);
    mrt_id_format(ticket->id, id);
    return (size_t)snprintf(
        line, MRT_ETCD_LINE_SIZE,
        "\n" MRT_LINE_BEGIN "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s %s.", kind,
        ticket->capacity, ticket->weight, ticket->revoked, ticket->since, id, label);
}

bool mrt_etcd_ticket_parse(const char *bytes, size_t size, struct mrt_etcd_ticket *ticket)
{
    size_t length;
    uint64_t since = 0;
    const char *line = size > 0 ? memrchr(bytes, '\n', size) : NULL;
    memset(ticket, 0, sizeof *ticket);
    if (!line || strlen(line) != size - (size_t)(line - bytes) ||
        strncmp(line + 1, MRT_LINE_BEGIN, sizeof MRT_LINE_BEGIN - 1) != 0)
        return false;
    ticket->value_size = (size_t)(line - bytes);
    line += sizeof MRT_LINE_BEGIN;
    const char *word = mrt_line_word(&line, &length);
    if (!word || !unescape(word, length, ticket->kind, sizeof ticket->kind))
        return false;
    if (!mrt_line_number(&line, &ticket->capacity) || !mrt_line_number(&line, &ticket->weight) ||
        !mrt_line_number(&line, &ticket->revoked) || !mrt_line_number(&line, &since) ||
        !mrt_line_id(&line, &ticket->id, false))
        return false;
    ticket->since = (int64_t)since;
    length = strlen(line);
    return ticket->weight > 0 && ticket->weight <= ticket->capacity && length > 0 &&
           line[length - 1] == '.' &&
           unescape(line, length - 1, ticket->label, sizeof ticket->label);
}
