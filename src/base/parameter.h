/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of store URIs, as tables: a row names a parameter, the values that it may have,
 * and the member of a struct that takes it. So all stores refuse a value in the same words: the
 * key, the value, and what it may be.
 *
 * A parameter that the URI does not have leaves its member as it is: the caller sets defaults
 * first.
 */
#ifndef MRT_BASE_PARAMETER_H
#define MRT_BASE_PARAMETER_H

#include "base/time.h"
#include "base/uri.h"

#include <stddef.h>
#include <stdint.h>

enum mrt_parameter_type {
    MRT_PARAMETER_OTHER, /* 0, for a row that has a key alone: the store reads the value itself */
    MRT_PARAMETER_DURATION, /* mrt_time: 10s or 500ms, from `least` to `most` */
    MRT_PARAMETER_NUMBER,   /* uint64_t: digits alone, from `least` to `most` */
    MRT_PARAMETER_WORD,     /* enum or int: the index of one of `words` */
    MRT_PARAMETER_FLAG,     /* bool: yes or no */
    MRT_PARAMETER_TEXT      /* char[]: less than `most` bytes */
};

struct mrt_parameter {
    const char *key; /* NULL: the table's end */
    enum mrt_parameter_type type;
    size_t offset; /* of the member: offsetof(struct, member) */
    int64_t least, most;
    const char *const *words; /* NULL-ended */
};

/* Reads the parameters of `rows` into a struct, and refuses those that are neither in `rows` nor in
   MRT_URI_COMMON. 0, or MORTISE_EURI with its particulars. */
int mrt_parameters_read(const struct mrt_uri *uri, const struct mrt_parameter *rows, void *members);
/* The same, but leaves parameters that are not in `rows` to the caller. */
int mrt_parameters_read_known(const struct mrt_uri *uri, const struct mrt_parameter *rows,
                              void *members);

/* A duration such as 10s or 500ms in a text of this length; -1: the text is none. */
mrt_time mrt_parse_duration(const char *text, size_t length);
/* A number of digits alone, at most `most`; -1: the text is none. */
int64_t mrt_parse_number(const char *text, size_t length, int64_t most);

#endif
