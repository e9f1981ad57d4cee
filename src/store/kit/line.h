/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of words, by which stores whose servers keep plain bytes note what they know of a ticket or
 * of a cell. A text that may have a blank stands there as a word with escapes: a mark and two
 * hexadecimal digits for each byte that is not plain.
 */
#ifndef MRT_STORE_KIT_LINE_H
#define MRT_STORE_KIT_LINE_H

#include "base/id.h"

#include <stddef.h>

#define MRT_LINE_BEGIN "mortise1 "

/* Copies a text with escapes; what does not fit is cut. */
void mrt_line_escape(const char *text, size_t length, char mark, bool (*is_plain)(char byte),
                     char *to, size_t size);
/* The reverse; false: malformed, or too long. */
bool mrt_line_unescape(const char *from, size_t length, char mark, char *to, size_t size);

/* The next word of a line, which goes on behind it, and the word's length; NULL: there is none. */
const char *mrt_line_word(const char **line, size_t *length);
bool mrt_line_number(const char **line, uint64_t *number);
/* An identity; "-" is none, if there may be none. */
bool mrt_line_id(const char **line, struct mrt_id *id, bool or_none);
/* Copies the first line of these bytes: what follows `begin` in it, and where the next line begins.
   NULL: it begins otherwise, or is too long. */
const char *mrt_line_first(const char *bytes, size_t size, const char *begin, char *line,
                           size_t room, size_t *offset);

#endif
