/* SPDX-License-Identifier: Apache-2.0 */
/* Two calls that C libraries spell in different ways: glibc and musl. Any thread. */
#ifndef MRT_BASE_SYSTEM_H
#define MRT_BASE_SYSTEM_H

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The text of an errno, in `text` or static. */
static inline const char *mrt_system_text(int code, char *text, size_t size)
{
#ifdef __GLIBC__
    return strerror_r(code, text, size);
#else
    return strerror_r(code, text, size) == 0 ? text : "unknown error";
#endif
}

/* close_range(2), which musl 1.2.3 does not have. */
static inline int mrt_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

#endif
