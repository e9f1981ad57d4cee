/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store as its parts share it: one for each client, with one session at a time.
 *
 * Threads: calls on one store come one at a time, from any thread. The client library counts its
 * requests in one unlocked variable of the process, so all calls into it are made under
 * mrt_zk_library. Only the outbox delivers events, without that mutex.
 */
#ifndef MRT_STORE_ZOOKEEPER_STORE_H
#define MRT_STORE_ZOOKEEPER_STORE_H

#include "base/owner.h"
#include "store/kit/job.h"
#include "store/kit/notes.h"
#include "store/zookeeper/access.h"
#include "store/zookeeper/uri.h"

#include <pthread.h>

#define MRT_ZK_FENCE_SPAN (UINT64_C(1) << 12)
/* Curator's Revoker writes this into the node of a holder to ask for its release. */
#define MRT_ZK_REVOKE "__REVOKE__"
#define MRT_ZK_RECHECK (5 * MRT_SECOND)
#define MRT_ZK_RECHECK_UNWATCHED MRT_SECOND
/* Room for the path of a node. */
#define MRT_ZK_NODE_PATH (MRT_ZK_PATH_MAX + 256)

/* Notes for the log, once each for a store. */
enum mrt_zk_note {
    MRT_ZK_NOTE_FOREIGN,
    MRT_ZK_NOTE_MISPLACED,
    MRT_ZK_NOTE_OPEN,
    MRT_ZK_NOTE_NO_DELETE,
    MRT_ZK_NOTE_OPEN_MARKERS
};

struct mrt_store {
    struct mrt_traffic traffic;
    struct mrt_zk_address address;
    struct mrt_zk_access access;
    char servers[MRT_ZK_SERVERS_SIZE];
    struct mrt_resolver resolver;
    struct mrt_job *unplaced; /* a START that comes before any server is known */
    mrt_time unplaced_until;
    char label[MRT_OWNER_SIZE];
    struct mrt_notes notes;
    bool no_containers; /* the server is too old for them */
    bool no_unwatching; /* and for taking watches away */
    bool no_markers;    /* their directory may not be made, or the server has no multi */
    mrt_time timeout;
    int epoll;
    mrt_time next;
    struct mrt_zk_session *session;
    struct mrt_id unproven;         /* session given up without an answer of the server */
    struct mrt_zk_closing *closing; /* the close of the session before; NULL: it has ended */
    struct mrt_job *stop;           /* waits for that */
    struct mrt_outbox outbox;
};

extern pthread_mutex_t mrt_zk_library;

#endif
