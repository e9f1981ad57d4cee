/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches, and what the tickets of this session wait for. One watch is kept for a path, however
 many
 * wait for it: a node ahead, whose end is told; one whose change is told too, which is
 * the mark of a semaphore's ticket; or a lock's directory, whose children come and go.
 *
 * A watch on children is set by a list of them, so that list and watch are one. A
 * ticket that listed later, or is about to list again, may share it once it is known to be set:
 * what would have set it off comes before the list that shows it.
 *
 * Watches end with their connection. The library would set them all again on the next
 * one, in a single message that the server refuses, and the connection with it, once
 * they are too many (1 MB; some 10,000). Every ticket looks again then anyhow, and is
 * watched again by that. A pass that was missed shows in that look.
 *
 * Nodes are watched by reading them, not by asking whether they exist: that would leave a
 * watch behind for a node that is gone.

 */
#include "store/zookeeper/watch/watch.h"

#include "base/assert.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/watch/pass.h"

#include <stdlib.h>
#include <string.h>

static mrt_zk_session_reply unwatched;
/* Takes a marker's watch away. */
static const struct mrt_zk_step unwatch_step = {.send = mrt_zk_send_unwatch,
                                                .session_reply = unwatched};

void mrt_zk_marker_path(const struct mrt_store *store, const char *path, char *marker, size_t size)
{
    const char *node = strrchr(path, '/') + 1;
    snprintf(marker, size, "%s/" MRT_ZK_MARKERS_NAME "/%s", store->address.chroot, node);
}

static void unwatched(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    session->store->no_unwatching |= reply->code == ZUNIMPLEMENTED;
}

/* ---------------------------------------------------------------- the end of waiting */

void mrt_zk_unwait(struct mrt_zk_ticket *ticket)
{
    if (ticket->watch)
        TAILQ_REMOVE(&ticket->watch->tickets, ticket, watch_link);
    ticket->watch = NULL;
}

void mrt_zk_disown(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (ticket->own_watch)
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in the table then
        HASH_DELETE(by_own, session->tickets_by_own, ticket);
    ticket->own_watch = 0;
    ticket->own_known = false;
}

void mrt_zk_watch_free(struct mrt_zk_session *session, struct mrt_zk_watch *watch)
{
    struct mrt_zk_ticket *ticket;
    while ((ticket = TAILQ_FIRST(&watch->tickets)))
        mrt_zk_unwait(ticket);
    HASH_DEL(session->watches, watch);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it is in both, or in none
    HASH_DELETE(by_id, session->watches_by_id, watch);
    free(watch);
}

void mrt_zk_watch_drop(struct mrt_zk_session *session, struct mrt_zk_watch *watch)
{
    char marker[MRT_ZK_PATH_MAX + 256];
    const struct mrt_zk_ticket *ticket;
    TAILQ_FOREACH (ticket, &watch->tickets, watch_link)
        mrt_zk_wake(session->store, ticket->id);
    mrt_zk_marker_path(session->store, watch->path, marker, sizeof marker);
    if (watch->marker)
        mrt_zk_send(session, &unwatch_step, NULL, 0, marker);
    mrt_zk_watch_free(session, watch);
}

static void forget(struct mrt_zk_session *session, const char *path, ZooWatcherType type)
{
    zoo_aremove_all_watches(session->handle, path, type, 1, NULL, NULL);
}

void mrt_zk_watches_forget(struct mrt_zk_session *session)
{
    char path[MRT_ZK_PATH_MAX + 256];
    struct mrt_zk_watch *watch, *next;
    struct mrt_zk_ticket *ticket, *next_ticket;
    HASH_ITER (hh, session->watches, watch, next) {
        bool children = watch->kind == MRT_ZK_WATCHES_CHILDREN;
        forget(session, watch->path, children ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA);
        mrt_zk_marker_path(session->store, watch->path, path, sizeof path);
        forget(session, path, ZWATCHTYPE_DATA);
        mrt_zk_watch_free(session, watch);
    }
    HASH_ITER (by_own, session->tickets_by_own, ticket, next_ticket) {
        snprintf(path, sizeof path, "%s/%s", ticket->path, ticket->node);
        forget(session, path, ZWATCHTYPE_DATA);
        mrt_zk_disown(session, ticket);
    }
}

void mrt_zk_watches_free(struct mrt_zk_session *session)
{
    struct mrt_zk_watch *watch, *next;
    HASH_ITER (hh, session->watches, watch, next)
        mrt_zk_watch_free(session, watch);
}

/* ---------------------------------------------------------------- waiting */

