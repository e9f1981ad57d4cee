/* SPDX-License-Identifier: Apache-2.0 */
/* The error table's texts, and the particulars of the last error of each thread. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct error_row {
    int code;
    mortise_error_kind kind;
    const char *name;
    const char *text;
};

static const struct error_row table[] = {
#define ERROR_ROW(name, number, kind, text) {number, MORTISE_KIND_##kind, #name, text},
    MORTISE_ERROR_MAP(ERROR_ROW)
#undef ERROR_ROW
};

static _Thread_local char last_detail[MRT_ERROR_DETAIL_MAX];

static const struct error_row *find(int error)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == error)
            return &table[i];
    return NULL;
}

const char *mortise_version(void)
{
    return MORTISE_VERSION;
}

const char *mortise_error_text(int error)
{
    const struct error_row *row = find(error);
    if (row)
        return row->text;
    return error == MORTISE_OK ? "success" : "unknown error";
}

const char *mortise_error_name(int error)
{
    const struct error_row *row = find(error);
    if (row)
        return row->name;
    return error == MORTISE_OK ? "OK" : "unknown";
}

mortise_error_kind mortise_error_kind_of(int error)
{
    const struct error_row *row = find(error);
    if (row)
        return row->kind;
    return error == MORTISE_OK ? MORTISE_KIND_NONE : MORTISE_KIND_INTERNAL;
}

const char *mortise_error_detail(void)
{
    return last_detail;
}

int mrt_error(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_detail, sizeof last_detail, format, arguments);
    va_end(arguments);
    return error;
}

void mrt_error_clear(void)
{
    last_detail[0] = '\0';
}

void mrt_error_copy_detail(char detail[MRT_ERROR_DETAIL_MAX])
{
    memcpy(detail, last_detail, MRT_ERROR_DETAIL_MAX);
}
