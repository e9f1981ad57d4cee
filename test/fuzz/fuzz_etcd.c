/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of etcd's gateway (hostile_rest.c). */
#include "hostile.h"

const char fuzz_uri[] = "etcd://127.0.0.1:%u";
