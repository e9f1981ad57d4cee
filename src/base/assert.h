/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions that stay on in release. They state what the code's own logic
 * guarantees; nothing a user or a server can send may trip one.
 */
#ifndef MRT_BASE_ASSERT_H
#define MRT_BASE_ASSERT_H

#define MRT_ASSERT(condition)                     \
    (__builtin_expect(!!(condition), 1) ? (void)0 \
                                        : mrt_assert_failed(__FILE__, __LINE__, #condition))

/* Writes one line to standard error and aborts. */
_Noreturn void mrt_assert_failed(const char *file, int line, const char *condition);

#endif
