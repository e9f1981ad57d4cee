/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a code from the table in mortise.h, and beside it one line of
 * particulars, kept per thread until the thread's next public call.
 */
#ifndef MRT_BASE_ERROR_H
#define MRT_BASE_ERROR_H

#include "mortise.h"

#define MRT_ERROR_DETAIL_MAX 512

/* Notes the particulars and returns `error`: return mrt_error(MORTISE_EURI, "...", ...). */
__attribute__((format(printf, 2, 3))) int mrt_error(int error, const char *format, ...);

/* Forgets the particulars; each public call begins with it. */
void mrt_error_clear(void);

/* The particulars of this thread, to carry them to another one. */
void mrt_error_copy_detail(char detail[MRT_ERROR_DETAIL_MAX]);

#endif
