/* SPDX-License-Identifier: Apache-2.0 */
/* See ask.h. */
#include "store/etcd/ask.h"

#include <poll.h>
#include <time.h>

int mrt_etcd_operation_open(struct mrt_etcd_operation *operation, const struct mrt_store *port)
{
    const struct mrt_etcd_store *store = (const struct mrt_etcd_store *)port;
    *operation = (struct mrt_etcd_operation){
        .store = store, .deadline = mrt_time_add(mrt_time_now(), store->timeout)};
    return mrt_etcd_wire_open(&operation->wire, &store->address, store->secret);
}

void mrt_etcd_operation_close(struct mrt_etcd_operation *operation)
{
    json_object_put(operation->json);
    mrt_etcd_wire_close(&operation->wire);
}

static void answered(void *argument, const struct mrt_etcd_reply *reply)
{
    struct mrt_etcd_operation *operation = argument;
    operation->ended = true;
    operation->unknown = reply->outcome == MRT_ETCD_UNKNOWN;
    operation->json = json_object_get(reply->json);
    operation->error = MORTISE_OK;
    if (reply->outcome != MRT_ETCD_DONE)
        operation->error = mrt_error(reply->error, "etcd: %s", reply->text);
}

static void wait_a_while(struct mrt_etcd_operation *operation)
{
    mrt_time now = mrt_time_now();
    mrt_time until = mrt_time_min(operation->deadline, mrt_etcd_wire_next(&operation->wire));
    mrt_time left = until > now ? until - now : 0;
    const struct timespec pause = {left / MRT_SECOND, left % MRT_SECOND};
    struct pollfd poller = {.fd = operation->wire.epoll, .events = POLLIN};
    ppoll(&poller, 1, &pause, NULL);
    mrt_etcd_wire_process(&operation->wire, mrt_time_now());
}

int mrt_etcd_ask(struct mrt_etcd_operation *operation, const char *path, struct mrt_etcd_text *body)
{
    json_object_put(operation->json);
    operation->json = NULL;
    operation->ended = operation->unknown = false;
    mrt_time left = operation->deadline - mrt_time_now();
    struct mrt_etcd_call *call =
        mrt_etcd_send(&operation->wire, path, body, left > 0 ? left : 1, answered, operation);
    if (!call)
        return MORTISE_ENOMEM;
    mrt_etcd_wire_kick(&operation->wire);
    while (!operation->ended && mrt_time_now() < operation->deadline)
        wait_a_while(operation);
    if (operation->ended)
        return operation->error;
    mrt_etcd_cancel(call);
    operation->unknown = true;
    return mrt_error(MORTISE_EUNREACHABLE, "etcd: %s: no answer in time",
                     operation->store->address.shown);
}
