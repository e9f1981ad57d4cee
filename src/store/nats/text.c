/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. A text that is not exactly of this form is not ours. */
#include "store/nats/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN "mortise1 "
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/"

/* ------------------------------------------------------------------ tokens */

void mrt_nats_token(const char *name, size_t length, char *token, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < length && at + 4 < size; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte && strchr(PLAIN, byte)) {
            token[at++] = name[i];
            continue;
        }
        token[at++] = '=';
        token[at++] = digits[byte >> 4];
        token[at++] = digits[byte & 15];
    }
    if (length == 0)
        token[at++] = '=';
    token[at] = '\0';
}

static int digit(char character)
{
    const char *digits = "0123456789abcdef";
    const char *found = character ? strchr(digits, character) : NULL;
    return found ? (int)(found - digits) : -1;
}

bool mrt_nats_token_read(const char *token, size_t length, char *name, size_t size)
{
    size_t at = 0;
    if (length == 1 && *token == '=')
        length = 0;
    for (size_t i = 0; i < length; i++) {
        if (at + 1 >= size)
            return false;
        if (token[i] != '=') {
            name[at++] = token[i];
            continue;
        }
        int high = i + 2 < length ? digit(token[i + 1]) : -1;
        int low = i + 2 < length ? digit(token[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return false;
        name[at++] = (char)(high << 4 | low);
        i += 2;
    }
    name[at] = '\0';
    return true;
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
                            BEGIN "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64
                                  " %s %s %" PRIu64 " %s.\n",
                            kind, ticket->capacity, ticket->weight, ticket->revoked, ticket->since,
                            id, session, ticket->lease, label);
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

/* An identity; `-` is none, if there may be none. */
static bool next_id(const char **line, struct mrt_id *id, bool or_none)
{
    size_t length;
    char text[MRT_ID_TEXT_SIZE];
    const char *word = next_word(line, &length);
    *id = (struct mrt_id){0, 0};
    if (word && length == 1 && *word == '-' && or_none)
        return true;
    if (!word || length != sizeof text - 1)
        return false;
    memcpy(text, word, length);
    text[length] = '\0';
    return mrt_id_parse(text, id);
}

/* The first line, without what begins it; NULL: it begins otherwise, or is too long. */
static const char *first_line(const char *bytes, size_t size, const char *begin, char *line,
                              size_t room, size_t *offset)
{
    const char *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    size_t length = end ? (size_t)(end - bytes) : room;
    if (length >= room)
        return NULL;
    memcpy(line, bytes, length);
    line[length] = '\0';
    *offset = length + 1;
    bool fits = strlen(line) == length && strncmp(line, begin, strlen(begin)) == 0;
    return fits ? line + strlen(begin) : NULL;
}

bool mrt_nats_ticket_parse(const char *bytes, size_t size, struct mrt_nats_ticket *ticket)
{
    char text[MRT_NATS_LINE_SIZE];
    size_t length;
    uint64_t since = 0;
    memset(ticket, 0, sizeof *ticket);
    const char *line = first_line(bytes, size, BEGIN, text, sizeof text, &ticket->value_offset);
    const char *word = line ? next_word(&line, &length) : NULL;
    if (!word || !mrt_nats_token_read(word, length, ticket->kind, sizeof ticket->kind))
        return false;
    if (!next_number(&line, &ticket->capacity) || !next_number(&line, &ticket->weight) ||
        !next_number(&line, &ticket->revoked) || !next_number(&line, &since) ||
        !next_id(&line, &ticket->id, false) || !next_id(&line, &ticket->session, true) ||
        !next_number(&line, &ticket->lease))
        return false;
    ticket->since = (int64_t)since;
    length = strlen(line);
    return ticket->weight > 0 && ticket->weight <= ticket->capacity && length > 0 &&
           line[length - 1] == '.' &&
           mrt_nats_token_read(line, length - 1, ticket->label, sizeof ticket->label);
}

/* -------------------------------------------------------------------- cells */

size_t mrt_nats_cell_format(const struct mrt_nats_cell *cell, char line[MRT_NATS_CELL_SIZE])
{
    char id[MRT_ID_TEXT_SIZE];
    mrt_id_format(cell->id, id);
    return (size_t)snprintf(line, MRT_NATS_CELL_SIZE, BEGIN "cell %" PRIu64 " %s %d\n", cell->fence,
                            id, cell->there);
}

bool mrt_nats_cell_parse(const char *bytes, size_t size, struct mrt_nats_cell *cell)
{
    uint64_t there;
    char text[MRT_NATS_CELL_SIZE];
    const char *line =
        first_line(bytes, size, BEGIN "cell ", text, sizeof text, &cell->value_offset);
    if (!line || !next_number(&line, &cell->fence) || !next_id(&line, &cell->id, false) ||
        !next_number(&line, &there))
        return false;
    cell->there = there == 1;
    return there <= 1;
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
