/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers it must be preceded by, in their order. */
#ifndef TEST_CMOCKA_ALL_H
#define TEST_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
