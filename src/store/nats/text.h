/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts in subjects and messages.
 *
 * A token is a name as a part of a subject: what is neither a letter, a digit, nor one of -_/
 * stands there as =XX; no bytes at all are "=".
 *
 * The message of a ticket, and of its changes, is a line of ours and the candidate's value:
 *
 *   mortise1 KIND CAPACITY WEIGHT REVOKED SINCE ID SESSION LEASE LABEL.\n
 *
 * KIND and LABEL as tokens; SESSION "-" of a ticket that is detached; LEASE of the session, in ms.
 * The message "gone" or "gone SESSION" takes a ticket's place that has left.
 */
#ifndef MRT_STORE_NATS_TEXT_H
#define MRT_STORE_NATS_TEXT_H

#include "base/id.h"
#include "base/name.h"
#include "base/owner.h"

#include <stddef.h>

#define MRT_NATS_BASE_SIZE (3 * MRT_NAMESPACE_MAX + 64)
#define MRT_NATS_TOKEN_SIZE (3 * MRT_FULL_NAME_SIZE + 2)
#define MRT_NATS_SUBJECT_SIZE (MRT_NATS_BASE_SIZE + MRT_NATS_TOKEN_SIZE + 64)
#define MRT_NATS_KIND_SIZE 33
#define MRT_NATS_LINE_SIZE (256 + 3 * (MRT_NATS_KIND_SIZE + MRT_OWNER_SIZE))
#define MRT_NATS_GONE "gone"

struct mrt_nats_ticket {
    char kind[MRT_NATS_KIND_SIZE];
    uint64_t capacity, weight, revoked;
    int64_t since; /* wall clock, in ms */
    struct mrt_id id, session;
    uint64_t lease;
    char label[MRT_OWNER_SIZE];
    size_t value_offset;
};

void mrt_nats_token(const char *name, size_t length, char *token, size_t size);
/* The reverse; false: malformed, or too long. */
bool mrt_nats_token_read(const char *token, size_t length, char *name, size_t size);

size_t mrt_nats_ticket_format(const struct mrt_nats_ticket *ticket, char line[MRT_NATS_LINE_SIZE]);
/* False: it is none of ours. */
bool mrt_nats_ticket_parse(const char *bytes, size_t size, struct mrt_nats_ticket *ticket);

/* Decodes base64 into new memory; NULL: malformed, or no memory. */
char *mrt_nats_base64(const char *text, size_t *size);

#endif
