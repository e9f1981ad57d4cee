/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights to make markers (watch/pass.c). A session reads the ACL of a node that it has made,
 * and that of the markers' directory, once, in front of its first watch on a marker, so both are
 * known before its event. Where locks are open to all, markers may be as well.
 */
#include "store/zookeeper/ticket/record.h"

#include <string.h>

static mrt_zk_session_reply own_read, markers_read;
/* The ACL of a node that this session has made; that of the markers' directory. */
static const struct mrt_zk_step own_step = {.send = mrt_zk_send_rights, .session_reply = own_read};
static const struct mrt_zk_step markers_step = {.send = mrt_zk_send_rights,
                                                .session_reply = markers_read};

void mrt_zk_rights_read(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + 256];
    if (mrt_zk_access_is_open(&session->store->access))
        session->rights.markers = MRT_ZK_MARKERS_OURS; /* everybody's, as the locks are */
    if (session->rights.markers != MRT_ZK_MARKERS_UNKNOWN || session->rights.asked)
        return;
    snprintf(path, sizeof path, "%s/%s", ticket->path, ticket->node);
    if (mrt_zk_send(session, &own_step, NULL, 0, path) != ZOK)
        return;
    snprintf(path, sizeof path, "%s/" MRT_ZK_MARKERS_NAME, session->store->address.chroot);
    session->rights.asked = mrt_zk_send(session, &markers_step, NULL, 0, path) == ZOK;
}

/* The line of an identity that may make a node or change its ACL. */
static bool is_line(const struct ACL *entry, char line[MRT_ZK_RIGHTS_MAX])
{
    int length = snprintf(line, MRT_ZK_RIGHTS_MAX, "\n%s:%s\n", entry->id.scheme, entry->id.id);
    return length < MRT_ZK_RIGHTS_MAX;
}

static void keep_rights(struct mrt_zk_session *session, const struct ACL_vector *rights)
{
    char line[MRT_ZK_RIGHTS_MAX];
    session->rights.own[0] = '\0';
    for (int i = 0; i < rights->count; i++)
        if (is_line(&rights->data[i], line) &&
            strlen(session->rights.own) + strlen(line) < sizeof session->rights.own)
            memcpy(session->rights.own + strlen(session->rights.own), line, strlen(line) + 1);
}

/* Whether all clients that may make markers have the same rights to our nodes. */
static bool are_ours(const struct mrt_zk_session *session, const struct ACL_vector *rights)
{
    char line[MRT_ZK_RIGHTS_MAX];
    for (int i = 0; i < rights->count; i++)
        if ((rights->data[i].perms & (ZOO_PERM_CREATE | ZOO_PERM_ADMIN)) != 0 &&
            (!is_line(&rights->data[i], line) || !strstr(session->rights.own, line)))
            return false;
    return true;
}

static void own_read(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    session->rights.own[0] = '\0';
    if (mrt_zk_code(reply->code)->outcome == MRT_ZK_DONE)
        keep_rights(session, reply->rights);
}

static void markers_read(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    session->rights.asked = false;
    if (outcome == MRT_ZK_DONE && are_ours(session, reply->rights)) {
        session->rights.markers = MRT_ZK_MARKERS_OURS;
    } else if (outcome == MRT_ZK_DONE || outcome == MRT_ZK_NOT_DONE) {
        session->rights.markers = MRT_ZK_MARKERS_OPEN;
        mrt_note(&session->store->notes, MRT_ZK_NOTE_OPEN_MARKERS,
                 "%.150s/" MRT_ZK_MARKERS_NAME " can be written to by others than these locks: a "
                 "hand-over is not believed, and each costs a list; delete it, and it is made anew",
                 session->store->address.chroot);
    }
}
