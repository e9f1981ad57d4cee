/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies on their way to a client of the agent: bytes that grow as replies are added, up to a
 * limit. A reply that finds no room is left out, and `overrun` says so from then on.
 */
#ifndef MRT_BASE_REPLY_H
#define MRT_BASE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MRT_REPLY_SIZE_MAX (UINT64_C(1) << 20) /* of one connection, unread */

struct mrt_reply {
    char *bytes; /* malloc'ed; NULL: none so far */
    size_t size, capacity;
    bool overrun;
};

void mrt_reply_free(struct mrt_reply *reply);
/* Takes the first bytes off, which have been sent. */
void mrt_reply_sent(struct mrt_reply *reply, size_t size);
void mrt_reply_bytes(struct mrt_reply *reply, const char *bytes, size_t size);
/* "+TEXT" and "-TEXT": one line; control bytes in it become "?". */
void mrt_reply_simple(struct mrt_reply *reply, const char *text);
__attribute__((format(printf, 2, 3))) void mrt_reply_error(struct mrt_reply *reply,
                                                           const char *format, ...);
void mrt_reply_integer(struct mrt_reply *reply, int64_t number);
void mrt_reply_bulk(struct mrt_reply *reply, const char *bytes, size_t size);
/* The head of an array; so many replies follow. */
void mrt_reply_array(struct mrt_reply *reply, size_t count);

#endif
