/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's calls: on a wire of their own, one at a time, waited for within the client's
   time-out. Of the store they read what stays as it was opened. */
#ifndef MRT_STORE_ETCD_ASK_H
#define MRT_STORE_ETCD_ASK_H

#include "store/etcd/internal.h"
#include "store/rest/ask.h"

struct mrt_etcd_operation {
    const struct mrt_etcd_store *store;
    struct mrt_etcd_wire wire;
    struct mrt_rest_operation ask; /* its newest call */
};

int mrt_etcd_operation_open(struct mrt_etcd_operation *operation, const struct mrt_store *port);
/* Its reply is operation->ask.json until the next. 0, or a code with its particulars. */
int mrt_etcd_ask(struct mrt_etcd_operation *operation, const char *path,
                 struct mrt_rest_text *body);
void mrt_etcd_operation_close(struct mrt_etcd_operation *operation);

int mrt_etcd_list(struct mrt_store *port, const char *name, const char *prefix,
                  mrt_listed_callback callback, void *argument);
int mrt_etcd_revoke(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_etcd_break(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_etcd_server(struct mrt_store *port, char *text, size_t size);

#endif
