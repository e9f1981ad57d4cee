/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications of the server to a session are signed. On a server with notifications any client
 * may send one, and receive those whose channel it knows.
 *
 * The channel is named by a hash of the session's identity. The key is that identity, which only
 * the tables have. A text names its ticket by the half of the ticket's identity that is not
 * the session's too. So neither channels nor texts reveal the key, of which 64 random bits stay
 * unknown. A text that somebody overhears can only be repeated, which is harmless: a place that
 * was once true stays so.
 */
#ifndef MRT_STORE_SQL_SIGN_H
#define MRT_STORE_SQL_SIGN_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>

#define MRT_SQL_CHANNEL_SIZE 33
#define MRT_SQL_SIGN_SIZE 17

/* 32 hexadecimal digits, by which a session's channel is called. */
void mrt_sql_channel(struct mrt_id session, char channel[MRT_SQL_CHANNEL_SIZE]);
/* 16 of them, which stand behind " place 1 0 0" and the like. */
void mrt_sql_sign(struct mrt_id session, struct mrt_id ticket, const char *text, size_t length,
                  char sign[MRT_SQL_SIGN_SIZE]);
/* The beginning of a text, up to " place": which ticket is meant. All of the identity of one that
   came from another session. */
void mrt_sql_ticket_name(struct mrt_id session, struct mrt_id ticket, char name[MRT_ID_TEXT_SIZE]);

#endif
