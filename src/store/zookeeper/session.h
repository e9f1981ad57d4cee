/* SPDX-License-Identifier: Apache-2.0 */
/* A session as its parts share it: one handle of the client library, and what is kept for it. */
#ifndef MRT_STORE_ZOOKEEPER_SESSION_H
#define MRT_STORE_ZOOKEEPER_SESSION_H

#include "store/zookeeper/store.h"
#include "store/zookeeper/watch/rights.h"

#include <zookeeper/zookeeper.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

/* The newest state of one cell that the session has read or written. */
struct mrt_zk_seen {
    bool known;
    uint64_t version, fence; /* the cell's */
    int32_t node_version;
    char path[MRT_ZK_PATH_MAX + 32];
};

struct mrt_zk_session {
    struct mrt_id id;
    struct mrt_store *store;
    zhandle_t *handle;
    int64_t server_id; /* 0: not established yet */
    int timeout_ms;    /* as negotiated */
    bool connected;
    bool told;      /* STARTED */
    bool tainted;   /* the library has closed its socket without clearing up */
    bool over;      /* expired, refused or replaced by the server */
    bool stopping;  /* STOP was submitted: close as soon as requests under way are answered */
    bool close_now; /* and that is now */
    bool gathering; /* requests wait for the end of the entry */
    int over_error;
    int socket, mask; /* as registered with the epoll descriptor; -1, 0: not registered */
    unsigned failures;
    unsigned attempts; /* to connect, since a sync was answered */
    mrt_time heard;    /* newest answer */
    mrt_time deadline; /* of connecting */
    mrt_time began;    /* the newest attempt to connect */
    mrt_time attached; /* the newest attempt that the leader has said yes to */
    mrt_time since;    /* when it did */
    mrt_time asked;    /* the newest sync of the session's own was sent */
    struct mrt_job *start, *stop, *renew;
    uint64_t numbers;
    TAILQ_HEAD(, mrt_zk_request) requests;
    struct mrt_zk_ticket *tickets; /* by identity */
    struct mrt_zk_ticket *tickets_by_own;
    struct mrt_zk_watch *watches, *watches_by_id;
    struct mrt_zk_query *queries; /* by number */
    struct mrt_zk_seen seen;
    struct mrt_zk_rights rights;
    struct mrt_zk_closing *closing;
};

/* The session whose callbacks the library runs on this thread; NULL: none that matter. */
extern _Thread_local struct mrt_zk_session *mrt_zk_entered;

/* Notes that the server has ended the session, with this code of the library. */
void mrt_zk_session_over(struct mrt_zk_session *session, int code);
/* Requests are gathered until the end of the next turn, and sent in one piece. */
void mrt_zk_session_gather(struct mrt_zk_session *session);
/* `socket` is the connection's now: another than before has nothing to let go. */
void mrt_zk_session_send_gathered(struct mrt_zk_session *session, int socket);

#endif
