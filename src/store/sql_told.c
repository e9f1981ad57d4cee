/*
 * What the server tells a session by itself:
 *
 *   TICKET place NUMBER AHEAD BEHIND   its turn has come, or nearly
 *   TICKET asked REQUEST               it is to be given up
 *   TICKET look                        it was taken away, or when its turn may come has changed
 *
 * A place that is told is believed: it comes by a way that is the session's own, 128 random bits
 * that nobody can read who may not change the tables themselves.
 */
#include "store/sql_internal.h"

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

void mrt_sql_told(struct mrt_store *store, struct mrt_id session, const char *text)
{
    char id[MRT_ID_TEXT_SIZE] = "";
    size_t length = strcspn(text, " ");
    struct mrt_event event = {.type = MRT_WAKE, .session = session};
    if (length != MRT_ID_TEXT_SIZE - 1 || !mrt_sql_find_session(store, session))
        return;
    memcpy(id, text, length);
    text += length;
    if (mrt_id_parse(id, &event.ticket) &&
        (strcmp(text, " look") == 0 ||
         (*text == ' ' && (read_place(text + 1, &event) || read_request(text + 1, &event)))))
        mrt_sql_tell(store, &event);
}
