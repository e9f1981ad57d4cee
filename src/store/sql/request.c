/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, and the values of their parameters. A statement names its parameters by letters:
 * LETTERS.
 */
#include "store/sql/request.h"
#include "store/sql/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mrt_sql_request *mrt_sql_request_new(enum mrt_sql_kind kind)
{
    struct mrt_sql_request *request = calloc(1, sizeof *request);
    if (request)
        request->kind = kind;
    return request;
}

void mrt_sql_request_free(struct mrt_sql_request *request)
{
    if (request) {
        mrt_sql_rows_free(request->rows);
        free(request->value);
        free(request->removal);
    }
    free(request);
}

bool mrt_sql_removes(const struct mrt_sql_request *request)
{
    return request->kind == MRT_SQL_DO_REMOVE || request->kind == MRT_SQL_DO_REMOVE_LAST ||
           request->kind == MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY;
}

bool mrt_sql_goes_through(const struct mrt_sql_request *request)
{
    return mrt_sql_removes(request) || request->kind == MRT_SQL_DO_RENEW ||
           request->kind == mrt_native_kind(MRT_SQL_DO_NAMED, MRT_NATIVE_LEAVE) ||
           request->kind == mrt_native_kind(MRT_SQL_DO_ROW, MRT_NATIVE_LEAVE);
}

/* ------------------------------------------------------------------ values */

/* Whether the name is an integer of 64 bits, in its one canonical form. */
static bool is_number(const char *name)
{
    char text[24];
    if (!name)
        return false;
    snprintf(text, sizeof text, "%lld", strtoll(name, NULL, 10));
    return strcmp(text, name) == 0;
}

static const char *number_named(const struct mrt_sql_request *request)
{
    const char *name = request->command.queue ? request->command.queue : request->name;
    return is_number(name) ? name : NULL;
}

mrt_time mrt_sql_wait_limit(const struct mrt_sql_store *store)
{
    mrt_time limit = 10 * store->address.lease;
    return limit > MRT_SECOND ? limit : MRT_SECOND;
}

static uint64_t at_least_one(mrt_time time)
{
    return time > 0 ? (uint64_t)time : 1;
}

/* X(letter, type, value); one that stands here twice is not compiled. */
#define LETTERS(X)                                                                             \
    X('s', id, &command->session)                                                              \
    X('t', id, &command->ticket) /* or a write's or observer's own */                          \
    X('b', id, &command->detached_id)                                                          \
    X('q', text, command->queue) /* or cell */                                                 \
    X('k', text, command->kind)                                                                \
    X('n', text, request->name) /* NULL: no text; MRT_SQL_DO_LIST uses this and the next */    \
    X('p', text, request->prefix)                                                              \
    X('a', text, store->label)                                                                 \
    X('d', text, store->address.schema)                                                        \
    X('O', text, store->address.owner)                                                         \
    X('v', bytes, command)                                                                     \
    X('w', number, command->weight)                                                            \
    X('c', number, command->capacity)                                                          \
    X('y', number, command->try_only)                                                          \
    X('m', number, command->queue_max)                                                         \
    X('g', number, command->linger)                                                            \
    X('H', number, request->removal != NULL && !store->pooled)                                 \
    X('Y', number, request->flight)                                                            \
    X('P', number, store->told)                                                                \
    X('S', number, store->address.synchronous)                                                 \
    X('D', number, (uint64_t)store->removal_count)                                             \
    X('z', number, (uint64_t)((command->delay + MRT_MICROSECOND - 1) / MRT_MICROSECOND))       \
    X('F', number, command->fence >> MRT_SQL_FENCE_BITS)                                       \
    X('e', number, store->epoch)                                                               \
    X('l', number, (uint64_t)(lease / MRT_MICROSECOND))                                        \
    X('o', number, request->number) /* of MRT_SQL_DO_REVOKE and _BREAK */                      \
    X('r', number, command->version)                                                           \
    X('f', number, command->fence)                                                             \
    X('i', number, (uint64_t)(lease / (4 * MRT_MILLISECOND))) /* limit of a statement, ms */   \
    X('h', number, at_least_one(lease / (3 * MRT_SECOND)))    /* keepalive, s */               \
    X('u', number, 1)                                         /* a second */                   \
    /* Of forms: whether it is exclusive; the number that a queue's name is, or NULL; how long \
       the server keeps a silent connection, and how long a wait lasts at most, s. */          \
    X('X', number, command->weight == command->capacity)                                       \
    X('N', numeral, number_named(request))                                                     \
    X('J', number, (uint64_t)((lease + MRT_SECOND - 1) / MRT_SECOND + 1))                      \
    X('Z', number, (uint64_t)(mrt_sql_wait_limit(store) / MRT_SECOND))

