/* SPDX-License-Identifier: Apache-2.0 */
/* See ask.h. */
#include "store/etcd/ask.h"

#include <stdio.h>

int mrt_etcd_operation_open(struct mrt_etcd_operation *operation, const struct mrt_store *port)
{
    const struct mrt_etcd_store *store = (const struct mrt_etcd_store *)port;
    *operation = (struct mrt_etcd_operation){
        .store = store,
        .ask = {.address = store->address.servers.shown,
                .deadline = mrt_time_add(mrt_time_now(), store->timeout)}};
    operation->ask.wire = &operation->wire.rest;
    return mrt_etcd_wire_open(&operation->wire, &store->address, store->secret);
}

void mrt_etcd_operation_close(struct mrt_etcd_operation *operation)
{
    mrt_rest_operation_end(&operation->ask);
    mrt_etcd_wire_close(&operation->wire);
}

int mrt_etcd_ask(struct mrt_etcd_operation *operation, const char *path, struct mrt_rest_text *body)
{
    char full[MRT_ETCD_PATH_SIZE];
    snprintf(full, sizeof full, MRT_ETCD_ROOT "%s", path);
    const struct mrt_rest_request request = {
        .method = "POST", .path = full, .once = mrt_etcd_is_once(path)};
    return mrt_rest_ask(&operation->ask, request, body);
}
