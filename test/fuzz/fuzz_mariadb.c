/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a MariaDB server, through its client library. */
#include "hostile.h"

const char fuzz_uri[] = "mysql://mortise@127.0.0.1:%u/mortise";
