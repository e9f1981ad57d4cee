/* SPDX-License-Identifier: Apache-2.0 */
/* Signs and names by SHA-256. The server has the same function. */
#include "store/sql/sign.h"

#include "store/kit/sha256.h"

#include <string.h>

#define TEXT_MAX 96 /* with two identities, and what the function adds, two blocks */

static unsigned char *put_id(unsigned char *at, struct mrt_id id)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (unsigned char)(id.high >> (56 - 8 * i));
        at[8 + i] = (unsigned char)(id.low >> (56 - 8 * i));
    }
    return at + 16;
}

void mrt_sql_channel(struct mrt_id session, char channel[MRT_SQL_CHANNEL_SIZE])
{
    unsigned char bytes[16];
    put_id(bytes, session);
    mrt_sha256(bytes, sizeof bytes, channel, MRT_SQL_CHANNEL_SIZE - 1);
}

void mrt_sql_sign(struct mrt_id session, struct mrt_id ticket, const char *text, size_t length,
                  char sign[MRT_SQL_SIGN_SIZE])
{
    unsigned char bytes[32 + TEXT_MAX];
    unsigned char *at = put_id(put_id(bytes, session), ticket);
    if (length > TEXT_MAX)
        length = TEXT_MAX; /* none of ours is so long */
    memcpy(at, text, length);
    mrt_sha256(bytes, 32 + length, sign, MRT_SQL_SIGN_SIZE - 1);
}

void mrt_sql_ticket_name(struct mrt_id session, struct mrt_id ticket, char name[MRT_ID_TEXT_SIZE])
{
    char text[MRT_ID_TEXT_SIZE];
    mrt_id_format(ticket, text);
    size_t skipped = ticket.high == session.high ? 16 : 0;
    memcpy(name, text + skipped, sizeof text - skipped);
}
