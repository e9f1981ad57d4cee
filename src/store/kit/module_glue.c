/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module's side of store/module.h, compiled into each module in the place of base/error.c:
 * particulars of errors go to the host, whose threads they belong to.
 */
#include "store/kit/module_glue.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct mrt_module_host *host;

int mrt_error(int error, const char *format, ...)
{
    char text[MRT_ERROR_DETAIL_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    host->note_detail(text);
    return error;
}

void mrt_error_copy_detail(char detail[MRT_ERROR_DETAIL_MAX])
{
    host->copy_detail(detail);
}

mortise_error_kind mortise_error_kind_of(int error)
{
    return host->kind_of(error);
}

bool mrt_module_greet(const struct mrt_module_host *greeting)
{
    if (strcmp(greeting->version, MORTISE_VERSION) != 0 || greeting->shape != MRT_MODULE_SHAPE)
        return false;
    host = greeting;
    return true;
}
