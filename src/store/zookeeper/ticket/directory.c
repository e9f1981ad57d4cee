/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of locks. They are containers, which the server deletes some time after they have
 * become empty; so a create may find none at any time, and makes it. The create that is
 * sent behind shows whether that was done.
 *
 * Invariant: a command makes its directory at most TRIES_MAX times.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/ticket/directory.h"

#include "base/assert.h"
#include "store/zookeeper/ticket/ticket.h"

#include <string.h>

#define TRIES_MAX 8

static mrt_zk_payload carry_parent, carry_mode;
static mrt_zk_session_reply note_containers;
static mrt_zk_ticket_reply made;
static const struct mrt_zk_step parent_step = {.send = mrt_zk_send_create,
                                               .payload = carry_parent,
                                               .session_reply = note_containers,
                                               .ticket_reply = made};
static const struct mrt_zk_step directory_step = {.send = mrt_zk_send_create,
                                                  .payload = carry_mode,
                                                  .session_reply = note_containers,
                                                  .ticket_reply = made};

/* The numbers of a directory that is made anew begin again, and the recipe's names are those. */
static void carry_mode(struct mrt_zk_outgoing *request)
{
    const struct mrt_store *store = request->session->store;
    bool named = store->address.layout != MRT_ZK_RECIPE;
    bool container =
        named && !store->no_containers && strlen(request->path) > strlen(store->address.chroot);
    request->mode = container ? ZOO_CONTAINER : ZOO_PERSISTENT;
}

static void carry_parent(struct mrt_zk_outgoing *request)
{
    carry_mode(request);
    request->rights = mrt_zk_access_parents(&request->session->store->access);
}

void mrt_zk_directory_make(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                           const char *path, bool all)
{
    char part[MRT_ZK_PATH_MAX];
    size_t length = strlen(path);
    MRT_ASSERT(path[0] == '/' && length < sizeof part);
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        if (!all && end < length)
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        mrt_zk_send(session, end < length ? &parent_step : &directory_step, ticket, 0, part);
    }
}

bool mrt_zk_directory_make_again(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                                 int code)
{
    ticket->attempt++; /* the list behind the create says nothing */
    if (++ticket->tries > TRIES_MAX) {
        mrt_zk_ticket_answer_code(session, ticket, ticket->barred ? ZNOAUTH : code);
        return false;
    }
    ticket->barred = false;
    mrt_zk_directory_make(session, ticket, ticket->path, ticket->tries > 1); /* mostly just one */
    return true;
}

static void note_containers(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    session->store->no_containers |= reply->code == ZUNIMPLEMENTED;
}

/* The create behind it fails, too, but does not say why. */
static void made(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct mrt_zk_reply *reply)
{
    (void)session;
    ticket->barred |= reply->code == ZNOAUTH;
}
