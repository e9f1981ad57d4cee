/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. A text that is not exactly of this form is not ours. */
#include "store/nats/text.h"

#include "store/kit/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/"

/* ------------------------------------------------------------------ tokens */

static bool is_plain(char byte)
{
    return byte && strchr(PLAIN, byte);
}

void mrt_nats_token(const char *name, size_t length, char *token, size_t size)
{
    if (length == 0)
        snprintf(token, size, "=");
    else
        mrt_line_escape(name, length, '=', is_plain, token, size);
}

bool mrt_nats_token_read(const char *token, size_t length, char *name, size_t size)
{
    return mrt_line_unescape(token, length == 1 && *token == '=' ? 0 : length, '=', name, size);
}

/* ------------------------------------------------------------------ tickets */

size_t mrt_nats_ticket_format(const struct mrt_nats_ticket *ticket, char line[MRT_NATS_LINE_SIZE])
{
    char kind[3 * MRT_NATS_KIND_SIZE + 2], label[3 * MRT_OWNER_SIZE + 2];
    char id[MRT_ID_TEXT_SIZE], session[MRT_ID_TEXT_SIZE] = "-";
    mrt_nats_token(ticket->kind, strlen(ticket->kind), kind, sizeof kind);
    mrt_nats_token(ticket->label, strlen(ticket->label), label, sizeof label);
    mrt_id_format(ticket->id, id);
    if (!mrt_id_none(ticket->session))
        mrt_id_format(ticket->session, session);
    return (size_t)snprintf(line, MRT_NATS_LINE_SIZE,
                            MRT_LINE_BEGIN "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64
                                           " %s %s %" PRIu64 " %s.\n",
                            kind, ticket->capacity, ticket->weight, ticket->revoked, ticket->since,
                            id, session, ticket->lease, label);
}

bool mrt_nats_ticket_parse(const char *bytes, size_t size, struct mrt_nats_ticket *ticket)
{
    char text[MRT_NATS_LINE_SIZE];
    size_t length;
    uint64_t since = 0;
    memset(ticket, 0, sizeof *ticket);
    const char *line =
        mrt_line_first(bytes, size, MRT_LINE_BEGIN, text, sizeof text, &ticket->value_offset);
    const char *word = line ? mrt_line_word(&line, &length) : NULL;
    if (!word || !mrt_nats_token_read(word, length, ticket->kind, sizeof ticket->kind))
        return false;
    if (!mrt_line_number(&line, &ticket->capacity) || !mrt_line_number(&line, &ticket->weight) ||
        !mrt_line_number(&line, &ticket->revoked) || !mrt_line_number(&line, &since) ||
        !mrt_line_id(&line, &ticket->id, false) || !mrt_line_id(&line, &ticket->session, true) ||
        !mrt_line_number(&line, &ticket->lease))
        return false;
    ticket->since = (int64_t)since;
    length = strlen(line);
    return ticket->weight > 0 && ticket->weight <= ticket->capacity && length > 0 &&
           line[length - 1] == '.' &&
           mrt_nats_token_read(line, length - 1, ticket->label, sizeof ticket->label);
}

/* ------------------------------------------------------------------- base64 */

static int sextet(char character)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = character ? strchr(digits, character) : NULL;
    return found ? (int)(found - digits) : -1;
}

char *mrt_nats_base64(const char *text, size_t *size)
{
    size_t length = strlen(text), at = 0;
    char *bytes = malloc(length / 4 * 3 + 4);
    uint32_t bits = 0;
    unsigned have = 0;
    while (length > 0 && text[length - 1] == '=')
        length--;
    for (size_t i = 0; bytes && i < length; i++) {
        int value = sextet(text[i]);
        if (value < 0) {
            free(bytes);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[at++] = (char)(bits >> have & 255);
        }
    }
    if (bytes)
        bytes[at] = '\0';
    *size = at;
    return bytes;
}
