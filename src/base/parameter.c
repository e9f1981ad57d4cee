/* SPDX-License-Identifier: Apache-2.0 */
/* Each value is checked whole before its member is written. */
#include "base/parameter.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SECONDS_MAX 999999999 /* so that their nanoseconds fit */

int64_t mrt_parse_number(const char *text, size_t length, int64_t most)
{
    int64_t value = 0;
    if (length == 0)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value) || value > most)
            return -1;
    }
    return value;
}

mrt_time mrt_parse_duration(const char *text, size_t length)
{
    size_t digits = strspn(text, "0123456789");
    if (digits >= length)
        return -1;
    const char *unit = text + digits;
    mrt_time number = mrt_parse_number(text, digits, SECONDS_MAX);
    if (number >= 0 && length - digits == 1 && *unit == 's')
        return number * MRT_SECOND;
    return number >= 0 && length - digits == 2 && memcmp(unit, "ms", 2) == 0
               ? number * MRT_MILLISECOND
               : -1;
}

static int read_duration(const struct mrt_parameter *row, const char *text, mrt_time *duration)
{
    mrt_time value = mrt_parse_duration(text, strlen(text));
    if (value < row->least || value > row->most)
        return mrt_error(MORTISE_EURI,
                         "%s=%.32s is not a duration from %lldms to %llds, such as 10s or 500ms",
                         row->key, text, (long long)(row->least / MRT_MILLISECOND),
                         (long long)(row->most / MRT_SECOND));
    *duration = value;
    return MORTISE_OK;
}

static int read_number(const struct mrt_parameter *row, const char *text, uint64_t *number)
{
    int64_t value = mrt_parse_number(text, strlen(text), row->most);
    if (value < row->least)
        return mrt_error(MORTISE_EURI, "%s=%.32s is not a number from %lld to %lld", row->key, text,
                         (long long)row->least, (long long)row->most);
    *number = (uint64_t)value;
    return MORTISE_OK;
}

/* "off, required or verify" */
static void write_choice(const char *const *words, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; words[i] && length < size; i++) {
        const char *gap = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        length += (size_t)snprintf(text + length, size - length, "%s%s", gap, words[i]);
    }
}

/* The index of the parameter's word in `words`; -1, with particulars: it is not among them. */
static int find_word(const char *key, const char *text, const char *const *words)
{
    char choice[128] = "";
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    write_choice(words, choice, sizeof choice);
    mrt_error(MORTISE_EURI, "%s=%.32s is not %s", key, text, choice);
    return -1;
}

static int read_word(const struct mrt_parameter *row, const char *text, void *member)
{
    int index = find_word(row->key, text, row->words);
    if (index < 0)
        return MORTISE_EURI;
    memcpy(member, &index, sizeof index); /* an enum has the size of an int */
    return MORTISE_OK;
}

static int read_flag(const struct mrt_parameter *row, const char *text, bool *flag)
{
    static const char *const words[] = {"yes", "no", NULL};
    int index = find_word(row->key, text, words);
    if (index < 0)
        return MORTISE_EURI;
    *flag = index == 0;
    return MORTISE_OK;
}

static int read_text(const struct mrt_parameter *row, const char *text, char *member)
{
    size_t length = strlen(text);
    if (length >= (size_t)row->most)
        return mrt_error(MORTISE_EURI, "%s= is longer than %lld bytes", row->key,
                         (long long)row->most - 1);
    memcpy(member, text, length + 1);
    return MORTISE_OK;
}

static int read_row(const struct mrt_parameter *row, const char *text, void *member)
{
    switch (row->type) {
    case MRT_PARAMETER_DURATION:
        return read_duration(row, text, member);
    case MRT_PARAMETER_NUMBER:
        return read_number(row, text, member);
    case MRT_PARAMETER_WORD:
        return read_word(row, text, member);
    case MRT_PARAMETER_FLAG:
        return read_flag(row, text, member);
    case MRT_PARAMETER_TEXT:
        return read_text(row, text, member);
    default:
        return MORTISE_OK;
    }
}

int mrt_parameters_read_known(const struct mrt_uri *uri, const struct mrt_parameter *rows,
                              void *members)
{
    int error = MORTISE_OK;
    for (; rows->key && error == MORTISE_OK; rows++) {
        const char *text = mrt_uri_parameter(uri, rows->key);
        if (text)
            error = read_row(rows, text, (char *)members + rows->offset);
    }
    return error;
}

static bool is_known(const char *key, const struct mrt_parameter *rows)
{
    static const char *const common[] = {MRT_URI_COMMON};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (strcmp(key, common[i]) == 0)
            return true;
    while (rows->key && strcmp(key, rows->key) != 0)
        rows++;
    return rows->key;
}

int mrt_parameters_read(const struct mrt_uri *uri, const struct mrt_parameter *rows, void *members)
{
    for (size_t i = 0; i < uri->count; i++)
        if (!is_known(uri->parameters[i].key, rows))
            return mrt_error(MORTISE_EURI, "store URI %s:...: unknown parameter \"%.64s\"",
                             uri->scheme, uri->parameters[i].key);
    return mrt_parameters_read_known(uri, rows, members);
}