static void put_id(struct mrt_sql_value *value, const struct mrt_id *id)
{
    value->type = MRT_SQL_ID;
    mrt_id_format(*id, value->text);
}

static void put_text(struct mrt_sql_value *value, const char *text)
{
    value->type = MRT_SQL_TEXT;
    value->data = text;
}

static void put_bytes(struct mrt_sql_value *value, const struct mrt_command *command)
{
    value->type = MRT_SQL_BYTES;
    value->data = command->value;
    value->size = command->value_size;
}

static void put_number(struct mrt_sql_value *value, uint64_t number)
{
    value->type = MRT_SQL_NUMBER;
    snprintf(value->text, sizeof value->text, "%" PRIu64, number);
}

static void put_numeral(struct mrt_sql_value *value, const char *numeral)
{
    value->type = MRT_SQL_NUMBER;
    value->data = numeral;
}

void mrt_sql_value(const struct mrt_sql_store *store, const struct mrt_sql_request *request,
                   char letter, struct mrt_sql_value *value)
{
    const struct mrt_command *command = &request->command;
    mrt_time lease = store->address.lease;
    value->data = value->text;
    switch (letter) {
#define LETTER(letter, type, is) \
    case letter:                 \
        put_##type(value, is);   \
        break;
        LETTERS(LETTER)
#undef LETTER
    default:
        value->data = NULL; /* no statement has it */
    }
    if (!value->data)
        value->type = MRT_SQL_NULL;
}

/* ------------------------------------------------------------------ answers */

bool mrt_sql_has_row(const struct mrt_sql_request *request)
{
    return request->rows && mrt_sql_rows_count(request->rows) > 0;
}

const char *mrt_sql_text(const struct mrt_sql_request *request, int column)
{
    return mrt_sql_has_row(request) ? mrt_sql_rows_text(request->rows, 0, column) : NULL;
}

bool mrt_sql_is_null(const struct mrt_sql_request *request, int column)
{
    return !mrt_sql_text(request, column);
}

int64_t mrt_sql_number(const struct mrt_sql_request *request, int column)
{
    const char *text = mrt_sql_text(request, column);
    if (!text)
        return !request->rows && column == 0 ? request->affected : 0;
    return *text == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
}

/* Of either case. */
static unsigned digit(char letter)
{
    return (unsigned)(letter > '9' ? letter - 'A' + 10 : letter - '0') & 15;
}

bool mrt_sql_take_value(struct mrt_sql_request *request, int column)
{
    const char *text = mrt_sql_text(request, column);
    size_t size = text ? strlen(text) / 2 : 0;
    free(request->value);
    request->value = malloc(MORTISE_VALUE_MAX);
    if (!request->value)
        return false;
    if (size > MORTISE_VALUE_MAX)
        size = 0; /* by somebody else's hand */
    for (size_t i = 0; i < size; i++)
        request->value[i] = (unsigned char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    request->event.value = request->value;
    request->event.value_size = size;
    return true;
}

void mrt_sql_first_line(const char *message, char *line, size_t size)
{
    size_t length = strcspn(message, "\n");
    snprintf(line, size, "%.*s", (int)(length < 220 ? length : 220), message);
}