static struct mrt_zk_watch *new_watch(struct mrt_zk_session *session, const char *path,
                                      enum mrt_zk_watches kind)
{
    MRT_ASSERT(session->connected); /* it ends with the connection */
    size_t size = strlen(path) + 1;
    struct mrt_zk_watch *watch = calloc(1, sizeof *watch + size);
    if (!watch)
        return NULL;
    memcpy(watch->path, path, size);
    watch->id = ++session->numbers;
    watch->kind = kind;
    TAILQ_INIT(&watch->tickets);
    HASH_ADD_STR(session->watches, path, watch);
    if (!watch->hh.tbl) {
        free(watch);
        return NULL;
    }
    HASH_ADD(by_id, session->watches_by_id, id, sizeof watch->id, watch);
    if (watch->by_id.tbl)
        return watch;
    HASH_DEL(session->watches, watch);
    free(watch);
    return NULL;
}

static void watch_own(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    char path[MRT_ZK_PATH_MAX + 256];
    MRT_ASSERT(ticket->own_watch == 0 && ticket->node[0]);
    ticket->own_watch = ++session->numbers;
    HASH_ADD(by_own, session->tickets_by_own, own_watch, sizeof ticket->own_watch, ticket);
    if (!ticket->by_own.tbl) {
        ticket->own_watch = 0;
        return;
    }
    snprintf(path, sizeof path, "%s/%s", ticket->path, ticket->node);
    if (mrt_zk_send(session, &mrt_zk_watch_own_step, NULL, ticket->own_watch, path) != ZOK)
        mrt_zk_disown(session, ticket);
}

void mrt_zk_attend(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (!ticket->own_watch && !ticket->unpassed && session->connected)
        watch_own(session, ticket);
}

static void watch_marker(struct mrt_zk_session *session, struct mrt_zk_watch *watch)
{
    char path[MRT_ZK_PATH_MAX + 256];
    mrt_zk_marker_path(session->store, watch->path, path, sizeof path);
    watch->marker = mrt_zk_send(session, &mrt_zk_watch_marker_step, NULL, watch->id, path) == ZOK;
}

static struct mrt_zk_watch *set_watch(struct mrt_zk_session *session, const char *path,
                                      enum mrt_zk_watches kind, bool passes)
{
    struct mrt_zk_watch *watch = session->connected ? new_watch(session, path, kind) : NULL;
    if (!watch)
        return NULL;
    if (passes)
        watch_marker(session, watch);
    if (mrt_zk_send(session, &mrt_zk_watch_step, NULL, watch->id, path) != ZOK) {
        mrt_zk_watch_drop(session, watch);
        return NULL;
    }
    return watch;
}

/* Whether `node` may go by a pass that the ticket can take. Readers hold with others, and pass
   nothing on. */
static bool passes(const struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                   const char *node)
{
    enum mrt_zk_family family = mrt_zk_place_of(node).family;
    return family != MRT_ZK_SEMAPHORE && family != MRT_ZK_READER && !ticket->unpassed &&
           !store->no_unwatching && !store->no_containers && mrt_zk_is_ours(node);
}

static void join(struct mrt_zk_ticket *ticket, struct mrt_zk_watch *watch)
{
    if (watch == ticket->watch)
        return;
    mrt_zk_unwait(ticket);
    if (!watch)
        return;
    ticket->watch = watch;
    TAILQ_INSERT_TAIL(&watch->tickets, ticket, watch_link);
}

void mrt_zk_wait(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node)
{
    char path[MRT_ZK_PATH_MAX + 256];
    struct mrt_zk_watch *watch;
    if (ticket->unwatched)
        return;
    bool last = mrt_zk_ticket_waits_for_last(ticket);
    bool passed = !last && passes(session->store, ticket, node);
    bool semaphore = ticket->place.family == MRT_ZK_SEMAPHORE;
    snprintf(path, sizeof path, "%s/%s", ticket->path, node);
    HASH_FIND_STR(session->watches, path, watch);
    if (passed)
        mrt_zk_rights_read(session, ticket);
    if (passed || last)
        mrt_zk_attend(session, ticket);
    if (!watch)
        watch =
            set_watch(session, path, semaphore ? MRT_ZK_WATCHES_MARK : MRT_ZK_WATCHES_NODE, passed);
    join(ticket, watch);
}

bool mrt_zk_watch_children(struct mrt_zk_session *session, const char *path, uint64_t *number)
{
    struct mrt_zk_watch *watch;
    HASH_FIND_STR(session->watches, path, watch);
    *number = 0;
    if (watch || !session->connected)
        return true;
    watch = new_watch(session, path, MRT_ZK_WATCHES_CHILDREN);
    *number = watch ? watch->id : 0;
    return watch;
}

bool mrt_zk_wait_children(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    struct mrt_zk_watch *watch;
    HASH_FIND_STR(session->watches, ticket->path, watch);
    if (!watch || !watch->set)
        return false;
    join(ticket, watch);
    return true;
}
