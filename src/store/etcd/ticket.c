/* SPDX-License-Identifier: Apache-2.0 */
/* See ticket.h. A text that is not exactly of this form is not ours. */
#include "store/etcd/ticket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN "mortise1 "

/* Copies a text with blanks, controls and percent signs escaped. */
static void escape(const char *text, char *to, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (; *text && at + 4 < size; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte > ' ' && byte != '%' && byte != 127) {
            to[at++] = *text;
            continue;
        }
        to[at++] = '%';
        to[at++] = digits[byte >> 4];
        to[at++] = digits[byte & 15];
    }
    to[at] = '\0';
}

static int digit(char character)
{
    const char *digits = "0123456789abcdef";
    const char *found = character ? strchr(digits, character) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* The reverse; false: malformed, or too long. */
static bool unescape(const char *from, size_t length, char *to, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (at + 1 >= size)
            return false;
        if (from[i] != '%') {
            to[at++] = from[i];
            continue;
        }
        int high = i + 2 < length ? digit(from[i + 1]) : -1;
        int low = i + 2 < length ? digit(from[i + 2]) : -1;
        if (high < 0 || low < 0)
            return false;
        to[at++] = (char)(high << 4 | low);
        i += 2;
    }
    to[at] = '\0';
    return true;
}

size_t mrt_etcd_ticket_format(const struct mrt_etcd_ticket *ticket, char line[MRT_ETCD_LINE_SIZE])
{
    char kind[3 * MRT_ETCD_KIND_SIZE], label[3 * MRT_OWNER_SIZE + 4], id[MRT_ID_TEXT_SIZE];
    escape(ticket->kind, kind, sizeof kind);
    escape(ticket->label, label, sizeof label);
    mrt_id_format(ticket->id, id);
    return (size_t)snprintf(line, MRT_ETCD_LINE_SIZE,
                            "\n" BEGIN "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %s %s.",
                            kind, ticket->capacity, ticket->weight, ticket->revoked, ticket->since,
                            id, label);
}

/* The next word of the line and its length; NULL: there is none. */
static const char *next_word(const char **line, size_t *length)
{
    const char *word = *line;
    *length = strcspn(word, " ");
    *line = word + *length + (word[*length] == ' ');
    return *length > 0 ? word : NULL;
}

static bool next_number(const char **line, uint64_t *number)
{
    size_t length;
    char *end;
    const char *word = next_word(line, &length);
    if (!word || *word < '0' || *word > '9' || length > 20)
        return false;
    *number = strtoull(word, &end, 10);
    return end == word + length;
}

static bool next_id(const char **line, struct mrt_id *id)
{
    size_t length;
    char text[MRT_ID_TEXT_SIZE];
    const char *word = next_word(line, &length);
    if (!word || length != sizeof text - 1)
        return false;
    memcpy(text, word, length);
    text[length] = '\0';
    return mrt_id_parse(text, id);
}

bool mrt_etcd_ticket_parse(const char *bytes, size_t size, struct mrt_etcd_ticket *ticket)
{
    size_t length;
    uint64_t since = 0;
    const char *line = size > 0 ? memrchr(bytes, '\n', size) : NULL;
    memset(ticket, 0, sizeof *ticket);
    if (!line || strlen(line) != size - (size_t)(line - bytes) ||
        strncmp(line + 1, BEGIN, sizeof BEGIN - 1) != 0)
        return false;
    ticket->value_size = (size_t)(line - bytes);
    line += sizeof BEGIN;
    const char *word = next_word(&line, &length);
    if (!word || !unescape(word, length, ticket->kind, sizeof ticket->kind))
        return false;
    if (!next_number(&line, &ticket->capacity) || !next_number(&line, &ticket->weight) ||
        !next_number(&line, &ticket->revoked) || !next_number(&line, &since) ||
        !next_id(&line, &ticket->id))
        return false;
    ticket->since = (int64_t)since;
    length = strlen(line);
    return ticket->weight > 0 && ticket->weight <= ticket->capacity && length > 0 &&
           line[length - 1] == '.' &&
           unescape(line, length - 1, ticket->label, sizeof ticket->label);
}

size_t mrt_etcd_cell_format(const struct mrt_etcd_cell *cell, char line[MRT_ETCD_CELL_SIZE])
{
    char id[MRT_ID_TEXT_SIZE];
    mrt_id_format(cell->id, id);
    return (size_t)snprintf(line, MRT_ETCD_CELL_SIZE, BEGIN "cell %" PRIu64 " %s %d\n", cell->fence,
                            id, cell->there);
}

bool mrt_etcd_cell_parse(const char *bytes, size_t size, struct mrt_etcd_cell *cell)
{
    static const char begin[] = BEGIN "cell ";
    uint64_t there;
    char line[MRT_ETCD_CELL_SIZE];
    const char *end = memchr(bytes, '\n', size), *from = line;
    size_t length = end ? (size_t)(end - bytes) : 0;
    if (!end || length >= sizeof line)
        return false;
    memcpy(line, bytes, length);
    line[length] = '\0';
    if (strncmp(line, begin, sizeof begin - 1) != 0)
        return false;
    from += sizeof begin - 1;
    cell->value_offset = length + 1;
    if (!next_number(&from, &cell->fence) || !next_id(&from, &cell->id) ||
        !next_number(&from, &there))
        return false;
    cell->there = there == 1;
    return there <= 1;
}
