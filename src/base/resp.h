/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the agent's protocol: RESP2, the framing of Redis, for which every language has a
 * client. Both directions are bounded, so no peer can make the agent reserve memory.
 *
 * A command is an array of bulk strings ("*2\r\n$4\r\nHELD\r\n$1\r\na\r\n"), or a line of words
 * parted by blanks ("HELD a\r\n"), for people and scripts. It has at most MRT_RESP_WORDS_MAX words
 * and MRT_RESP_SIZE_MAX bytes, its framing included; both limits are checked as soon as the lengths
 * are announced. Words are slices of the input: nothing is copied or allocated.
 *
 * Threads: none; these are functions of their arguments.
 */
#ifndef MRT_BASE_RESP_H
#define MRT_BASE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRT_RESP_WORDS_MAX 16
#define MRT_RESP_SIZE_MAX 8192

struct mrt_resp_word {
    const char *text; /* of `size` bytes, of any value; no NUL is behind them */
    size_t size;
};

struct mrt_resp_command {
    struct mrt_resp_word words[MRT_RESP_WORDS_MAX];
    size_t count; /* 0: an empty line */
};

enum mrt_resp_result {
    MRT_RESP_COMMAND,   /* a whole command */
    MRT_RESP_PART,      /* more bytes are needed */
    MRT_RESP_NOT_FRAMED /* no such frame begins so: nothing behind it can be understood */
};

/* Reads the command at the beginning of `input`. *used: its bytes, if it is whole. *wrong: what is
   wrong with one that is MRT_RESP_NOT_FRAMED, a few words. */
enum mrt_resp_result mrt_resp_read(const char *input, size_t size, struct mrt_resp_command *command,
                                   size_t *used, const char **wrong);

/* Whether the word is this text; letters of either case are the same. `upper` is in upper case. */
bool mrt_resp_is(const struct mrt_resp_word *word, const char *upper);
/* The word as a number from `least` to `most`: decimal digits and at most a "-" before them. */
bool mrt_resp_number(const struct mrt_resp_word *word, int64_t least, int64_t most,
                     int64_t *number);

#endif
