/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a PostgreSQL server, through libpq. */
#include "hostile.h"

const char fuzz_uri[] = "postgresql://mortise@127.0.0.1:%u/mortise?sslmode=disable";
