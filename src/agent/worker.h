/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker: a thread with a handle of the store of its own, which makes the operator calls of
 * clients, and reads the policy again. Each may take as long as the store, or a name service, does,
 * and no proof of life waits behind it.
 *
 * Threads: all functions are the agent's thread's; an operation is the worker's from
 * mrt_worker_begin until mrt_worker_next gives it back.
 */
#ifndef MRT_AGENT_WORKER_H
#define MRT_AGENT_WORKER_H

#include "agent/access.h"
#include "base/error.h"
#include "base/list.h"
#include "base/uri.h"
#include "core/store.h"

#include <pthread.h>
#include <stdbool.h>

enum mrt_operation_kind {
    MRT_OPERATION_LIST,
    MRT_OPERATION_REVOKE,
    MRT_OPERATION_BREAK,
    MRT_OPERATION_SERVER,
    MRT_OPERATION_POLICY /* the agent's own: `name` is the file */
};

/* A row of a list, with copies of its texts. */
struct mrt_row {
    struct mrt_listed listed;
    char *owner;   /* of a client of the agent, in place of the label; NULL: none */
    bool is_known; /* it is of a client of the agent */
    STAILQ_ENTRY(mrt_row) link;
    char texts[];
};
STAILQ_HEAD(mrt_rows, mrt_row);

struct mrt_operation {
    enum mrt_operation_kind kind;
    struct mrt_peer *peer; /* who waits; NULL: gone. Not the worker's */
    bool is_done;          /* the same */
    struct mrt_user *user; /* who began it, and has limits; NULL: none. The same */
    bool by_prefix;
    uint64_t fence;
    int error;
    char text[MRT_ERROR_DETAIL_MAX]; /* particulars, or the server */
    struct mrt_rows rows;
    struct mrt_access *access; /* the policy that was read */
    STAILQ_ENTRY(mrt_operation) link;
    char name[];
};
STAILQ_HEAD(mrt_operations, mrt_operation);

struct mrt_worker {
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t wake;
    bool stop;
    struct mrt_operations begun, done;
    int fd; /* readable once an operation is done; -1: there is no worker */
    /* The worker's own. */
    struct mrt_uri *uri;
    const struct mrt_store_ops *ops;
    struct mrt_store *store;
    const char *label;
};

/* `url`: the store's, as mrt_uri_choose takes it. 0, or an error with particulars. */
int mrt_worker_open(struct mrt_worker *worker, const char *url, const struct mrt_store_ops *ops);
/* Waits for the call under way. */
void mrt_worker_close(struct mrt_worker *worker);
void mrt_worker_begin(struct mrt_worker *worker, struct mrt_operation *operation);
/* One that is done; NULL: none is. */
struct mrt_operation *mrt_worker_next(struct mrt_worker *worker);
/* NULL: no memory. */
struct mrt_row *mrt_row_new(const struct mrt_listed *listed);
void mrt_row_free(struct mrt_row *row);
void mrt_operation_free(struct mrt_operation *operation);

#endif
