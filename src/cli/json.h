/* Pieces of JSON that several subcommands write. */
#ifndef MRT_CLI_JSON_H
#define MRT_CLI_JSON_H

#include <stdint.h>
#include <stdio.h>

/* A string; what is not UTF-8 becomes U+FFFD. */
void mrt_json_string(FILE *out, const char *text);
/* An instant, milliseconds since 1970, as "2026-01-31T12:00:00.000Z"; null if it is 0. */
void mrt_json_time(FILE *out, int64_t wall_ms);

#endif
