/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON that several subcommands write. */
#ifndef MRT_CLI_FRAME_JSON_H
#define MRT_CLI_FRAME_JSON_H

#include <inttypes.h>
#include <stdio.h>

/* A fence, given twice: as a number, and as text, since jq and JavaScript hold 53 bits of one. */
#define MRT_JSON_FENCE "\"fence\": %" PRIu64 ", \"fence_text\": \"%" PRIu64 "\""

/* A string; what is not UTF-8 becomes U+FFFD. */
void mrt_json_string(FILE *out, const char *text);
/* An instant, milliseconds since 1970, as "2026-01-31T12:00:00.000Z"; null if it is 0. */
void mrt_json_time(FILE *out, int64_t wall_ms);

#endif
