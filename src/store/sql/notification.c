/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications of the server to a session:
 *
 *   TICKET place NUMBER AHEAD BEHIND SIGN   its turn has come, or nearly
 *   TICKET asked REQUEST SIGN               an operator requests that it is given up
 *   TICKET look SIGN                        it was taken away, or the time when its turn may come
 *                                           has changed
 *
 * The place in a notification is believed, so it is signed (sign.h). Any client that may send
 * notifications and knows a channel can send one without a signature: such a notification is
 * ignored. A place that got lost is found by a look.
 */
#include "store/sql/notification.h"
#include "store/sql/outbox.h"
#include "store/sql/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool read_place(const char *text, struct mrt_event *event)
{
    int64_t number, ahead;
    int behind, end = 0;
    if (sscanf(text, "place %15" SCNd64 " %18" SCNd64 " %1d%n", &number, &ahead, &behind, &end) !=
            3 ||
        text[end] != '\0' || number <= 0 || ahead < 0)
        return false;
    event->type = MRT_VIEW;
    event->fence = (uint64_t)number << MRT_SQL_FENCE_BITS;
    event->fence_span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    event->weight_ahead = (uint64_t)ahead;
    event->others_behind = behind;
    event->recheck = MRT_SQL_RECHECK_MAX;
    return true;
}

static bool read_request(const char *text, struct mrt_event *event)
{
    int64_t number;
    int end = 0;
    if (sscanf(text, "asked %18" SCNd64 "%n", &number, &end) != 1 || text[end] != '\0' ||
        number <= 0)
        return false;
    event->type = MRT_REVOKED;
    event->revoked = (uint64_t)number;
    return true;
}

static const struct mrt_sql_session *session_called(struct mrt_sql_store *store,
                                                    const char *channel)
{
    const struct mrt_sql_session *session;
    char called[MRT_SQL_CHANNEL_SIZE];
    TAILQ_FOREACH (session, &store->sessions, link) {
        mrt_sql_channel(session->id, called);
        if (strcmp(called, channel) == 0)
            return session;
    }
    return NULL;
}

/* All of the identity, or the half that is not its session's too. */
static bool read_ticket(const char *text, size_t length, struct mrt_id session, struct mrt_id *id)
{
    char name[MRT_ID_TEXT_SIZE];
    mrt_id_format(session, name);
    if (length != 16 && length != 32)
        return false;
    memcpy(name + 32 - length, text, length);
    return mrt_id_parse(name, id);
}

void mrt_sql_notification(struct mrt_sql_store *store, const char *channel, const char *text)
{
    char what[80], sign[MRT_SQL_SIGN_SIZE];
    const struct mrt_sql_session *session = session_called(store, channel);
    const char *begin = strchr(text, ' '), *end = strrchr(text, ' ');
    struct mrt_event event = {.type = MRT_WAKE};
    if (!session || !begin || end - begin >= (ptrdiff_t)sizeof what ||
        !read_ticket(text, (size_t)(begin - text), session->id, &event.ticket))
        return;
    event.session = session->id;
    mrt_sql_sign(session->id, event.ticket, begin, (size_t)(end - begin), sign);
    snprintf(what, sizeof what, "%.*s", (int)(end - begin), begin);
    if (strcmp(end + 1, sign) == 0 &&
        (strcmp(what, " look") == 0 ||
         (*what == ' ' && (read_place(what + 1, &event) || read_request(what + 1, &event)))))
        mrt_sql_tell(store, &event);
}
